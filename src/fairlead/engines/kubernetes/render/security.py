"""Security contexts: users, capabilities, seccomp. Pure.

In a namespace that enforces the level "restricted", fields that the level demands are filled in if the spec does not
set them; a spec that sets them otherwise was refused before (`pod_security.py`).
"""

from msgspec import UNSET

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.labels import MAIN
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.formats.losses import Source

#: The user of our own containers, whose images would run as root: nobody.
_NOBODY = 65534


def render_container_security(source: Source) -> Manifest:
    security: Manifest = {}
    for name in ("runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation"):
        value = source.take(f"security.{name}")
        if value is not UNSET:
            security[name] = value
    added, dropped = source.take("security.capabilities"), source.take("security.dropAllCapabilities")
    capabilities: Manifest = {}
    if added is not UNSET and added:
        capabilities["add"] = list(added)
    if dropped is True:
        capabilities["drop"] = ["ALL"]
    if capabilities:
        security["capabilities"] = capabilities
    profile = source.take("security.seccompProfileType")
    if profile is not UNSET:
        security["seccompProfile"] = {"type": profile}
    return security


def render_pod_security(source: Source) -> Manifest:
    members: Manifest = {}
    context: Manifest = {}
    is_custom = False
    if source.peek("security.uidGidSource") in ("custom", "fromTheImage"):
        is_custom = source.take("security.uidGidSource") == "custom"
        for name, member in (("runAsUser", "runAsUid"), ("runAsGroup", "runAsGid")):
            value = source.take(f"security.{member}")
            if value is not UNSET and is_custom:
                context[name] = value
    groups = source.take("security.supplementalGroups")
    if groups is not UNSET and groups and is_custom:
        context["supplementalGroups"] = [int(group) for group in groups.replace(";", ",").split(",")]
    if context:
        members["securityContext"] = context
    for name, member in (("hostIPC", "hostIpc"), ("hostNetwork", "hostNetwork")):
        if source.take(f"security.{member}") is True:
            members[name] = True
    return members


def restrict(context: RenderContext, pod: Manifest) -> Manifest:
    """The pod with what its namespace demands."""
    if context.level != RESTRICTED:
        return pod
    is_custom = "runAsUser" in pod.get("securityContext", {})
    return pod | {
        member: [_restricted(container, is_custom) for container in pod[member]]
        for member in ("containers", "initContainers")
        if member in pod
    }


def _restricted(container: Manifest, is_custom: bool) -> Manifest:
    """Set on each container, because Knative does not accept it for the whole pod."""
    given = container.get("securityContext", {})
    filled = {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}
    # The image of the workload's own container sets its user.
    user = {} if is_custom or container["name"] == MAIN else {"runAsUser": _NOBODY}
    capabilities = {**given.get("capabilities", {}), "drop": ["ALL"]}
    # A spec that does not set `runAsNonRoot` has it as false.
    demanded = {"runAsNonRoot": True, "capabilities": capabilities}
    return {**container, "securityContext": {**filled, **user, **given, **demanded}}
