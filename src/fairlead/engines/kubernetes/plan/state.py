"""What the engine keeps of each workload while it is in its care; `engine.py` alone reads and writes it."""

import asyncio

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES
from fairlead.model.pods.podset import PodSet


class WorkloadState:
    """One workload in our care: what is wished of it, what was done, and what came of it."""

    __slots__ = (
        "applied",
        "awaiting_pods_of",
        "changed",
        "completed_run",
        "desired",
        "dry_run_for",
        "has_no_pods",
        "is_removed",
        "launch",
        "losses",
        "losses_handled",
        "lost_at",
        "may_predate_server",
        "needs_reconcile",
        "podsets",
        "refused",
        "task",
        "trouble",
    )

    def __init__(self) -> None:
        self.desired: DesiredWorkload | DeleteWorkload | None = None
        self.applied: DesiredWorkload | DeleteWorkload | None = None
        self.task: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()
        self.refused = ""
        self.trouble = ""
        self.has_no_pods = False
        self.is_removed = False
        #: Whether its objects may be in the cluster since before this server began.
        self.may_predate_server = True
        #: How often something that makes its pods was seen to be gone, and how many of these losses are made good.
        self.losses = self.losses_handled = 0
        #: When that was last.
        self.lost_at = float("-inf")
        self.launch = NO_LAUNCH_CHOICES
        #: What it consists of as it was wished last; empty before the first wish.
        self.podsets: tuple[PodSet, ...] = ()
        #: Uids of what says that it is over while its pods are being asked for.
        self.awaiting_pods_of: set[str] = set()
        #: The run of which a group of our own has ended well, though nothing may be left that says so.
        self.completed_run = 0
        #: The complaint after which the cluster was asked whether its pods could be made at all.
        self.dry_run_for = ""
        #: Whether its pods are ours to make, or its pools ours to try.
        self.needs_reconcile = False
