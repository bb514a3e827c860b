"""As whom and with which rights containers run, as Kubernetes wants it. Pure; `render_pod.py` calls it.

In a namespace that enforces the level "restricted", what that demands is filled in where nothing else was said; what
was said otherwise has been refused before (`levels.py`).
"""

from typing import Any

from msgspec import UNSET

from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.labels import MAIN
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.formats.losses import Source

#: As whom containers of ours run whose images would be root: nobody, whom their images know by name.
_NOBODY = 65534


def render_container_security(source: Source) -> dict[str, Any]:
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


def render_pod_security(source: Source) -> dict[str, Any]:
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


def restrict(place: RenderContext, pod: dict[str, Any]) -> dict[str, Any]:
    """The same pod, as its namespace wants it."""
    if place.level != RESTRICTED:
        return pod
    is_custom = "runAsUser" in pod.get("securityContext", {})
    return pod | {
        member: [_restricted(container, is_custom) for container in pod[member]]
        for member in ("containers", "initContainers")
        if member in pod
    }


def _restricted(container: dict[str, Any], is_custom: bool) -> dict[str, Any]:
    """Said of each container: Knative takes no word of the kind for the pod as a whole."""
    given = container.get("securityContext", {})
    filled = {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}
    # The image of the workload's own container says as whom it runs.
    user = {} if is_custom or container["name"] == MAIN else {"runAsUser": _NOBODY}
    capabilities = {**given.get("capabilities", {}), "drop": ["ALL"]}
    # A false `runAsNonRoot` is what a spec has that does not speak of it.
    demanded = {"runAsNonRoot": True, "capabilities": capabilities}
    return {**container, "securityContext": {**filled, **user, **given, **demanded}}
