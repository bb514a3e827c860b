"""The launch order as data: everything that a supervisor is told about one attempt, and its encoding as JSON.

`plan/render.py` makes it from a pod's spec, the engine sends it, and `supervisor/entry.py` decodes it once. Keys that
the reader does not know are ignored, missing ones have their default, so an order may come from another version. Named
tuples, because the fork server runs without site packages: msgspec would add 2.4 MB to it and 32 ms to its start.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from fairlead.engines.local.linux.cgroups import CgroupPlan
from fairlead.engines.local.wire import Message

T = TypeVar("T")


class AttemptPlace(NamedTuple):
    """Which attempt it is, and where its journal, its socket and its output lie."""

    workload: str
    pod: str
    attempt: int
    journal: str
    control: str
    #: What the names of its output files begin with, how large each may be, and how many are kept.
    logs: str
    segment_bytes: int
    segments: int
    #: The link by which other pods of its group find it; empty if they do not.
    member: str = ""
    #: What the server wants to find in the journal if it has lost its records, as one line.
    launched: str = ""


class CommandLine(NamedTuple):
    """What runs, and how."""

    argv: Sequence[str]
    env: dict[str, str]
    cwd: str
    #: Whether the working directory is made if it is missing.
    makes_cwd: bool = False
    tty: bool = False
    stdin: bool = False
    #: What the command reads from its standard input, in base64; empty: nothing, or what `stdin` brings.
    input: str = ""
    #: Seconds between TERM and KILL.
    grace: int = 30


class ProcessRights(NamedTuple):
    """What the process becomes. Without values it stays what the supervisor is."""

    uid: int | None = None
    gid: int | None = None
    user_groups: Sequence[int] = ()
    #: Numbers of capabilities: beyond these nothing can go (None: no bound), and those that it holds from its start.
    bounding: Sequence[int] | None = None
    ambient: Sequence[int] = ()
    #: Names of capabilities that were added, which the filter of system calls lets through.
    added: Sequence[str] = ()
    no_new_privileges: bool = False
    #: Whether the default filter lies over its system calls.
    filtered: bool = False
    #: Whether it has a process namespace of its own, one for inter-process communication, and a read-only /proc/sys.
    own_processes: bool = False
    own_ipc: bool = False
    guard_knobs: bool = False


class ProcessLimits(NamedTuple):
    """What the process is held to, and by what means."""

    groups: CgroupPlan | None = None
    memory_limit: int | None = None
    affinity: Sequence[int] | None = None
    priority: int | None = None


#: From a file's name to its text and its mode.
Files = dict[str, tuple[str, int]]


class Volume(NamedTuple):
    """One volume of a pod; `storage/sources.py` knows the kinds."""

    #: folder, memory, image, host or nfs.
    kind: str
    #: Where it appears in the pod, and the field of the spec that asked for it.
    at: str
    field: str
    source: str = ""
    mode: int = 0o700
    size: int | None = None
    read_only: bool = False
    #: Whether it belongs to the pod's user.
    owned: bool = False
    #: Whether an image outlives the attempt.
    durable: bool = False
    files: Files | None = None
    #: The one file of a folder that is shown.
    entry: str = ""
    #: The allowed folder out of which no link may lead.
    within: str = ""
    #: Whether later mounts of the host appear in it.
    follows: bool = False
    #: Of an NFS server.
    address: str = ""
    #: Whether it is left out where the machine has something.
    only_if_missing: bool = False
    #: Where it is prepared for a container's runtime.
    place: str = ""


class MountPlan(NamedTuple):
    """Volumes, the user and group that files in them belong to, and the server's own folder, which no pod sees."""

    volumes: Sequence[Volume]
    uid: int
    gid: int
    data: str


class IsolationPlan(NamedTuple):
    """A pod's own view of the machine."""

    #: What the pod's condition says about it.
    message: str
    mounts: MountPlan
    #: Whether it is isolated from the machine; otherwise only its volumes are its own.
    isolated: bool = False
    user_namespace: bool = False
    read_only_root: bool = False
    hidden: Sequence[str] = ()


class GitFetch(NamedTuple):
    """A repository to clone into a volume."""

    field: str
    at: str
    repository: str
    branch: str = ""
    revision: str = ""
    #: Allowed ones, between colons.
    protocols: str = ""
    user: str = ""
    password: str = ""
    key: str = ""
    #: How long it may take, and how long the other side may be silent.
    seconds: float = 0
    silence: float = 0


class BucketFetch(NamedTuple):
    """A bucket to copy into a volume; changes go back after the end."""

    field: str
    at: str
    url: str
    bucket: str
    #: Where it is noted what was copied.
    manifest: str
    access: str = ""
    secret: str = ""
    seconds: float = 0
    silence: float = 0


class Fetches(NamedTuple):
    """What is fetched into volumes before the start."""

    git: Sequence[GitFetch] = ()
    buckets: Sequence[BucketFetch] = ()


class FetchPlan(NamedTuple):
    """Who fetches: a process in this view and with these rights."""

    isolation: IsolationPlan
    fetches: Fetches
    rights: ProcessRights


class ContainerRun(NamedTuple):
    """How a runtime runs the pod's image."""

    name: str
    image: str
    #: The attempt's folder for the runtime's files and volumes, and the one that it writes to when it has begun.
    folder: str
    sign: str
    #: What the pod's state says until then.
    making: str
    mounts: MountPlan
    #: Files by which the runtime is told variables and credentials.
    files: dict[str, str]
    #: Whether volumes are mounted below `folder` first.
    staged: bool
    #: Commands of the runtime: to run another command in it, to load the image, to ask for its end, to remove it.
    exec: Sequence[str]
    inspect: Sequence[str]
    remove: Sequence[str]
    load: Sequence[str] | None = None
    #: Whether the runtime's command itself runs in the pod's own network. Then the image is pulled before, in this
    #: machine's: the commands that list it, empty if it is pulled always, and that pull it, empty if it never is.
    enters_network: bool = False
    find_image: Sequence[str] = ()
    pull: Sequence[str] = ()
    memory_limit: int | None = None
    #: Whether the runtime removes the container by itself.
    leaves: bool = False


class RouterPlan(NamedTuple):
    """This machine's part of all networks of one server's pods."""

    #: Names of the server's rules, and what the names of its devices begin with.
    table: str
    devices: str
    gateway: str
    subnet: str
    #: The program that sets the rules; empty if there is none, then pods reach only this machine.
    nft: str


class NetworkPlan(NamedTuple):
    """A pod's own network: a veth pair to this machine's `router` or, without root, pasta or slirp4netns."""

    address: str
    gateway: str
    hostname: str
    workload: str
    #: (where the pod sees it, where it lies)
    files: Sequence[Sequence[str]] = ()
    #: What other pods of the workload call it.
    names: Sequence[str] = ()
    router: RouterPlan | None = None
    link: str = ""
    #: Of the workload: pods of one group reach each other.
    group: int = 0
    #: The program that carries what leaves the machine; then the network is reached from inside only.
    pasta: str = ""
    #: Without root: the only ports of this machine's loopback that the pod reaches, at its own, with slirp4netns none;
    #: empty for all of them, at the machine's gateway.
    services: str = ""
    #: The same as `pasta`, where that is not installed.
    slirp4netns: str = ""

    @property
    def helper(self) -> str:
        """The program of a network without root; empty with root."""
        return self.pasta or self.slirp4netns


class ReadinessCheck(NamedTuple):
    """The readiness probe. Times are in seconds."""

    port: int
    #: Whether it is an HTTP request; otherwise a connection is enough.
    is_http: bool = False
    is_tls: bool = False
    path: str = "/"
    #: What the Host header says; empty for the pod's address.
    host: str = ""
    initial_delay: int = 0
    period: int = 10
    timeout: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3


class RemoteExecPlan(NamedTuple):
    """In which pods a pod's programs may run commands: those in `members`; `folder` is where they ask."""

    folder: str
    members: str


class WatchedFolder(NamedTuple):
    """A folder whose size no file system limits."""

    path: str
    limit: int
    field: str


class LaunchOrder(NamedTuple):
    place: AttemptPlace
    command: CommandLine
    rights: ProcessRights = ProcessRights()
    limits: ProcessLimits = ProcessLimits()
    isolation: IsolationPlan | None = None
    container: ContainerRun | None = None
    #: In the pod's own process, or by another one before a container starts.
    fetches: Fetches = Fetches()
    fetching: FetchPlan | None = None
    network: NetworkPlan | None = None
    readiness: ReadinessCheck | None = None
    remote_exec: RemoteExecPlan | None = None
    watched: Sequence[WatchedFolder] = ()
    watch_seconds: float = 30.0
    #: Written down for the next server: (port inside, port of the machine), ports that the pod itself listens on here,
    #: (claim, node) that it alone may mount, and whose the ports are.
    ports: Sequence[Sequence[int]] = ()
    listens: Sequence[int] = ()
    holds: Sequence[Sequence[str]] = ()
    owner: str = ""


#: What is JSON already.
_PLAIN = frozenset({str, int, bool, float, dict, type(None)})


def encode(value: Any) -> Any:
    """A named tuple as plain data for JSON, without members that have their default."""
    if hasattr(value, "_field_defaults"):
        defaults = value._field_defaults
        return {
            # Without a call for most of them: a start encodes an order.
            name: member if type(member) in _PLAIN else encode(member)
            for name, member in zip(value._fields, value, strict=True)
            if name not in defaults or member != defaults[name]
        }
    if isinstance(value, tuple | list):
        return [item if type(item) in _PLAIN else encode(item) for item in value]
    return value


#: Members that are named tuples themselves, or lists of them.
_NESTED: dict[type, dict[str, type]] = {
    LaunchOrder: {
        "place": AttemptPlace,
        "command": CommandLine,
        "rights": ProcessRights,
        "limits": ProcessLimits,
        "isolation": IsolationPlan,
        "container": ContainerRun,
        "fetches": Fetches,
        "fetching": FetchPlan,
        "network": NetworkPlan,
        "readiness": ReadinessCheck,
        "remote_exec": RemoteExecPlan,
        "watched": WatchedFolder,
    },
    NetworkPlan: {"router": RouterPlan},
    ProcessLimits: {"groups": CgroupPlan},
    IsolationPlan: {"mounts": MountPlan},
    ContainerRun: {"mounts": MountPlan},
    MountPlan: {"volumes": Volume},
    Fetches: {"git": GitFetch, "buckets": BucketFetch},
    FetchPlan: {"isolation": IsolationPlan, "fetches": Fetches, "rights": ProcessRights},
}


def decode(message: Message) -> LaunchOrder:
    return _decode(LaunchOrder, message)


def decode_network(message: Message) -> NetworkPlan:
    """Also from the journal of an attempt."""
    return _decode(NetworkPlan, message)


def _decode(kind: type[T], message: Message) -> T:
    """What the message has of a named tuple's members."""
    named: Any = kind
    members = {name: message[name] for name in named._fields if name in message}
    for name, inner in _NESTED.get(kind, {}).items():
        value = members.get(name)
        if isinstance(value, list):
            members[name] = [_decode(inner, item) for item in value]
        elif value is not None:
            members[name] = _decode(inner, value)
    return kind(**members)
