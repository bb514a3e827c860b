"""The pod template of a pod set: container, resources, placement, security. Pure."""

import re

from msgspec import UNSET
from msgspec.structs import replace

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.buckets import render_s3
from fairlead.engines.kubernetes.render.context import RenderContext, labels_of, name_of, role_labels
from fairlead.engines.kubernetes.render.device_claims import render_container_claims, render_pod_claims
from fairlead.engines.kubernetes.render.git import render_git
from fairlead.engines.kubernetes.render.labels import (
    GPU,
    MAIN,
    POOLS_ANNOTATION,
    SCHEDULER,
    drop_deciding,
    pool_labels,
)
from fairlead.engines.kubernetes.render.placement import render_placement, render_scale_down_annotations
from fairlead.engines.kubernetes.render.security import render_container_security, render_pod_security, restrict
from fairlead.engines.kubernetes.render.volumes import HOME, render_volumes
from fairlead.formats.losses import Source
from fairlead.model.pods.podset import EnvironmentVariable, PodContainer, PodSet, Request
from fairlead.model.records.assets import Reference
from fairlead.model.spec.references import variable_reference

_DOLLARS = re.compile(r"\$\$(?![({])")
_VALUE_DOLLARS = re.compile(r"\$\$(?!\()")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def render_template(context: RenderContext, podset: PodSet, source: Source) -> Manifest:
    labels = {**drop_deciding(_taken_pairs(source, "labels")), **labels_of(context), **role_labels(context, podset)}
    annotations = _render_annotations(context, podset, source)
    requested = source.take("nodePools")
    pools = context.pools or (() if requested is UNSET else requested)
    if pools:
        annotations[POOLS_ANNOTATION] = " ".join(pools)
        labels |= pool_labels(context.pool or pools[0])
    container = _with_home(podset.container, source)
    volumes, mounts = render_volumes(context, source)
    init_containers: list[Manifest] = []
    for render_fetched in (render_git, render_s3):
        more_volumes, more_mounts, containers = render_fetched(context, source)
        volumes, mounts, init_containers = volumes + more_volumes, mounts + more_mounts, init_containers + containers
    container = _with_identity(container, context)
    pod = {
        "schedulerName": SCHEDULER,
        "priorityClassName": context.priority_class,
        "restartPolicy": podset.restart.value,
        "terminationGracePeriodSeconds": _grace_seconds(context, container),
        **render_placement(context, source, container),
        **render_pod_security(source),
        **render_pod_claims(context, podset),
        "containers": [_container(context, replace(podset, container=container), source, mounts)],
    }
    if init_containers:
        pod["initContainers"] = init_containers
    if volumes:
        pod["volumes"] = volumes
    metadata: Manifest = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": restrict(context, pod)}


def _render_annotations(context: RenderContext, podset: PodSet, source: Source) -> dict[str, str]:
    annotations = {
        **render_scale_down_annotations(context, podset),
        **drop_deciding(_taken_pairs(source, "annotations")),
        **_gpu_annotations(podset.request),
    }
    limit = source.take("compute.gpuPortionLimit")
    if limit is not UNSET:
        annotations["runai-gpu-limit"] = repr(limit)
    return annotations


def _with_home(container: PodContainer, source: Source) -> PodContainer:
    """With a variable for the home directory that the spec asks for, unless the user sets that variable."""
    if source.peek("createHomeDir") is not True or any(each.name == "HOME" for each in container.environment):
        return container
    home = EnvironmentVariable(name="HOME", value=HOME)
    return replace(container, environment=(*container.environment, home))


def _grace_seconds(context: RenderContext, container: PodContainer) -> int:
    """At least a second: with 0, Kubernetes forgets the pod at once, and its process runs on for two seconds."""
    return (
        max(1, container.termination_grace_seconds) if context.ownership_labels else container.termination_grace_seconds
    )


def _taken_pairs(source: Source, path: str) -> dict[str, str]:
    variables = {}
    for number, item in source.items(path):
        variables[item["name"]] = item.get("value") or ""
        for member in ("name", "value"):
            source.take(f"{path}[{number}].{member}")
    return variables


def _gpu_annotations(request: Request) -> dict[str, str]:
    """A part of a GPU is requested by annotations; such pods request no whole GPU."""
    annotations: dict[str, str] = {}
    if request.gpu_memory_bytes:
        annotations["gpu-memory"] = str(request.gpu_memory_mib)
    elif request.gpu_portion < 1000:
        annotations["gpu-fraction"] = f"{request.gpu_portion / 1000:g}"
    if annotations and request.gpu_devices > 1:
        annotations["gpu-fraction-num-devices"] = str(request.gpu_devices)
    return annotations


def _container(context: RenderContext, podset: PodSet, source: Source, mounts: list[Manifest]) -> Manifest:
    container = podset.container
    rendered: Manifest = {"name": MAIN, "image": container.image}
    plain = {
        "command": _words(container.command, container),
        "args": _words(container.args, container),
        "workingDir": container.working_dir,
        "env": [_variable(context, variable) for variable in container.environment],
        "tty": container.tty,
        "stdin": container.stdin,
        "resources": _resources(podset),
        "volumeMounts": mounts,
        "ports": _container_ports(source),
        "readinessProbe": _probe(source),
        "securityContext": render_container_security(source),
    }
    policy = source.take("imagePullPolicy")
    if policy is not UNSET:
        plain["imagePullPolicy"] = policy
    return rendered | {name: value for name, value in plain.items() if value}


def _with_identity(container: PodContainer, context: RenderContext) -> PodContainer:
    """The variables that identify the workload come after the user's own, and win."""
    if not context.identity:
        return container
    own = [EnvironmentVariable(name=name, value=value) for name, value in context.identity.items()]
    own.append(EnvironmentVariable(name="NODE_NAME", pod_field="spec.nodeName"))
    others = [variable for variable in container.environment if variable.name not in {one.name for one in own}]
    return replace(container, environment=(*others, *own))


def _words(words: tuple[str, ...], container: PodContainer) -> list[str]:
    """Kubernetes expands `$(NAME)` alone; `${NAME}` means the same if the container has such a variable.

    Kubernetes turns `$$` into one dollar everywhere; in a spec it is an escape only before a bracket.
    """
    names = {variable.name for variable in container.environment}

    def rewrite(match: re.Match[str]) -> str:
        return f"$({match[1]})" if match[1] in names else match[0]

    return [_BRACED.sub(rewrite, _DOLLARS.sub("$$$$", word)) for word in words]


def _variable(context: RenderContext, variable: EnvironmentVariable) -> Manifest:
    use = variable_reference(variable)
    if use is not None:
        source = "configMapKeyRef" if use.reference is Reference.CONFIG_MAP else "secretKeyRef"
        key_reference = {"name": name_of(context, use.reference, use.name), "key": use.key}
        return {"name": variable.name, "valueFrom": {source: key_reference}}
    if variable.pod_field is not None:
        return {"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": variable.pod_field}}}
    # Kubernetes expands `$(NAME)` here too, and would turn `$$` into one dollar everywhere.
    return {"name": variable.name, "value": _VALUE_DOLLARS.sub("$$$$", variable.value or "")}


def _resources(podset: PodSet) -> Manifest:
    container, request, claims = podset.container, podset.request, render_container_claims(podset)
    requests: Manifest = {}
    limits: Manifest = {}
    if request.cpu_milli:
        requests["cpu"] = f"{request.cpu_milli}m"
    if request.memory_bytes:
        requests["memory"] = str(request.memory_bytes)
    if container.cpu_limit_milli is not None:
        limits["cpu"] = f"{container.cpu_limit_milli}m"
    if container.memory_limit_bytes is not None:
        limits["memory"] = str(container.memory_limit_bytes)
    if request.gpu_devices and not _gpu_annotations(request) and not claims:
        limits[GPU] = str(request.gpu_devices)
    for name, quantity in request.extended.items():
        requests[name] = limits[name] = str(quantity)
    return {name: value for name, value in (("requests", requests), ("limits", limits)) if value} | claims


def _container_ports(source: Source) -> list[Manifest]:
    ports = [item["container"] for _, item in (*source.items("ports"), *source.items("exposedUrls"))]
    return [{"containerPort": port} for port in dict.fromkeys(ports)]


def _probe(source: Source) -> Manifest:
    probe = (source.plain.get("probes") or {}).get("readiness")
    source.take_below("probes.readiness.")
    if not probe:
        return {}
    handler = probe.get("handler", {})
    members = {name: value for name, value in probe.items() if name != "handler"}
    if "tcpSocket" in handler:
        return {**members, "tcpSocket": dict(handler["tcpSocket"])}
    given = handler.get("httpGet", {})
    get = {name: value for name, value in given.items() if name != "host"}
    if given.get("host"):
        # The request goes to the pod itself, with the given host in its Host header.
        get["httpHeaders"] = [{"name": "Host", "value": given["host"]}]
    return {**members, "httpGet": get}
