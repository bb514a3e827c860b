"""Security fields on the local engine: honoured, or the workload fails before its start."""

from fairlead.engines.declared.effect import Effect, seen

_TESTS = "e2e/test_fields_security.py::test_"


def _seen(host: str, name: str, *, unless: str = "", container: str = "") -> Effect:
    return seen(host, _TESTS + name, unless=unless, container=container)


_IDS = "refused without root, and in shared mode for root's and the machine's own ids unless allowed"

EFFECTS: dict[str, Effect] = {
    "security.uidGidSource": _seen(
        "custom ids, or the user that the server gives to pods",
        "uid_gid_source",
        unless="fromIdpToken: the owner in personal mode, refused in shared mode without an identity provider",
        container="custom ids, or the image's own user",
    ),
    "security.runAsUid": _seen("the process's user, with the source custom", "run_as_uid", unless=_IDS),
    "security.runAsGid": _seen("the process's group, with the source custom", "run_as_gid", unless=_IDS),
    "security.supplementalGroups": _seen(
        "its further groups, with the source custom", "supplemental_groups", unless=_IDS
    ),
    "security.runAsNonRoot": _seen("a pod that would be root is refused", "run_as_non_root"),
    "security.readOnlyRootFilesystem": _seen(
        "only volumes and /dev/shm can be written",
        "read_only_root_filesystem",
        unless="refused where pods are not isolated",
    ),
    "security.capabilities[]": _seen(
        "held by the process", "capabilities", unless="refused without root, and in shared mode unless allowed by name"
    ),
    "security.dropAllCapabilities": seen(
        "nothing in the pod can hold any that is not named",
        "contract/test_local_identity.py::test_all_capabilities_dropped",
        unless="without root refused in personal mode, except with allowPrivilegeEscalation false",
    ),
    "security.seccompProfileType": _seen(
        "RuntimeDefault: the calls that containers lack are denied; Unconfined: no filter",
        "seccomp_profile_type",
        unless="refused on architectures without a filter",
        container="the runtime's own filter, or none",
    ),
    "security.allowPrivilegeEscalation": _seen(
        "false: no_new_privs; shared mode has it unless allowed",
        "allow_privilege_escalation",
        unless="true is refused in shared mode unless root is allowed",
    ),
    "security.hostIpc": _seen(
        "shared pods have their own unless true", "host_ipc", unless="true is refused in shared mode unless allowed"
    ),
    "security.hostNetwork": _seen(
        "pods that serve have their own unless true",
        "host_network",
        unless="true is refused in shared mode unless allowed; plain pods keep the machine's",
    ),
}
