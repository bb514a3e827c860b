"""Reads a LeaderWorkerSet as the spec of a distributed inference. Called by `manifests.py`.

On a cluster the workload becomes a LeaderWorkerSet again. A port of the leader is served inside the cluster, as the
manifest alone would have it.
"""

from fairlead.formats.foreign.pod_templates import (
    SPEC,
    invalid,
    read_mapping,
    read_template,
    refuse_unknown,
    take_shared,
)
from fairlead.formats.plain import Plain
from fairlead.kinds.distributed_inference import DISTRIBUTED_INFERENCE
from fairlead.kinds.kind import Kind

_GROUP = "leaderWorkerTemplate"
_PATH = f"{SPEC}.{_GROUP}"
_OF_PODS = "Always"


def read_leader_worker_set(spec: Plain) -> tuple[Kind, Plain]:
    group = read_mapping(spec, _GROUP, SPEC)
    refuse_unknown(spec, ("replicas", "startupPolicy", _GROUP), SPEC)
    refuse_unknown(group, ("size", "restartPolicy", "leaderTemplate", "workerTemplate"), _PATH)
    size = 1 if group.get("size") is None else group["size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise invalid(f"{_PATH}.size", "must be a whole number of at least 1")
    leader = _read_role(group, "leaderTemplate" if group.get("leaderTemplate") else "workerTemplate")
    ports = leader.pop("ports", [])
    if len(ports) > 1:
        raise invalid(_PATH, f"its leader has {len(ports)} ports; a distributed inference workload serves on one")
    read: Plain = {"workers": size - 1, "leader": leader}
    if ports:
        read["servingPort"] = {"port": ports[0]["container"], "exposeExternally": False}
    if size > 1:
        worker = _read_role(group, "workerTemplate")
        # Pods reach each other at any port.
        worker.pop("ports", None)
        take_shared(worker, read, f"{_PATH}.workerTemplate")
        read["worker"] = worker
    take_shared(leader, read, f"{_PATH}.leaderTemplate")
    given = (spec, "replicas"), (spec, "startupPolicy"), (group, "restartPolicy")
    return DISTRIBUTED_INFERENCE, read | {name: plain[name] for plain, name in given if plain.get(name) is not None}


def _read_role(group: Plain, name: str) -> Plain:
    spec = read_template({"template": group.get(name)}, f"{_PATH}.{name}", "spec.template")
    policy = spec.pop("restartPolicy", _OF_PODS)
    if policy != _OF_PODS:
        raise invalid(f"{_PATH}.{name}.spec.restartPolicy", f"is {str(policy)[:60]}; these pods have {_OF_PODS}")
    return spec
