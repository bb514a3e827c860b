"""Reads a SkyPilot task: setup and run become one script. A task on several nodes is a distributed training, one with
a `service` is inference.

Called by `convert`. The common part is converted, everything else is listed as a loss.
"""

from msgspec import UNSET

from fairlead.formats.foreign.tasks import (
    ForeignTask,
    ask_for_compute,
    ask_for_gpus,
    missing_image,
    port_in,
    run_on_nodes,
    shell,
    take_all,
    take_name,
    take_ports,
    take_variables,
    unconverted,
    with_variables,
)
from fairlead.formats.losses import Loss, Source
from fairlead.formats.plain import Plain
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind

_MOUNTS = "is a bucket or a folder of the caller; add a data source (pvc, nfs, s3 or git) instead"


def read_skypilot(task: Plain) -> ForeignTask:
    source = Source(task)
    spec: Plain = {}
    image = source.peek("resources.image_id")
    if image is not UNSET and str(image).startswith("docker:"):
        spec["image"] = str(source.take("resources.image_id")).removeprefix("docker:")
    gpus = take_all(source, "resources.accelerators")
    if gpus is not None:
        ask_for_gpus(spec, source, "resources.accelerators", gpus)
    ask_for_compute(spec, source, ("cpus", "memory"))
    take_variables(spec, source, "envs")
    kind = _read_kind(spec, source)
    for member in ("workdir", "file_mounts"):
        given = take_all(source, member)
        if given:
            source.losses.append(Loss(path=member, reason=_MOUNTS, value=given))
    name = take_name(source)
    losses = [*unconverted(source), *missing_image(spec, "the task")]
    return ForeignTask(name=name, spec=spec, losses=losses, kind=kind)


def _read_kind(spec: Plain, source: Source) -> Kind | None:
    setup, run = source.take("setup"), source.take("run")
    script = "\n".join(str(part).strip() for part in (setup, run) if part is not UNSET)
    nodes = source.take("num_nodes")
    is_spread = isinstance(nodes, int) and nodes > 1
    if script:
        spec.update(shell(with_variables(script, _node_variables(spec, is_spread))))
    if "service" in source.plain:
        _read_service(spec, source)
        return INFERENCE
    take_ports(spec, source, "resources.ports")
    if not is_spread:
        return None
    if "SKYPILOT_NODE_IPS" in script:
        source.losses.append(Loss(path="run", reason="SKYPILOT_NODE_IPS is the address of the first node only"))
    return run_on_nodes(spec, nodes)


def _node_variables(spec: Plain, is_spread: bool) -> dict[str, str]:
    """What SkyPilot tells the nodes of a task, from what PyTorch's trainings tell their pods."""
    return {
        "SKYPILOT_NODE_RANK": "$RANK" if is_spread else "0",
        "SKYPILOT_NUM_NODES": "$WORLD_SIZE" if is_spread else "1",
        "SKYPILOT_NODE_IPS": "$MASTER_ADDR" if is_spread else "127.0.0.1",
        "SKYPILOT_NUM_GPUS_PER_NODE": str(spec.get("compute", {}).get("gpuDevicesRequest", 0)),
    }


def _read_service(spec: Plain, source: Source) -> None:
    port = port_in(take_all(source, "resources.ports"))
    if port is not None:
        spec["servingPort"] = {"container": port, "protocol": "http"}
    probe = source.take("service.readiness_probe")
    path = source.take("service.readiness_probe.path")
    if path is UNSET:
        path = probe
    if isinstance(path, str) and port is not None:
        handler = {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}
        spec["probes"] = {"readiness": {"handler": handler}}
    fixed = source.take("service.replicas")
    low, high = (source.take(f"service.replica_policy.{name}") for name in ("min_replicas", "max_replicas"))
    low = fixed if low is UNSET else low
    if isinstance(low, int):
        spec["autoscaling"] = {"minReplicas": low, "maxReplicas": high if isinstance(high, int) else low}
        target = source.peek("service.replica_policy.target_qps_per_replica")
        if isinstance(target, int) and isinstance(high, int):
            source.take("service.replica_policy.target_qps_per_replica")
            spec["autoscaling"] |= {"metric": "throughput", "metricThreshold": target}
