"""What the engine keeps of each workload while it is in its care; `engine.py` alone reads and writes it."""

import asyncio

from fairlead.engines.base import Remove, WorkloadRun
from fairlead.engines.kubernetes.render.context import NOTHING_BEGUN
from fairlead.model.pods.podset import PodSet


class Charge:
    """One workload in our care: what is wished of it, what was done, and what came of it."""

    __slots__ = (
        "begun",
        "completed_run",
        "done",
        "is_bare",
        "is_from_before",
        "is_removed",
        "losses",
        "lost_at",
        "news",
        "podsets",
        "redressed",
        "refused",
        "settling",
        "task",
        "tends",
        "tried",
        "trouble",
        "wish",
    )

    def __init__(self) -> None:
        self.wish: WorkloadRun | Remove | None = None
        self.done: WorkloadRun | Remove | None = None
        self.task: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.refused = ""
        self.trouble = ""
        self.is_bare = False
        self.is_removed = False
        #: Whether its objects may be in the cluster since before this server began.
        self.is_from_before = True
        #: How often something that makes its pods was seen to be gone, and how many of these losses are made good.
        self.losses = self.redressed = 0
        #: When that was last.
        self.lost_at = float("-inf")
        self.begun = NOTHING_BEGUN
        #: What it consists of as it was wished last; empty before the first wish.
        self.podsets: tuple[PodSet, ...] = ()
        #: Uids of what says that it is over while its pods are being asked for.
        self.settling: set[str] = set()
        #: The run of which a group of our own has ended well, though nothing may be left that says so.
        self.completed_run = 0
        #: The complaint after which the cluster was asked whether its pods could be made at all.
        self.tried = ""
        #: Whether its pods are ours to make, or its pools ours to try.
        self.tends = False
