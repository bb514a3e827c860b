"""Who borrowed and lent how many GPU-seconds in a replay, in the same sense as the ledger of usage.

Called by `report.py`. The ledger also tells who lent to whom (`control/ledger/loans.py`), which costs a step for every
pair of projects; here a change costs a step for one project, so that histories of a thousand projects are no problem.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead.scheduling.model.snapshot import DEFAULT_POOL, Queue, Snapshot
from fairlead.simulator.replay import ReplayResult


class Lending(NamedTuple):
    """GPU-seconds of one project."""

    #: What it used above its quota.
    borrowed: float
    #: What others used of its quota while it did not.
    lent: float


def project_queues(cluster: Snapshot) -> dict[str, Queue]:
    """The queues that can have workloads, by name, with their quotas in the node pool of replayed jobs."""
    parents = {queue.parent for queue in cluster.queues}
    queues = (queue for queue in cluster.queues if queue.node_pool == DEFAULT_POOL)
    return {queue.name: queue for queue in queues if queue.name not in parents}


def find_lending(cluster: Snapshot, played: ReplayResult) -> dict[str, Lending]:
    """Of every project of the cluster by name, also of those that submitted nothing."""
    pool = _LendingPool(cluster)
    for at, project, more in played.gpu_changes:
        pool.change(at, project, more)
    return {name: pool.count_until_now(owner) for name, owner in pool.owners.items()}


class _Owner:
    def __init__(self, quota: float | None) -> None:
        #: None if it is unlimited: such a project neither borrows nor lends.
        self.quota = quota
        self.used = self.borrowed = self.lent = 0.0
        #: The time and the pool's `lent_per_gpu` up to which both are counted.
        self.since = self.counted = 0.0

    @property
    def excess(self) -> float:
        """GPUs above its quota; what it leaves unused of it if negative."""
        return 0.0 if self.quota is None else self.used - self.quota

    @property
    def promise(self) -> float:
        return self.used if self.quota is None else self.quota


class _LendingPool:
    """The quotas and the use of the GPUs at one time. Replayed jobs only ask for the default node pool."""

    def __init__(self, cluster: Snapshot) -> None:
        quotas = {name: queue.resources.gpu.quota for name, queue in project_queues(cluster).items()}
        self.owners = {name: _Owner(None if quota < 0 else quota) for name, quota in quotas.items()}
        capacity = sum(node.gpu for node in cluster.nodes if node.node_pool == DEFAULT_POOL)
        #: Capacity that is in nobody's quota. It is borrowed first.
        self.spare = capacity - sum(owner.promise for owner in self.owners.values())
        self.borrowed = 0.0
        self.unused = -sum(owner.excess for owner in self.owners.values())
        self.now = 0.0
        #: Seconds for which each GPU of unused quota has been lent so far. All lend in proportion to what they leave.
        self.lent_per_gpu = 0.0

    def change(self, at: float, project: str, more: float) -> None:
        self._advance(at)
        owner = self.owners[project]
        self.count_until_now(owner)
        before, promised = owner.excess, owner.promise
        owner.used += more
        self.borrowed += max(owner.excess, 0.0) - max(before, 0.0)
        self.unused += max(-owner.excess, 0.0) - max(-before, 0.0)
        self.spare -= owner.promise - promised

    def _advance(self, at: float) -> None:
        lent = min(self.borrowed - max(self.spare, 0.0), self.unused)
        if lent > 0:
            self.lent_per_gpu += (at - self.now) * lent / self.unused
        self.now = at

    def count_until_now(self, owner: _Owner) -> Lending:
        owner.borrowed += max(owner.excess, 0.0) * (self.now - owner.since)
        owner.lent += max(-owner.excess, 0.0) * (self.lent_per_gpu - owner.counted)
        owner.since, owner.counted = self.now, self.lent_per_gpu
        return Lending(owner.borrowed, owner.lent)
