"""As whom and with which rights a pod runs: decided from its security fields, what this server can and what it may.

Called before a workload's start for what is refused, and by `render.py` for the order. What would be weaker than
asked, or what the operator did not allow, is refused; nothing is dropped silently.
"""

import grp
import os
import pwd
from collections.abc import Callable, Iterator

import msgspec

from fairlead.engines.local.linux import capabilities, seccomp
from fairlead.engines.local.plan.limits import LimitSupport
from fairlead.engines.local.settings import Identity, LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import ContainerSecurity

#: (path of the field, why)
Note = tuple[str, str]
_ALLOW = "start the server with --allow {} to permit it"
MAX_ID = 2**32 - 2
#: Accounts with lower numbers belong to the system.
FIRST_PERSON = 1000


class ServerRights(msgspec.Struct, frozen=True, kw_only=True):
    """What this server can give a pod, and what its operator lets it give."""

    settings: LocalSettings
    server_uid: int
    #: Whether the machine has a user, or a group, of this number.
    is_user: Callable[[int], bool]
    is_group: Callable[[int], bool]
    #: Whether calls can be filtered on this machine.
    has_seccomp: bool = True
    #: What limits are held with.
    means: LimitSupport = LimitSupport()
    #: The account of this machine as which the pod's user wants it to run.
    account: Identity | None = None

    def located(self, address: str, host: str) -> "ServerRights":
        """The same for a pod with an address of its own, whose host is reached at another."""
        return msgspec.structs.replace(
            self, settings=msgspec.structs.replace(self.settings, host_address=f"{address},{host}")
        )

    @property
    def user(self) -> Identity:
        """As whom pods run that say nothing."""
        return self.settings.owner or self.account or self.settings.run_as

    @property
    def is_shared(self) -> bool:
        return not self.settings.is_personal

    @property
    def has_root(self) -> bool:
        return self.server_uid == 0

    @property
    def isolates(self) -> bool:
        return self.is_shared and not self.settings.allowed.no_isolation


class PodRights(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod's process becomes."""

    user: Identity
    #: Names of capabilities beyond which nothing in the pod can go; None leaves all that the server has.
    bounding: frozenset[str] | None
    #: What a process that is not root holds from its start.
    added: frozenset[str]
    no_new_privileges: bool
    #: Whether the default filter lies over its system calls.
    filtered: bool
    host_ipc: bool
    read_only_root: bool


def observe_rights(settings: LocalSettings) -> ServerRights:
    """The rights of a server that runs as this process does."""
    return ServerRights(
        settings=settings,
        server_uid=os.geteuid(),
        is_user=has_user,
        is_group=has_group,
        has_seccomp=seccomp.is_available(),
    )


def with_account(rights: ServerRights, name: str) -> ServerRights:
    """The rights for a pod that runs as an account of this machine; raises Refused if it cannot."""
    if not name or not rights.is_shared:
        return rights
    if not rights.has_root:
        raise Refused(f"this server is not root, so it cannot run pods as the account {name}")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise Refused(f"this machine has no account {name}; ask an administrator to run `fairlead user bind`") from None
    if entry.pw_uid == 0 or (entry.pw_uid < FIRST_PERSON and not rights.settings.allowed.machine_users):
        raise Refused(f"the account {name} belongs to the system; {_ALLOW.format('machine-users')}")
    return msgspec.structs.replace(rights, account=load_account(entry))


def load_account(entry: pwd.struct_passwd) -> Identity:
    return Identity(
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        login=entry.pw_name,
        home=entry.pw_dir if os.path.isdir(entry.pw_dir) else "/",
        shell=entry.pw_shell or "/bin/sh",
        groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)),
    )


def has_user(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        return False
    return True


def has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except (KeyError, OverflowError):
        return False
    return True


def decide_rights(security: ContainerSecurity, rights: ServerRights) -> PodRights:
    """The rights of a pod of which `find_refused_fields` found none."""
    user = _user(security, rights)
    added = frozenset(security.capabilities)
    filtered = security.seccomp_profile_type == "RuntimeDefault"
    escalation = security.allow_privilege_escalation
    return PodRights(
        user=user,
        bounding=_bounding(security, rights, user, added),
        added=added,
        # A filter needs it where the server is not root. Explicitly allowed, it has been refused there.
        no_new_privileges=escalation is False
        or (escalation is None and (rights.is_shared or (filtered and not rights.has_root))),
        filtered=filtered,
        host_ipc=security.host_ipc or not rights.isolates,
        read_only_root=security.read_only_root_filesystem,
    )


def _user(security: ContainerSecurity, rights: ServerRights) -> Identity:
    base = rights.user
    if security.uid_gid_source != "custom":
        return base
    uid, gid = security.run_as_uid, security.run_as_gid
    groups = security.supplemental_groups
    changes: dict[str, object] = {}
    if uid is not None and uid != base.uid:
        # The owner's home is not another user's; in shared mode each pod has a home of its own.
        changes = {"uid": uid, "login": str(uid), "groups": (), "home": base.home if rights.is_shared else "/"}
    if gid is not None:
        changes["gid"] = gid
    if groups:
        changes["groups"] = tuple(parse_groups(groups))
    return msgspec.structs.replace(base, **changes)


def parse_groups(text: str) -> list[int]:
    """Numbers between commas; raises ValueError for anything else."""
    numbers = [int(part) for part in text.split(",") if part.strip()]
    if any(not 0 <= number <= MAX_ID for number in numbers):
        raise ValueError(text)
    return numbers


def _bounding(
    security: ContainerSecurity, rights: ServerRights, user: Identity, added: frozenset[str]
) -> frozenset[str] | None:
    if not rights.has_root and not rights.isolates:
        return None  # not ours to lower; nothing is gained beyond it either
    if security.drop_all_capabilities:
        return added
    if rights.is_shared:
        return capabilities.RUNTIME_DEFAULT | added
    # The owner's own processes keep what the owner has; a pod under another user is no longer the owner's.
    return None if user.uid == rights.user.uid else capabilities.RUNTIME_DEFAULT | added


# What is refused


def find_refused_fields(security: ContainerSecurity, rights: ServerRights) -> list[Note]:
    """Every field that this server cannot or may not honour, with the reason and what to do."""
    return [(f"security.{name}", why) for name, why in _refusals(security, rights)]


def _refusals(security: ContainerSecurity, rights: ServerRights) -> Iterator[Note]:
    try:
        user = _user(security, rights)
    except ValueError:
        yield "supplementalGroups", "group ids are whole numbers from 0 on, separated by commas"
        return
    if security.uid_gid_source == "custom":
        yield from _custom(security, user, rights)
    elif security.uid_gid_source == "fromIdpToken" and rights.is_shared:
        yield (
            "uidGidSource",
            "the ids come from the token of an identity provider, and this server has none; "
            "use custom with runAsUid and runAsGid",
        )
    if security.run_as_non_root and user.uid == 0:
        yield "runAsNonRoot", "the pod would run as root: give another runAsUid with uidGidSource custom"
    yield from _check_capabilities(security, rights)
    yield from _escalation(security, rights)
    yield from _surroundings(security, rights)


def _custom(security: ContainerSecurity, user: Identity, rights: ServerRights) -> Iterator[Note]:
    base = rights.user
    wanted = [("runAsUid", user.uid, base.uid, rights.is_user), ("runAsGid", user.gid, base.gid, rights.is_group)]
    if security.supplemental_groups:
        wanted += [("supplementalGroups", gid, base.gid, rights.is_group) for gid in user.groups]
    for name, number, own, is_taken in wanted:
        if not 0 <= number <= MAX_ID:
            yield name, f"{number} is not a valid id; ids are whole numbers from 0 to {MAX_ID}"
        elif number == own or (name == "supplementalGroups" and number in base.groups):
            continue
        elif not rights.has_root:
            yield name, f"this server is not root, so its pods can only run as {base.uid}:{base.gid}, not with {number}"
        elif rights.is_shared and number == 0 and not rights.settings.allowed.root_user:
            yield name, f"0 is the id of root; {_ALLOW.format('root-user')}"
        elif rights.is_shared and number != 0 and is_taken(number) and not rights.settings.allowed.machine_users:
            yield name, f"{number} belongs to a user or group of this machine; {_ALLOW.format('machine-users')}"


def _check_capabilities(security: ContainerSecurity, rights: ServerRights) -> Iterator[Note]:
    added = security.capabilities
    if not rights.has_root:
        if added:
            yield "capabilities", f"this server is not root, so it cannot give {', '.join(added)}"
        elif security.drop_all_capabilities and not rights.isolates and not _cannot_gain(security):
            yield (
                "dropAllCapabilities",
                "this server may not drop capabilities; set allowPrivilegeEscalation to false",
            )
        return
    if rights.is_shared:
        foreign = [name for name in added if name not in rights.settings.allowed.capabilities]
        if foreign:
            flags = " ".join(f"--allow capability={name}" for name in foreign)
            yield (
                "capabilities",
                f"{', '.join(foreign)} is not allowed here; start the server with {flags} to permit it",
            )


def _cannot_gain(security: ContainerSecurity) -> bool:
    return security.allow_privilege_escalation is False


def _escalation(security: ContainerSecurity, rights: ServerRights) -> Iterator[Note]:
    profile = security.seccomp_profile_type
    if profile == "RuntimeDefault" and not rights.has_seccomp:
        yield "seccompProfileType", "there is no default filter for this machine's architecture or kernel"
    elif profile == "Localhost":
        yield "seccompProfileType", "profiles of the machine are not supported; use RuntimeDefault or Unconfined"
    if not security.allow_privilege_escalation:
        return
    if rights.isolates and not rights.has_root:
        yield (
            "allowPrivilegeEscalation",
            "this server is not root, and no process can gain rights in its user namespace",
        )
    elif rights.is_shared and not rights.settings.allowed.root_user:
        yield "allowPrivilegeEscalation", f"a setuid program would make the process root; {_ALLOW.format('root-user')}"
    elif profile == "RuntimeDefault" and not rights.has_root:
        yield (
            "allowPrivilegeEscalation",
            "a server that is not root can set the filter only if allowPrivilegeEscalation is false",
        )


def _surroundings(security: ContainerSecurity, rights: ServerRights) -> Iterator[Note]:
    allowed = rights.settings.allowed
    for name, is_asked, what in (
        ("hostIpc", security.host_ipc, "inter-process communication"),
        ("hostNetwork", security.host_network, "network"),
    ):
        if is_asked and rights.is_shared and not allowed.host_namespaces:
            yield name, f"the pod would share this machine's {what}; {_ALLOW.format('host-namespaces')}"
    if security.read_only_root_filesystem and rights.is_shared and not rights.isolates:
        yield "readOnlyRootFilesystem", "pods are not isolated here (--allow no-isolation)"
