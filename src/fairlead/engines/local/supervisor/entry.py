"""How a fork becomes the supervisor of one attempt: it hears its order, claims the attempt, and watches to the end.

Called by the fork server in the new process. Whoever claims an attempt first has it; it decides nothing else.
"""

import os
import socket
import sys
from typing import NoReturn

from fairlead.engines.local import journal, wire
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
    except BaseException:  # the end of this process: say why where the operator looks, and leave
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def prepare() -> None:
    """What can be done before there is an order."""
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def _claim_and_run(link: socket.socket) -> None:
    inbox = wire.Inbox()
    orders: list[wire.Message] = []
    link.settimeout(ORDER_SECONDS)
    while not orders:
        data = link.recv(65_536)
        if not data:
            return
        orders = list(inbox.feed(data))
    link.setblocking(False)
    order = orders[0]
    state = {
        "workload": order["workload"],
        "pod": order["pod"],
        "attempt": order["attempt"],
        "boot": procfs.boot_id(),
        "pid": os.getpid(),
        "start": procfs.start_time(os.getpid()),
        "state": "Starting",
        "started_at": now_millis(),
        **{name: order[name] for name in ("network", "ports", "listens", "holds", "owner")},
    }
    if order["probe"]:
        state["ready"] = False
    try:
        claimed = journal.claim(order["journal"], state)
    except FileExistsError:
        link.send(wire.encode({"exists": True}))
        return
    supervisor = Supervisor(order, state, claimed)
    supervisor.peers.adopt(link, inbox)
    supervisor.peers.watchers.add(link.fileno())
    for request in orders[1:]:
        supervisor.obey(link.fileno(), request)
    supervisor.run()
