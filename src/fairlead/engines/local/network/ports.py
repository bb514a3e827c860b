"""Ports of this machine by which workloads are reached: listeners that pass connections on to pods that are ready.

Owned by the engine. A pod whose port is in use is refused before it starts, with the name of the
holder if it belongs to the same project.
"""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

from fairlead.model.errors import FairleadError, Refused
from fairlead.model.pods.container_fields import OfferedPort
from fairlead.model.pods.podset import PodSpec
from fairlead.model.records.named_message import OTHER_WORKLOAD
from fairlead.model.spec.object_rules import NODE_PORTS

#: A port of `NODE_PORTS`, one of which is chosen if the spec names none.
NODE_PORT = "NodePort"
#: The ports of services that only workloads of this machine reach: at its loopback, and at the pods' gateway.
INSIDE_PORTS = range(29_000, 30_000)
CLUSTER_IP = "ClusterIP"
_LOOPBACK = "127.0.0.1"
_OF_PROJECT = " of project "
_IP_FREEBIND = 15
_PIECE = 256 * 1024
#: How often a port is tried again that another process took while no server ran.
RETRY_SECONDS = 1.0

#: (pod, port) → a connection to it.
Dial = Callable[[str, int], Awaitable[int]]
#: (workload, port) → its pods that are ready and listen there.
Ready = Callable[[str, int], Sequence[str]]


class Opened:
    """One port of one workload, open to the outside."""

    __slots__ = ("external", "inside", "owner", "servers", "turn")

    def __init__(self, owner: str, inside: int, external: int) -> None:
        #: Whose it is, for messages.
        self.owner = owner
        self.inside = inside
        self.external = external
        #: Empty if the pod itself listens on this machine, or while the port is in use by another process.
        self.servers: list[asyncio.Server] = []
        self.turn = 0


class Ports:
    def __init__(self, address: str, ready: Ready, dial: Dial, *, names_processes: bool = False) -> None:
        self._address = address
        #: Whether messages may name the machine's processes, as those of the server's owner may.
        self._names_processes = names_processes
        #: This machine's address for pods with networks of their own, if there are such.
        self.gateway = ""
        self._ready = ready
        self._dial = dial
        self._opened: dict[tuple[str, int], Opened] = {}
        #: Where pods share this machine's network: which of them listens on a port, as (pod, what it is called).
        self._listening: dict[int, tuple[str, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, pod: PodSpec, *, shares_machine: bool) -> list[list[int]]:
        """Open what the pod asks for; pairs of its port and this machine's. Raises Refused, naming who holds one.

        `shares_machine`: the pod has no network of its own, so its ports are this machine's already.
        """
        owner = owner_of(pod)
        if shares_machine:
            for number in inside_ports(pod):
                self._check_free(number, pod)
        pairs = []
        for port in pod.container.fields.ports:
            inside = port.container
            key = (pod.workload_id, inside)
            if key not in self._opened:
                self._opened[key] = await self._open(key, port, owner, shares_machine)
            pairs.append([inside, self._opened[key].external])
        if shares_machine:
            for number in inside_ports(pod):
                self._opened.setdefault((pod.workload_id, number), Opened(owner, number, number))
                self._listening[number] = (pod.pod_id, pod.pod_name)
        return pairs

    def release(self, pod_id: str) -> None:
        """A pod has ended: the ports on which it listened are free."""
        for number in [number for number, holder in self._listening.items() if holder[0] == pod_id]:
            del self._listening[number]

    def add_listening(self, pod_id: str, ports: Sequence[int]) -> None:
        """After a start of the server: ports of this machine on which a running pod listens itself."""
        self._listening |= dict.fromkeys(ports, (pod_id, "another of its pods"))

    async def _open(self, key: tuple[str, int], port: OfferedPort, owner: str, shares_machine: bool) -> Opened:
        inside, wanted = key[1], port.external
        is_node_port = port.service_type == NODE_PORT
        if wanted is not None:
            candidates: Sequence[int] = (wanted,)
            if is_node_port and wanted not in NODE_PORTS:
                first, last = NODE_PORTS[0], NODE_PORTS[-1]
                raise Refused(f"port {wanted} is not a NodePort; those are {first} to {last}")
            if not 0 < wanted < 65_536:
                raise Refused(f"{wanted} is not a valid port; those are 1 to 65535")
        elif shares_machine and not is_node_port:
            candidates = (inside,)
        else:
            # Spread, so that a port that was just closed is not reused at once.
            among = INSIDE_PORTS if port.service_type == CLUSTER_IP else NODE_PORTS
            start = hash(key) % len(among)
            candidates = [*among[start:], *among[:start]]
        opened = Opened(owner, inside, candidates[0])
        if shares_machine and candidates[0] == inside:
            return opened
        for external in candidates:
            opened.external = external
            try:
                await self._listen(key[0], opened)
            except OSError as error:
                if wanted is not None:
                    raise Refused(
                        f"port {external} cannot be opened: {self._explain(external, error, owner)}"
                    ) from error
                continue
            return opened
        raise Refused(f"no port from {min(candidates)} to {max(candidates)} is free on this machine")

    async def _listen(self, workload_id: str, opened: Opened) -> None:
        if any(other.external == opened.external for other in self._opened.values()):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass_on(workload_id, opened, reader, writer)

        if opened.external in INSIDE_PORTS:
            listening = _listen_at([_LOOPBACK, *filter(None, [self.gateway])], opened.external)
            opened.servers = [await asyncio.start_server(accept, sock=each, limit=_PIECE) for each in listening]
        else:
            opened.servers = [await asyncio.start_server(accept, self._address, opened.external, limit=_PIECE)]

    def restore(self, workload_id: str, owner: str, pairs: Sequence[Sequence[int]], own: bool) -> None:
        """After a start of the server: open the ports of running pods again."""
        for inside, external in pairs:
            key = (workload_id, inside)
            if key in self._opened:
                continue
            opened = self._opened[key] = Opened(owner, inside, external)
            if own or external != inside:
                task = asyncio.create_task(self._reopen(workload_id, opened))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _reopen(self, workload_id: str, opened: Opened) -> None:
        others = [other for other in self._opened.values() if other is not opened]
        while self._opened.get((workload_id, opened.inside)) is opened:
            with contextlib.suppress(OSError):
                if not any(other.external == opened.external for other in others):
                    self._opened.pop((workload_id, opened.inside))
                    try:
                        await self._listen(workload_id, opened)
                    finally:
                        self._opened[workload_id, opened.inside] = opened
                    return
            await asyncio.sleep(RETRY_SECONDS)

    def close(self, workload_id: str) -> None:
        """The workload's last pod has ended: close its ports."""
        for key in [key for key in self._opened if key[0] == workload_id]:
            opened = self._opened.pop(key)
            for server in opened.servers:
                server.close()

    def close_all(self) -> None:
        for workload_id in {key[0] for key in self._opened}:
            self.close(workload_id)
        for task in self._tasks:
            task.cancel()

    def _check_free(self, port: int, pod: PodSpec) -> None:
        """If pods share this machine's network: refuse the second that would listen on a port."""
        others = (one for key, one in self._opened.items() if key[0] != pod.workload_id)
        other = next((one for one in others if port in (one.inside, one.external)), None)
        if other is not None:
            name = name_for(other.owner, owner_of(pod))
            raise Refused(f"port {port} is in use by {name}; pods share this machine's network here")
        holder, name = self._listening.get(port, (pod.pod_id, ""))
        if holder != pod.pod_id:
            why = "several pods and updates need networks of their own: `fairlead doctor` says what is missing for them"
            raise Refused(f"port {port} is in use by {name}; pods share this machine's network here, and {why}")
        if (pod.workload_id, port) in self._opened:
            return
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("", port))
            except OSError as error:
                why = self._explain(port, error, owner_of(pod))
                raise Refused(f"port {port} cannot be used: {why}; pods share this machine's network here") from error

    def _explain(self, port: int, error: OSError, reader: str) -> str:
        """Who uses a port, as far as the owner of another one may know."""
        other = next((one for one in self._opened.values() if one.external == port), None)
        if other is not None:
            return f"it is in use by {name_for(other.owner, reader)}"
        if error.errno != errno.EADDRINUSE:
            return str(error.strerror)
        process = holder_of(port) if self._names_processes else ""
        return f"it is in use by {process or 'a program of another user'}"

    # Connections

    async def _pass_on(
        self, workload_id: str, opened: Opened, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            connected = await self._reach(workload_id, opened)
            there, back = await asyncio.open_connection(sock=connected, limit=_PIECE)
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
            back.close()
        except (OSError, FairleadError):
            pass  # no pod is ready, or one side closed the connection: the other is closed too
        finally:
            writer.close()

    async def _reach(self, workload_id: str, opened: Opened) -> socket.socket:
        """A connection to the next pod that is ready; pods that do not answer are skipped."""
        pods = self._ready(workload_id, opened.inside)
        opened.turn += 1
        for step in range(len(pods)):
            with contextlib.suppress(OSError, FairleadError):
                file = await self._dial(pods[(opened.turn + step) % len(pods)], opened.inside)
                return socket.socket(fileno=file)
        raise ConnectionError("no pod is ready")


def _listen_at(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Sockets that listen at each address, which this machine need not have yet."""
    listeners: list[socket.socket] = []
    try:
        for address in addresses:
            listener = socket.socket()
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
            listener.setblocking(False)
            listener.bind((address, port))
            listener.listen(128)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """From one side to the other until its end, which is passed on too."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


def owner_of(pod: PodSpec) -> str:
    return f"workload {pod.workload_name}{_OF_PROJECT}{pod.project}"


def name_for(owner: str, reader: str) -> str:
    """An owner as the owner of something else may see it: other projects are not named."""
    is_same = owner.rpartition(_OF_PROJECT)[2] == reader.rpartition(_OF_PROJECT)[2]
    return owner if is_same else OTHER_WORKLOAD


def inside_ports(pod: PodSpec) -> list[int]:
    """The ports on which the pod's program is meant to listen."""
    fields = pod.container.fields
    listed = [port.container for port in fields.ports] + [url.container for url in fields.exposed_urls]
    return list(dict.fromkeys(listed))


def holder_of(port: int) -> str:
    """The process that listens on a port; empty if we may not see it."""
    inodes = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(name) as file:
            for line in list(file)[1:]:
                columns = line.split()
                if columns[3] == "0A" and int(columns[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{columns[9]}]")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") in inodes:
                    with open(f"/proc/{pid}/comm") as file:
                        return f"process {pid} ({file.read().strip()})"
    return ""
