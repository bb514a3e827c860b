"""What this machine, or the operator's declaration of nodes, can give."""

import os

from fairlead.model.clock import Millis
from fairlead.model.org import Node


def observe_machine(now: Millis) -> Node:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    name = os.uname().nodename
    return Node(
        id=name,
        name=name,
        cpu_milli=len(os.sched_getaffinity(0)) * 1000,
        memory_bytes=memory,
        created_at=now,
    )
