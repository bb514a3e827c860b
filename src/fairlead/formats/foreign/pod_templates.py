"""Reads the pod templates of Kubernetes manifests as specs. Called by the readers of manifests.

Nothing is dropped: a member of the template that a workload does not have is a violation with its path.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from fairlead.formats.foreign.kubernetes_job import read_job
from fairlead.formats.plain import Plain
from fairlead.model.errors import ComplianceIssue, Invalid

#: The path of an object's spec in a request.
SPEC = "manifest.spec"
#: The members and positions that lead to a part of an object.
Path = tuple[str | int, ...]
#: No kind of object is nested as deeply as this.
_DEEPEST = 64
#: Members of a pod, and the ways in which kinds of objects change one besides its template.
_OF_PODS = frozenset(
    {
        *("containers", "initContainers", "ephemeralContainers", "podSpecPatch"),
        *("hostPath", "hostNetwork", "hostPID", "hostIPC", "hostUsers"),
        *("securityContext", "podSecurityContext", "privileged", "capabilities"),
    }
)
_OFF: tuple[object, ...] = (None, False, "", {}, [])
_NO_TEMPLATE = "has no pod template"
_NOT_HERE = "has no equivalent in a workload"


def read_mapping(plain: Plain, name: str, path: str) -> Plain:
    """A member that is an object; empty if it is missing."""
    value = plain.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid(issues=(ComplianceIssue(f"{path}.{name}", "must be an object"),))
    return value


def read_template(job: Plain, path: str, inside: str = "spec") -> Plain:
    """The spec of the pods of a Job; `path` replaces `inside` in the paths of violations."""
    template = read_mapping(job, "template", path)
    pod = read_mapping(template, "spec", f"{path}.template")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise Invalid(issues=(ComplianceIssue(path, _NO_TEMPLATE),))
    if len(containers) > 1:
        detail = f"has {len(containers)} containers; a workload has one"
        raise Invalid(issues=(ComplianceIssue(f"{path}.containers", detail),))
    # The name of a container says nothing; ports are read here, because Jobs of other systems have none.
    main = _with_numbered_probe(
        {name: value for name, value in containers[0].items() if name != "ports"}, containers[0]
    )
    plain = {**job, "template": {**template, "spec": {**pod, "containers": [main]}}}
    try:
        task = read_job({"apiVersion": "batch/v1", "kind": "Job", "spec": plain})
    except (AttributeError, TypeError, ValueError) as error:
        raise Invalid(issues=(ComplianceIssue(path, f"is not a valid pod template: {error}"),)) from error
    issues = [
        ComplianceIssue(f"{path}{loss.path.removeprefix(inside)}", f"{loss.reason} in a workload")
        for loss in task.losses
    ]
    spec = dict(task.spec)
    ports = [port for port in containers[0].get("ports") or () if isinstance(port, dict)]
    for number, port in enumerate(ports):
        if not isinstance(port.get("containerPort"), int):
            issues.append(ComplianceIssue(f"{path}.containers[0].ports[{number}].containerPort", "must be a number"))
    if issues:
        raise Invalid(issues=tuple(issues))
    if ports:
        spec["ports"] = [{"container": port["containerPort"], "serviceType": "ClusterIP"} for port in ports]
    return spec


def _with_numbered_probe(main: dict[str, Any], container: Plain) -> dict[str, Any]:
    """The container with the number of the port in its readiness probe, which may be the name of one of its ports."""
    probe = main.get("readinessProbe")
    if not isinstance(probe, dict):
        return main
    get = probe.get("httpGet")
    if not isinstance(get, dict) or not isinstance(get.get("port"), str):
        return main
    ports = [port for port in container.get("ports") or () if isinstance(port, dict)]
    number = next((port.get("containerPort") for port in ports if port.get("name") == get["port"]), get["port"])
    return {**main, "readinessProbe": {**probe, "httpGet": {**get, "port": number}}}


def find_templates(manifest: object, path: Path = ()) -> Iterator[tuple[Path, Plain]]:
    """The pod templates of an object, wherever they are in it, with their paths."""
    if len(path) > _DEEPEST:
        raise invalid("manifest", f"is nested deeper than {_DEEPEST} levels")
    if isinstance(manifest, dict):
        spec = manifest.get("spec")
        if path and isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield path, manifest
            return
        for name, value in manifest.items():
            yield from find_templates(value, (*path, name))
    elif isinstance(manifest, list):
        for number, value in enumerate(manifest):
            yield from find_templates(value, (*path, number))


def find_outside_templates(manifest: object) -> Iterator[Path]:
    """The paths of members that give pods containers or privileges, except those of pod templates."""
    return _find_outside(manifest, (), {path for path, _ in find_templates(manifest)})


def _find_outside(part: object, path: Path, templates: set[Path]) -> Iterator[Path]:
    if path in templates:
        return
    steps: Iterable[tuple[str | int, object]] = ()
    if isinstance(part, dict):
        steps = part.items()
    elif isinstance(part, list):
        steps = enumerate(part)
    for step, value in steps:
        if step in _OF_PODS and value not in _OFF:
            yield (*path, step)
        else:
            yield from _find_outside(value, (*path, step), templates)


def render_path(path: Path) -> str:
    """`spec.jobs[0].template`"""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def take_shared(pod: Plain, workload: Plain, path: str) -> None:
    """Move what counts for the whole workload from the spec of a role; raises Invalid if roles differ in it."""
    for name in ("priorityClass", "preemptibility"):
        given = pod.pop(name, None)
        if given is not None and workload.setdefault(name, given) != given:
            raise invalid(path, f"has the {name} {given}, but other pods have {workload[name]}; a workload has one")


def refuse_unknown(plain: Plain, known: Iterable[str], path: str) -> None:
    """Raise Invalid for members that are not known, unless they are off."""
    unknown = sorted(name for name in set(plain) - set(known) if plain[name] not in _OFF)
    if unknown:
        raise Invalid(issues=tuple(ComplianceIssue(f"{path}.{name}", _NOT_HERE) for name in unknown))


def invalid(path: str, detail: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue(path, detail),))
