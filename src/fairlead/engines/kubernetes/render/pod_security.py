"""Pod Security levels: which fields of a pod each of them forbids. Pure.

`review.py` asks before a workload's start. "baseline" holds everywhere unless the server was started with `--allow`. If
a namespace enforces a level, that level holds without exception, because the cluster itself would refuse the pod.
"""

from collections.abc import Iterator

from fairlead.model.allowed import NOTHING_ALLOWED, Allowed
from fairlead.model.pods.podset import PodContainer

#: On namespaces, set by the cluster's operator: the level that the API server enforces.
LABEL = "pod-security.kubernetes.io/enforce"
BASELINE, RESTRICTED = "baseline", "restricted"
ENFORCED = f"{LABEL} in ({BASELINE},{RESTRICTED})"

#: (path of the field, why)
Note = tuple[str, str]
#: (path of the field, what it would do, the flags that allow it)
_Found = tuple[str, str, str]

#: Capabilities that may be added to a container.
_HARMLESS = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_BIND = frozenset(("NET_BIND_SERVICE",))
#: The prefix of the old annotations that choose an AppArmor profile per container.
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def find_forbidden(container: PodContainer, allowed: Allowed, level: str = "") -> list[Note]:
    """Fields for which a namespace that enforces this level, or none, refuses the pod."""
    if not level:
        flagged = [*_of_node(container, allowed), *_of_process(container, allowed, _HARMLESS)]
        return [(field, f"{what}; start the server with {flags} to permit it") for field, what, flags in flagged]
    strict = level == RESTRICTED
    harmless = _BIND if strict else _HARMLESS
    weaknesses = [*_of_node(container, NOTHING_ALLOWED), *_of_process(container, NOTHING_ALLOWED, harmless)]
    condition = f"and its project's namespace enforces the level {level} of Pod Security ({LABEL})"
    return [
        (field, f"{what}, {condition}") for field, what, *_ in (*weaknesses, *(_weakened(container) if strict else ()))
    ]


def _of_node(container: PodContainer, allowed: Allowed) -> Iterator[_Found]:
    """Fields that reach out of the pod."""
    security = container.fields.security
    for number, mount in enumerate(container.fields.storage.host_path):
        if not allowed.has_path(mount.path):
            field = f"storage.hostPath[{mount.name or number}].path"
            known = f", and below no folder that is allowed ({', '.join(allowed.host_paths)})"
            reason = f"'{mount.path}' is the node's own{known if allowed.host_paths else ''}"
            yield field, reason, f"--allow host-path={mount.path}"
    for name, is_shared, what in (
        ("hostIpc", security.host_ipc, "inter-process communication"),
        ("hostNetwork", security.host_network, "network"),
    ):
        if is_shared and not allowed.host_namespaces:
            yield f"security.{name}", f"it would share the node's {what}", "--allow host-namespaces"


def _of_process(container: PodContainer, allowed: Allowed, harmless: frozenset[str]) -> Iterator[_Found]:
    """Fields that give its processes more rights than others have."""
    security = container.fields.security
    foreign = [name for name in security.capabilities if name not in harmless and name not in allowed.capabilities]
    if foreign:
        flags = " ".join(f"--allow capability={name}" for name in foreign)
        yield "security.capabilities", f"{', '.join(foreign)} would give it power over the node", flags
    if allowed.unconfined:
        return
    if security.seccomp_profile_type == "Unconfined":
        yield "security.seccompProfileType", "it would disable the filter of its system calls", "--allow unconfined"
    for annotation in container.fields.annotations:
        if annotation.name.startswith(_APPARMOR) and annotation.value == "unconfined":
            yield f"annotations[{annotation.name}]", "it would disable its AppArmor profile", "--allow unconfined"


def _weakened(container: PodContainer) -> Iterator[Note]:
    """Fields that only the strictest level forbids; fields that the spec does not set are filled in."""
    security = container.fields.security
    if security.allow_privilege_escalation:
        yield "security.allowPrivilegeEscalation", "its processes could gain rights"
    if security.drop_all_capabilities is False:
        yield "security.dropAllCapabilities", "it would keep the runtime's capabilities"
    if security.uid_gid_source == "custom" and security.run_as_uid == 0:
        yield "security.runAsUid", "0 is the id of root"
    for number, mount in enumerate(container.fields.storage.nfs):
        yield f"storage.nfs[{mount.name or number}]", "pods cannot mount NFS exports themselves there; use a claim"
