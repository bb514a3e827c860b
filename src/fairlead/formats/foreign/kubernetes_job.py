"""Reads a plain `batch/v1` Job as the spec of a training. Called by `convert`.

Members of the Job that a workload does not have are listed as losses; nothing is read from a cluster.
"""

import re
import shlex
from typing import Any

from msgspec import UNSET

from fairlead.formats.foreign.tasks import ForeignTask, unconverted
from fairlead.formats.losses import Source
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.keywords import PREEMPTIBILITY_LABEL, PRIORITY_LABEL
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.records.organization import project_in

_POD = "spec.template.spec"
_MAIN = f"{_POD}.containers[0]"
_GPU = "nvidia.com/gpu"
_FRACTION = re.compile(r"0?\.\d{1,9}\Z")
_JOB = {
    "spec.completions": "completions",
    "spec.parallelism": "parallelism",
    "spec.backoffLimit": "backoffLimit",
    "spec.ttlSecondsAfterFinished": "autoDeletionTimeAfterCompletionSeconds",
    f"{_POD}.terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
    f"{_POD}.restartPolicy": "restartPolicy",
    f"{_POD}.priorityClassName": "priorityClass",
    f"{_MAIN}.image": "image",
    f"{_MAIN}.imagePullPolicy": "imagePullPolicy",
    f"{_MAIN}.workingDir": "workingDir",
    f"{_MAIN}.tty": "tty",
    f"{_MAIN}.stdin": "stdin",
}
#: Of a probe: its request, and when it is sent.
_REQUEST = ("path", "port", "scheme")
_TIMES = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold")
_SECURITY = {
    "runAsNonRoot": "runAsNonRoot",
    "readOnlyRootFilesystem": "readOnlyRootFilesystem",
    "allowPrivilegeEscalation": "allowPrivilegeEscalation",
    "seccompProfile.type": "seccompProfileType",
}


def read_job(job: Plain) -> ForeignTask:
    source = Source(job)
    for path in ("apiVersion", "kind", f"{_MAIN}.name"):
        source.take(path)
    spec: Plain = {}
    for path, name in _JOB.items():
        value = source.take(path)
        if value is not UNSET:
            spec[name] = value
    for path, name in ((f"{_MAIN}.command", "command"), (f"{_MAIN}.args", "args")):
        value = source.take(path)
        if value is not UNSET:
            spec[name] = shlex.join(str(word) for word in value)
    pod = _inside(job, _POD)
    main = next(iter(pod.get("containers") or [{}]))
    _read_environment(source, main, spec)
    _read_resources(source, main, spec)
    _read_probe(source, main, spec)
    _read_identity(source, spec)
    _read_volumes(source, pod, main, spec)
    _read_placement(source, pod, spec)
    _read_metadata(source, job, spec)
    name = source.take("metadata.name")
    namespace = source.take("metadata.namespace")
    project = project_in(str(namespace)) if namespace is not UNSET else ""
    return ForeignTask(name="" if name is UNSET else str(name), spec=spec, losses=unconverted(source), project=project)


def _inside(plain: object, path: str) -> Plain:
    for step in path.split("."):
        plain = plain.get(step) if isinstance(plain, dict) else None
    return plain if isinstance(plain, dict) else {}


def _read_environment(source: Source, main: Plain, spec: Plain) -> None:
    variables = []
    for number, item in enumerate(main.get("env") or ()):
        here = f"{_MAIN}.env[{number}]"
        variable: Plain = {"name": item.get("name")}
        value = source.take(f"{here}.value")
        if value is not UNSET:
            variable["value"] = str(value)
        for foreign, name in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
            reference = _inside(item, f"valueFrom.{foreign}")
            if reference.get("name") and reference.get("key"):
                variable[name] = {key: source.take(f"{here}.valueFrom.{foreign}.{key}") for key in ("name", "key")}
        path = source.take(f"{here}.valueFrom.fieldRef.fieldPath")
        if path is not UNSET:
            variable["podFieldRef"] = {"path": path}
        if len(variable) == 2:
            source.take(f"{here}.name")
            variables.append(variable)
    if variables:
        spec["environmentVariables"] = variables


def _read_resources(source: Source, main: Plain, spec: Plain) -> None:
    compute: Plain = {}
    extended: dict[str, str] = {}
    for side, suffix in (("requests", "Request"), ("limits", "Limit")):
        for name in _inside(main, f"resources.{side}"):
            path = f"{_MAIN}.resources.{side}.{name}"
            value = source.peek(path)
            if name == "cpu" and _cores(value) is not None:
                compute[f"cpuCore{suffix}"] = _cores(value)
            elif name == "memory":
                compute[f"cpuMemory{suffix}"] = str(value)
            elif name == _GPU and str(value).isdecimal():
                compute["gpuDevicesRequest"] = int(value)
            elif "/" in name:
                extended[name] = str(value)
            else:
                continue
            source.take(path)
    fraction = source.peek("spec.template.metadata.annotations.gpu-fraction")
    if _FRACTION.match(str(fraction)):
        source.take("spec.template.metadata.annotations.gpu-fraction")
        compute |= {"gpuRequestType": "portion", "gpuPortionRequest": float(fraction)}
    if extended:
        compute["extendedResources"] = [{"resource": name, "quantity": value} for name, value in extended.items()]
    if compute:
        spec["compute"] = compute


def _read_probe(source: Source, main: Plain, spec: Plain) -> None:
    """The readiness probe, if it is an HTTP request to a port with a number: a workload has no other."""
    probe, get = _inside(main, "readinessProbe"), _inside(main, "readinessProbe.httpGet")
    if not isinstance(get.get("port"), int):
        return
    here = f"{_MAIN}.readinessProbe"
    request = {name: source.take(f"{here}.httpGet.{name}") for name in _REQUEST if get.get(name) is not None}
    times = {name: source.take(f"{here}.{name}") for name in _TIMES if probe.get(name) is not None}
    spec["probes"] = {"readiness": {**times, "handler": {"httpGet": request}}}


def _cores(value: object) -> float | int | None:
    try:
        cores = parse(str(value))
    except BadQuantity:
        return None
    return int(cores) if cores.denominator == 1 else float(cores)


def _read_identity(source: Source, spec: Plain) -> None:
    security: Plain = {}
    for root in (f"{_POD}.securityContext", f"{_MAIN}.securityContext"):
        for foreign, name in (("runAsUser", "runAsUid"), ("runAsGroup", "runAsGid")):
            value = source.take(f"{root}.{foreign}")
            if value is not UNSET:
                security |= {name: value, "uidGidSource": "custom"}
        for foreign, name in _SECURITY.items():
            value = source.take(f"{root}.{foreign}")
            if value is not UNSET:
                security[name] = value
        capabilities = source.take(f"{root}.capabilities.add")
        if capabilities is not UNSET:
            security["capabilities"] = capabilities
        groups = source.take(f"{root}.supplementalGroups")
        if groups is not UNSET:
            security["supplementalGroups"] = ",".join(str(group) for group in groups)
    for foreign, name in (("hostIPC", "hostIpc"), ("hostNetwork", "hostNetwork")):
        value = source.take(f"{_POD}.{foreign}")
        if value is not UNSET:
            security[name] = value
    if security:
        spec["security"] = security


def _read_volumes(source: Source, pod: Plain, main: Plain, spec: Plain) -> None:
    mounts = {mount.get("name"): (number, mount) for number, mount in enumerate(main.get("volumeMounts") or ())}
    storage: dict[str, list[Any]] = {}
    for number, volume in enumerate(pod.get("volumes") or ()):
        name = volume.get("name")
        if name not in mounts:
            continue
        position, mount = mounts[name]
        read = _volume(volume, mount)
        if read is None:
            continue
        kind, item = read
        storage.setdefault(kind, []).append({"name": name, **item})
        _drop(source, f"{_POD}.volumes[{number}]")
        _drop(source, f"{_MAIN}.volumeMounts[{position}]")
    if storage:
        spec["storage"] = storage


def _drop(source: Source, path: str) -> None:
    for leaf in [leaf for leaf in source.left if leaf.startswith(path)]:
        del source.left[leaf]


def _volume(volume: Plain, mount: Plain) -> tuple[str, Plain] | None:
    """One volume with its mount; None if an important member would be lost."""
    path, read_only = mount.get("mountPath"), mount.get("readOnly", False)
    if set(mount) - {"name", "mountPath", "readOnly"}:
        return None
    claim, host, nfs = (volume.get(kind) or {} for kind in ("persistentVolumeClaim", "hostPath", "nfs"))
    if claim:
        return "pvc", {"existingPvc": True, "claimName": claim.get("claimName"), "path": path, "readOnly": read_only}
    if host:
        return "hostPath", {"path": host.get("path"), "mountPath": path, "readOnly": read_only}
    if nfs:
        item = {"path": nfs.get("path"), "server": nfs.get("server"), "mountPath": path}
        return "nfs", {**item, "readOnly": nfs.get("readOnly", read_only)}
    if "configMap" in volume and set(volume["configMap"] or {}) == {"name"}:
        return "configMapVolume", {"configMap": volume["configMap"]["name"], "mountPath": path}
    if "secret" in volume and set(volume["secret"] or {}) == {"secretName"}:
        return "secretVolume", {"secret": volume["secret"]["secretName"], "mountPath": path}
    if "emptyDir" in volume:
        options = volume["emptyDir"] or {}
        item = {"path": path} | {key: options[key] for key in ("medium", "sizeLimit") if options.get(key)}
        return "emptyDirVolume", item
    return None


def _read_placement(source: Source, pod: Plain, spec: Plain) -> None:
    selected = []
    for key, value in (pod.get("nodeSelector") or {}).items():
        source.take(f"{_POD}.nodeSelector.{key}")
        selected.append({"key": key, "operator": "In", "values": [str(value)]})
    alternatives = _read_node_affinity(source, pod) or ([[]] if selected else [])
    if alternatives:
        terms = [{"matchExpressions": [*selected, *expressions]} for expressions in alternatives]
        spec["nodeAffinityRequired"] = {"nodeSelectorTerms": terms}
    tolerations = []
    for number, item in enumerate(pod.get("tolerations") or ()):
        if not item.get("key"):
            continue
        _drop(source, f"{_POD}.tolerations[{number}]")
        tolerations.append(
            {
                "key": item["key"],
                "operator": item.get("operator", "Equal"),
                "effect": item.get("effect") or "Any",
                **({"value": str(item["value"])} if item.get("value") is not None else {}),
                **({"seconds": item["tolerationSeconds"]} if item.get("tolerationSeconds") is not None else {}),
            }
        )
    if tolerations:
        spec["tolerations"] = tolerations
    secrets = [item.get("name") for item in pod.get("imagePullSecrets") or ()]
    if secrets:
        _drop(source, f"{_POD}.imagePullSecrets")
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]


def _read_node_affinity(source: Source, pod: Plain) -> list[list[Plain]]:
    """The expressions of each required term; none if a term has more than that, such as fields of nodes."""
    path = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    terms = _inside(pod, path).get("nodeSelectorTerms") or []
    if not all(isinstance(term, dict) and set(term) == {"matchExpressions"} for term in terms):
        return []
    _drop(source, f"{_POD}.{path}")
    return [term["matchExpressions"] for term in terms]


def _read_metadata(source: Source, job: Plain, spec: Plain) -> None:
    for root in ("metadata", "spec.template.metadata"):
        for label, name in ((PRIORITY_LABEL, "priorityClass"), (PREEMPTIBILITY_LABEL, "preemptibility")):
            value = source.take(f"{root}.labels.{label}")
            if value is not UNSET:
                spec[name] = value
    for kind in ("labels", "annotations"):
        entries = []
        for key in _inside(job, f"spec.template.metadata.{kind}"):
            value = source.take(f"spec.template.metadata.{kind}.{key}")
            if value is not UNSET:
                entries.append({"name": key, "value": str(value)})
        if entries:
            spec[kind] = entries
