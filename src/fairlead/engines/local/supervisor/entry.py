"""How a fork becomes the supervisor of one attempt: it reads its order, claims the attempt, and supervises it.

Called by the fork server in the new process. The first supervisor that claims an attempt has it.
"""

import os
import socket
import sys
from typing import NoReturn

from fairlead.engines.local import journal, launch_order, wire
from fairlead.engines.local.launch_order import LaunchOrder
from fairlead.engines.local.linux import procfs, syscalls
from fairlead.engines.local.supervisor.supervisor import Supervisor, now_millis

#: How long a fork waits for its order before it gives up; the server sends it at once.
ORDER_SECONDS = 30.0


def main(link: socket.socket) -> NoReturn:
    """Supervise the attempt whose order comes over `link`, to its end."""
    code = 1
    try:
        _claim_and_run(link)
        code = 0
    except BaseException:  # this process ends here: say why in the fork server's log
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def prepare() -> None:
    """What can be done before there is an order."""
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def _claim_and_run(link: socket.socket) -> None:
    inbox = wire.Inbox()
    messages: list[wire.Message] = []
    link.settimeout(ORDER_SECONDS)
    while not messages:
        data = link.recv(65_536)
        if not data:
            return
        messages = list(inbox.feed(data))
    link.setblocking(False)
    launch = launch_order.decode(messages[0])
    state = _first_state(launch)
    try:
        claimed = journal.claim(launch.place.journal, state, launch.place.launched)
    except FileExistsError:
        link.send(wire.encode({"exists": True}))
        return
    supervisor = Supervisor(launch, state, claimed)
    supervisor.peers.adopt(link, inbox)
    supervisor.peers.watchers.add(link.fileno())
    for request in messages[1:]:
        supervisor.on_request(link.fileno(), request)
    supervisor.run()


def _first_state(launch: LaunchOrder) -> journal.Record:
    """The journal's first line. Its keys are read by servers of other versions."""
    place = launch.place
    state: journal.Record = {
        "workload": place.workload,
        "pod": place.pod,
        "attempt": place.attempt,
        "boot": procfs.boot_id(),
        "pid": os.getpid(),
        "start": procfs.start_time(os.getpid()),
        "state": "Starting",
        "started_at": now_millis(),
        "network": launch_order.encode(launch.network),
        "ports": launch.ports,
        "listens": launch.listens,
        "holds": launch.holds,
        "owner": launch.owner,
    }
    if launch.readiness is not None:
        state["ready"] = False
    return state
