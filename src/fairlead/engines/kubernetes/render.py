"""Pod sets as Kubernetes objects: Jobs, pods, claims and Services with the labels that the KAI scheduler reads. Pure.

`convert` prints them. It decides nothing: what an object cannot hold is left over and listed by its path in the spec.
"""

import math
from typing import Any

import msgspec
from msgspec import UNSET

from fairlead.engines.kubernetes.render_volumes import render_claims, render_volumes
from fairlead.formats.convert_losses import Loss, Source
from fairlead.kinds.kind import Kind
from fairlead.model.fields import value_or
from fairlead.model.org import namespace_of
from fairlead.model.podset import Container, EnvironmentVariable, PodSet, Request, RestartPolicy
from fairlead.model.priority import PRIORITIES, is_preemptible

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
POOL_LABEL = "kai.scheduler/node-pool"
POOLS_ANNOTATION = "kai.scheduler/node-pools"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
NODE_TYPE_LABEL = "run.ai/type"
WORKLOAD_LABEL, PROJECT_LABEL = "workloadName", "project"
GPU = "nvidia.com/gpu"
_DEFAULT_POOL = "default"
_MEBIBYTE = 1024 * 1024
_NO_OBJECT = "no Kubernetes object says it by itself"
#: Members of a spec that concern the workload rather than its pods, and have no member of an object.
_AROUND = ("category", "terminateAfterPreemption", "preemptionLimit", "username")
#: Members of the request that the container's resources already say.
_COUNTED = (
    "cpuCoreRequest",
    "cpuCoreLimit",
    "cpuMemoryRequest",
    "cpuMemoryLimit",
    "gpuDevicesRequest",
    "gpuRequestType",
    "gpuPortionRequest",
    "gpuMemoryRequest",
    "migProfile",
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workload goes, and as what."""

    name: str
    namespace: str
    project: str
    queue: str
    priority_class: str
    is_preemptible: bool
    #: Seconds after its end when the objects go; None for never.
    lifetime: int | None = None


def render_objects(place: Place, podsets: tuple[PodSet, ...]) -> tuple[list[dict[str, Any]], list[Loss]]:
    """Every object of a workload, those first that others need; and what they do not say (paths below the spec)."""
    objects: list[dict[str, Any]] = []
    losses: list[Loss] = []
    for podset in podsets:
        source = Source(podset.container.fields)
        objects += render_claims(place.name, place.namespace, source)
        objects += _services(place, podset, source)
        objects += _runners(place, podset, _template(place, podset, source))
        for path in [path for path in source.left if path.startswith("compute.")]:
            if path.split(".")[1].split("[")[0] in (*_COUNTED, "extendedResources"):
                del source.left[path]
        losses += source.losses + [
            Loss(path=path, reason=_NO_OBJECT, value=value)
            for path, value in source.left.items()
            if value not in (None, False, {}, [])
        ]
    return objects, losses


def render_spec(kind: Kind, name: str, project: str, spec: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Loss]]:
    """The objects of a workload that was never submitted, from its spec as REST has it."""
    typed: Any = msgspec.convert(spec, kind.spec)
    priority = value_or(typed.priority_class, kind.priority)
    place = Place(
        name=name,
        namespace=namespace_of(project),
        project=project,
        queue=project,
        priority_class=priority,
        is_preemptible=is_preemptible(PRIORITIES[priority], value_or(typed.preemptibility, None)),
        lifetime=kind.lifetime_after_end(typed),
    )
    objects, losses = render_objects(place, kind.podsets(typed))
    around = [Loss(path=path, reason=_NO_OBJECT, value=spec[path]) for path in _AROUND if spec.get(path)]
    return objects, losses + around


def _labels(place: Place) -> dict[str, str]:
    return {
        WORKLOAD_LABEL: place.name,
        PROJECT_LABEL: place.project,
        QUEUE_LABEL: place.queue,
        PREEMPTIBILITY_LABEL: "preemptible" if place.is_preemptible else "non-preemptible",
    }


def _metadata(place: Place, podset: PodSet) -> dict[str, Any]:
    return {"name": f"{place.name}{podset.infix}", "namespace": place.namespace, "labels": _labels(place)}


def _runners(place: Place, podset: PodSet, template: dict[str, Any]) -> list[dict[str, Any]]:
    """A Job; pods of our own where containers restart for ever, which no Job can do."""
    metadata = _metadata(place, podset)
    if podset.restart is RestartPolicy.ALWAYS:
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{metadata['name']}-{index}",
                    "namespace": place.namespace,
                    "labels": template["metadata"]["labels"],
                    "annotations": template["metadata"].get("annotations", {}),
                },
                "spec": template["spec"],
            }
            for index in range(podset.count)
        ]
    spec: dict[str, Any] = {
        "completions": podset.completions or 1,
        "parallelism": podset.count,
        "backoffLimit": podset.backoff_limit,
        "template": template,
    }
    if place.lifetime is not None:
        spec["ttlSecondsAfterFinished"] = min(place.lifetime, 2**31 - 1)
    if podset.restart is RestartPolicy.NEVER:
        # Preemption is no failure: it must not count against the backoff limit.
        disruption = {"type": "DisruptionTarget", "status": "True"}
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [disruption]}]}
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}]


def _template(place: Place, podset: PodSet, source: Source) -> dict[str, Any]:
    container, request = podset.container, podset.request
    labels = {**_taken_pairs(source, "labels"), **_labels(place)}
    annotations = {**_taken_pairs(source, "annotations"), **_gpu_annotations(request)}
    limit = source.take("compute.gpuPortionLimit")
    if limit is not UNSET:
        annotations["runai-gpu-limit"] = repr(limit)
    pools = source.take("nodePools")
    if pools is not UNSET and pools:
        annotations[POOLS_ANNOTATION] = " ".join(pools)
        if pools[0] != _DEFAULT_POOL:
            labels[POOL_LABEL] = pools[0]
    volumes, mounts = render_volumes(place.name, source)
    pod = {
        "schedulerName": SCHEDULER,
        "priorityClassName": place.priority_class,
        "restartPolicy": podset.restart.value,
        "terminationGracePeriodSeconds": container.termination_grace_seconds,
        **_placement(place, source),
        **_pod_security(source),
        "containers": [_container(container, request, source, mounts)],
    }
    if volumes:
        pod["volumes"] = volumes
    metadata: dict[str, Any] = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": pod}


def _taken_pairs(source: Source, path: str) -> dict[str, str]:
    found = {}
    for number, item in source.items(path):
        found[item["name"]] = item.get("value") or ""
        for member in ("name", "value"):
            source.take(f"{path}[{number}].{member}")
    return found


def _gpu_annotations(request: Request) -> dict[str, str]:
    """A share of a device is asked for by annotations; such pods carry no whole device."""
    found: dict[str, str] = {}
    if request.gpu_memory_bytes:
        found["gpu-memory"] = str(math.ceil(request.gpu_memory_bytes / _MEBIBYTE))
    elif request.gpu_portion < 1000:
        found["gpu-fraction"] = f"{request.gpu_portion / 1000:g}"
    if found and request.gpu_devices > 1:
        found["gpu-fraction-num-devices"] = str(request.gpu_devices)
    return found


def _container(container: Container, request: Request, source: Source, mounts: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": "main", "image": container.image}
    plain = {
        "command": list(container.command),
        "args": list(container.args),
        "workingDir": container.working_dir,
        "env": [_variable(variable) for variable in container.environment],
        "tty": container.tty,
        "stdin": container.stdin,
        "resources": _resources(container, request),
        "volumeMounts": mounts,
        "ports": _container_ports(source),
        "readinessProbe": _probe(source),
        "securityContext": _container_security(source),
    }
    policy = source.take("imagePullPolicy")
    if policy is not UNSET:
        plain["imagePullPolicy"] = policy
    return found | {name: value for name, value in plain.items() if value}


def _variable(variable: EnvironmentVariable) -> dict[str, Any]:
    for reference, name in (
        (variable.secret, "secretKeyRef"),
        (variable.user_credential, "secretKeyRef"),
        (variable.config_map, "configMapKeyRef"),
    ):
        if reference is not None:
            return {"name": variable.name, "valueFrom": {name: {"name": reference[0], "key": reference[1]}}}
    if variable.pod_field is not None:
        return {"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": variable.pod_field}}}
    return {"name": variable.name, "value": variable.value or ""}


def _resources(container: Container, request: Request) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    if request.cpu_milli:
        requests["cpu"] = f"{request.cpu_milli}m"
    if request.memory_bytes:
        requests["memory"] = str(request.memory_bytes)
    if container.cpu_limit_milli is not None:
        limits["cpu"] = f"{container.cpu_limit_milli}m"
    if container.memory_limit_bytes is not None:
        limits["memory"] = str(container.memory_limit_bytes)
    if request.gpu_devices and not _gpu_annotations(request):
        limits[GPU] = str(request.gpu_devices)
    for name, quantity in request.extended.items():
        requests[name] = limits[name] = str(quantity)
    return {name: value for name, value in (("requests", requests), ("limits", limits)) if value}


def _container_ports(source: Source) -> list[dict[str, Any]]:
    ports = [item["container"] for _, item in (*source.items("ports"), *source.items("exposedUrls"))]
    return [{"containerPort": port} for port in dict.fromkeys(ports)]


def _probe(source: Source) -> dict[str, Any]:
    probe = (source.plain.get("probes") or {}).get("readiness")
    for path in [path for path in source.left if path.startswith("probes.readiness.")]:
        del source.left[path]
    if not probe:
        return {}
    get = dict(probe.get("handler", {}).get("httpGet", {}))
    host = get.pop("host", None)
    if host:
        # The question goes to the pod itself; only its Host header is the one that was given.
        get["httpHeaders"] = [{"name": "Host", "value": host}]
    return {**{name: value for name, value in probe.items() if name != "handler"}, "httpGet": get}


def _container_security(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation"):
        value = source.take(f"security.{name}")
        if value is not UNSET:
            found[name] = value
    added, dropped = source.take("security.capabilities"), source.take("security.dropAllCapabilities")
    capabilities: dict[str, Any] = {}
    if added is not UNSET and added:
        capabilities["add"] = list(added)
    if dropped is True:
        capabilities["drop"] = ["ALL"]
    if capabilities:
        found["capabilities"] = capabilities
    profile = source.take("security.seccompProfileType")
    if profile is not UNSET:
        found["seccompProfile"] = {"type": profile}
    return found


def _pod_security(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {}
    context: dict[str, Any] = {}
    if source.peek("security.uidGidSource") in ("custom", "fromTheImage"):
        is_custom = source.take("security.uidGidSource") == "custom"
        for name, member in (("runAsUser", "runAsUid"), ("runAsGroup", "runAsGid")):
            value = source.take(f"security.{member}")
            if value is not UNSET and is_custom:
                context[name] = value
    groups = source.take("security.supplementalGroups")
    if groups is not UNSET and groups:
        context["supplementalGroups"] = [int(group) for group in groups.replace(";", ",").split(",")]
    if context:
        found["securityContext"] = context
    for name, member in (("hostIPC", "hostIpc"), ("hostNetwork", "hostNetwork")):
        if source.take(f"security.{member}") is True:
            found[name] = True
    return found


def _placement(place: Place, source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {}
    secrets = source.items("imagePullSecrets")
    if secrets:
        found["imagePullSecrets"] = [{"name": item["name"]} for _, item in secrets]
        for number, _ in secrets:
            source.take(f"imagePullSecrets[{number}].name")
    node_type = source.take("nodeType")
    if node_type is not UNSET:
        found["nodeSelector"] = {NODE_TYPE_LABEL: node_type}
    affinity = _affinity(place, source)
    if affinity:
        found["affinity"] = affinity
    tolerations = [_toleration(source, number, item) for number, item in source.items("tolerations")]
    if tolerations:
        found["tolerations"] = tolerations
    return found


def _toleration(source: Source, number: int, item: dict[str, Any]) -> dict[str, Any]:
    for member in item:
        source.left.pop(f"tolerations[{number}].{member}", None)
    found = {name: item[name] for name in ("key", "operator", "value") if item.get(name)}
    if item.get("effect") not in (None, "Any"):
        found["effect"] = item["effect"]
    if item.get("seconds") is not None:
        found["tolerationSeconds"] = item["seconds"]
    return found


def _affinity(place: Place, source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {}
    terms = (source.plain.get("nodeAffinityRequired") or {}).get("nodeSelectorTerms")
    if terms:
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        for path in [path for path in source.left if path.startswith("nodeAffinityRequired.")]:
            del source.left[path]
    kind, key = source.take("podAffinity.type"), source.take("podAffinity.key")
    if key is not UNSET:
        term = {"labelSelector": {"matchLabels": {WORKLOAD_LABEL: place.name}}, "topologyKey": key}
        if kind == "Required":
            found["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        else:
            weighted = [{"weight": 100, "podAffinityTerm": term}]
            found["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return found


def _services(place: Place, podset: PodSet, source: Source) -> list[dict[str, Any]]:
    """One Service for each way of offering ports; a URL needs a port inside the cluster."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for number, item in source.items("ports"):
        port = {"name": f"port-{item['container']}", "port": item["container"], "targetPort": item["container"]}
        kind, external = source.take(f"ports[{number}].serviceType"), source.take(f"ports[{number}].external")
        if external is not UNSET:
            port["nodePort" if kind == "NodePort" else "port"] = external
        source.take(f"ports[{number}].container")
        by_type.setdefault(kind if kind is not UNSET else "ClusterIP", []).append(port)
    for number, item in source.items("exposedUrls"):
        port = {"name": f"url-{item['container']}", "port": item["container"], "targetPort": item["container"]}
        source.take(f"exposedUrls[{number}].container")
        by_type.setdefault("ClusterIP", []).append(port)
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": f"{place.name}-{kind.lower()}",
                "namespace": place.namespace,
                "labels": {WORKLOAD_LABEL: place.name, PROJECT_LABEL: place.project},
            },
            "spec": {"type": kind, "selector": {WORKLOAD_LABEL: place.name}, "ports": ports},
        }
        for kind, ports in by_type.items()
    ]
