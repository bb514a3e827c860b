"""`port-forward`: forwards local ports to ports of a pod while the command runs."""

import contextlib
import select
import socket
from _thread import start_new_thread

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.pods.exec import POD_FLAGS
from fairlead.cli.pods.waiting import check_container, wait_for_pod
from fairlead.cli.session.report import render_error
from fairlead.cli.session.session import ServerSession
from fairlead.client import Client, NameNotFound
from fairlead.client.access.urls import quote
from fairlead.client.duplex import Duplex, open_duplex
from fairlead.client.errors import ClientError
from fairlead.client.phases import ENDED

_PIECE = 65_536
#: Phases in which there is no pod, and none will start by itself.
_OVER = (*ENDED, "Stopped")
_FLAGS = (
    *POD_FLAGS,
    Flag("port", "Local port and port of the pod; one number for both", repeatable=True, placeholder="LOCAL:REMOTE"),
    Flag("address", "Local address to listen on", placeholder="ADDRESS", default="localhost"),
)


def commands(_noun: str) -> tuple[Command, ...]:
    return (verb()._replace(verb=""),)


def verb() -> Command:
    return Command(
        "port-forward",
        "Forward a local port to a pod",
        _forward,
        _FLAGS,
        "NAME",
        1,
        1,
        details="Local port 0 chooses a free port. Ctrl-C ends the forwarding.",
        completes="workload",
    )


def read_ports(text: str) -> tuple[int, int]:
    """`8080:80`, or `80` for both."""
    local, colon, remote = text.partition(":")
    numbers = (local, remote if colon else local)
    if not all(number.isdecimal() and int(number) < 65_536 for number in numbers) or int(numbers[1]) == 0:
        raise UsageError(f"'{text}' is not a pair of ports; write LOCAL:REMOTE, as in 8080:80.")
    return int(numbers[0]), int(numbers[1])


def _forward(invocation: Invocation) -> int:
    pairs = [read_ports(text) for text in invocation.get("port", [])]
    if not pairs:
        raise UsageError("No port given. Name one with --port LOCAL:REMOTE.")
    session = ServerSession(invocation)
    workload = session.workload(invocation.names[0])
    if invocation.get("wait-timeout"):
        workload = wait_for_pod(session, workload["id"], invocation.get("wait-timeout"))
    if workload["phase"] in _OVER:
        # Report it now and not at the first connection; with the server's message.
        raise NameNotFound(f"Workload {workload['name']} has no running pod; it is {workload['phase']}")
    check_container(session, workload)
    path = f"/api/v1/workloads/{workload['id']}/port-forward"
    pod = f"&pod={quote(invocation.get('pod'))}" if invocation.get("pod") else ""
    listeners = []
    for local, remote in pairs:
        listener = socket.create_server((invocation.get("address", "localhost"), local))
        listeners.append((listener, f"port={remote}{pod}"))
        host, port = listener.getsockname()[:2]
        session.console.say(f"Forwarding {host}:{port} to port {remote} of {workload['name']}")
    try:
        while True:
            ready = select.select([listener for listener, _ in listeners], [], [])[0]
            for listener, query in listeners:
                if listener in ready:
                    accepted, _ = listener.accept()
                    # Importing `threading` would take as long as the rest of this command.
                    start_new_thread(_pass_on, (session.client, path, query, accepted, session))
    except KeyboardInterrupt:
        return OK
    finally:
        for listener, _ in listeners:
            listener.close()


def _pass_on(client: Client, path: str, query: str, accepted: socket.socket, session: ServerSession) -> None:
    """Serve one connection."""
    with accepted:
        try:
            duplex = open_duplex(client, path, query)
        except ClientError as error:
            session.console.complain(render_error(error))
            return
        with contextlib.suppress(OSError), contextlib.closing(duplex):
            if not _pass_bytes(accepted, duplex):
                port = query.partition("&")[0].replace("=", " ")
                session.console.complain(
                    f"The pod closed a connection to {port} without sending anything. Does it listen there?"
                )


def _pass_bytes(accepted: socket.socket, duplex: Duplex) -> bool:
    """Pass bytes both ways until the pod closes; False if it closed at once and sent nothing."""
    waiting: list[socket.socket | Duplex] = [accepted, duplex]
    is_answered = False
    while True:
        ready: list[socket.socket | Duplex] = [duplex] if duplex.has_pending else select.select(waiting, [], [])[0]
        if accepted in ready:
            data = accepted.recv(_PIECE)
            if data:
                # If the connection is closed, its end is read below.
                with contextlib.suppress(OSError):
                    duplex.send(data)
            else:
                duplex.end()
                waiting.remove(accepted)
        if duplex in ready:
            data = duplex.receive()
            is_answered = is_answered or bool(data)
            accepted.sendall(data)
            if duplex.is_over:
                return is_answered or accepted not in waiting
