"""The user and the privileges of a pod. Every kind has `BasicSecurity`."""

from typing import Annotated, Literal

from msgspec import UNSET

from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Int64, Maybe, Spec

UidGidSource = Literal["fromTheImage", "fromIdpToken", "custom"]
SeccompProfileType = Literal["RuntimeDefault", "Unconfined", "Localhost"]
Capability = Literal[
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "SETGID",
    "SETFCAP",
    "SETPCAP",
    "SETUID",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "SYSLOG",
    "WAKE_ALARM",
]


class BasicSecurity(Spec, frozen=True, kw_only=True):
    uid_gid_source: Annotated[
        Maybe[UidGidSource],
        FieldInfo(
            text="Where user and group of the process come from: the image, the caller's identity token, or this spec.",
            default="fromTheImage",
            origin="prose",
            flags=(
                FlagDeclaration(name="--user-group-source"),
                FlagDeclaration(
                    name="--run-as-user",
                    form="switch",
                    constant="fromIdpToken",
                    help="Run under the user and groups of your identity token.",
                ),
            ),
        ),
    ] = UNSET
    run_as_uid: Annotated[
        Maybe[Int64],
        FieldInfo(
            text="The user id, if the source is custom.",
            yaml="runAsUid",
            flags=(FlagDeclaration(name="--run-as-uid"),),
        ),
    ] = UNSET
    run_as_gid: Annotated[
        Maybe[Int64],
        FieldInfo(
            text="The group id, if the source is custom.",
            yaml="runAsGid",
            flags=(FlagDeclaration(name="--run-as-gid"),),
        ),
    ] = UNSET
    supplemental_groups: Annotated[
        Maybe[str],
        FieldInfo(
            text="Supplemental group ids, separated by commas; an empty string means those of the image.",
            yaml="supplementalGroups",
            flags=(FlagDeclaration(name="--supplemental-groups"),),
        ),
    ] = UNSET
    run_as_non_root: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Refuses to start a process that would run as root.",
            default=False,
            origin="kubernetes",
            yaml="runAsNonRoot",
            flags=(FlagDeclaration(name="--run-as-non-root"),),
        ),
    ] = UNSET
    read_only_root_filesystem: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Makes the root file system of the container read-only.",
            default=False,
            origin="kubernetes",
            yaml="readOnlyRootFilesystem",
            flags=(FlagDeclaration(name="--read-only-root-filesystem"),),
        ),
    ] = UNSET
    capabilities: Annotated[
        Maybe[tuple[Capability, ...]],
        FieldInfo(
            text="Capabilities that the process gets in addition to the default ones of the container runtime.",
            yaml="capabilities",
            flags=(FlagDeclaration(name="--capability"),),
        ),
    ] = UNSET
    seccomp_profile_type: Annotated[
        Maybe[SeccompProfileType],
        FieldInfo(
            text="The seccomp profile: the default of the container runtime, or none. Localhost is not supported.",
            yaml="seccompProfileType",
            flags=(FlagDeclaration(name="--seccomp-profile"),),
        ),
    ] = UNSET


DropAllCapabilities = Annotated[
    Maybe[bool],
    FieldInfo(
        text="Drops all default capabilities of the container runtime; those in capabilities are still added.",
        default_text="false",
        yaml="dropAllCapabilities",
        flags=(FlagDeclaration(name="--drop-all-capabilities"),),
        surface="older",
    ),
]


class Security(BasicSecurity, frozen=True, kw_only=True):
    drop_all_capabilities: DropAllCapabilities = UNSET
    allow_privilege_escalation: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Whether a process may gain more privileges than its parent, as setuid programs do.",
            default_text="true; on a shared server of the local engine false",
            yaml="allowPrivilegeEscalation",
            yaml_kinds="WTDJ",
            flags=(FlagDeclaration(name="--allow-privilege-escalation"),),
        ),
    ] = UNSET
    host_ipc: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Shares the IPC namespace of the node.",
            default=False,
            origin="prose",
            yaml="hostIpc",
            yaml_also=("hostipc",),
            flags=(FlagDeclaration(name="--host-ipc"),),
        ),
    ] = UNSET
    host_network: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Shares the network namespace of the node.",
            default=False,
            origin="prose",
            yaml="hostNetwork",
            flags=(FlagDeclaration(name="--host-network"),),
        ),
    ] = UNSET
