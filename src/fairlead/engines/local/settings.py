"""What an operator decides about the local engine, as data. Made by `app`, read by everything here."""

import msgspec

from fairlead.model.allowed import Allowed
from fairlead.model.records.organization import Node

MEBIBYTE = 1024 * 1024


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A user of this machine as whom pods run."""

    uid: int
    gid: int
    login: str
    home: str
    shell: str = "/bin/sh"
    groups: tuple[int, ...] = ()


NOBODY = Identity(uid=65534, gid=65534, login="fairlead", home="/home/fairlead")


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One machine's engine. Personal when there is an owner, shared otherwise."""

    data_dir: str
    #: Set in personal mode: pods run as this user, in their directory, and see the machine as their shell does.
    owner: Identity | None = None
    #: As whom a shared server that runs as root runs pods; one that does not can only run them as itself.
    run_as: Identity = NOBODY
    #: Declared nodes; empty for this machine as it is found.
    nodes: tuple[Node, ...] = ()
    allowed: Allowed = Allowed()
    log_segment_bytes: int = 10 * MEBIBYTE
    log_segments: int = 5
    #: How pods are run: `host`, or names of container runtimes; the first where a workload does not choose.
    runtimes: tuple[str, ...] = ("host",)
    #: The program of each, where it is another than usual.
    runtime_programs: tuple[tuple[str, str], ...] = ()
    #: What the runtime's command is given before its verb.
    runtime_options: tuple[str, ...] = ()
    #: Variables of the server's own that the runtime's command is given: where its engine is, its registries, proxies.
    runtime_environment: tuple[tuple[str, str], ...] = ()
    #: Processes and threads of one pod; 0 for no limit, None for what `limits.decide_pids` makes of the mode.
    pids_limit: int | None = None
    #: The address of this machine on which ports of workloads are opened.
    service_address: str = "127.0.0.1"
    #: What pods are told as their own and their host's address; plain pods share the host's network.
    host_address: str = "127.0.0.1"
    #: Further storage classes: (name, folder in which the claims of that class lie).
    storage_classes: tuple[tuple[str, str], ...] = ()
    #: How long filling one volume from elsewhere may take, and how long the other side may say nothing.
    fetch_seconds: int = 1800
    fetch_silence_seconds: int = 30
    #: How often the size of folders is checked that no file system limits.
    gauge_seconds: float = 30.0

    @property
    def git_protocols(self) -> tuple[str, ...]:
        return ("https", "ssh", *self.allowed.git_protocols)

    @property
    def is_personal(self) -> bool:
        return self.owner is not None
