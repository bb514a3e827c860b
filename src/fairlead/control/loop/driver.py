"""What the loop does differently for the two kinds of engine.

`PodDriver` asks our scheduler and orders single pods. `ClusterDriver` orders whole workloads, whose pods the cluster
creates and places. The driver is chosen once, when a server takes over its engine; the loop itself never asks which.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from fairlead.control.context import Context
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import PhaseInputs
from fairlead.control.loop.board import Board
from fairlead.engines.base import DropClaims, Engine, Review
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Node
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.collections import CLAIMS

OrderT = TypeVar("OrderT")
TakenT = TypeVar("TakenT", contravariant=True)


class DirectoryReaction(NamedTuple, Generic[OrderT]):
    """What follows from a change of projects, pools, quotas or assets."""

    orders: list[OrderT]
    #: Workloads to decide on again.
    workload_ids: set[str]


class OrderedEngine(Engine, Protocol[TakenT]):
    """An engine by the orders that it takes."""

    async def apply(self, orders: Sequence[TakenT]) -> None: ...


class Driver(Protocol[OrderT]):
    """Between the loop and its engine. Nothing here records; orders are applied after the record that asks for them."""

    @property
    def engine(self) -> OrderedEngine[OrderT]: ...

    @property
    def board(self) -> Board: ...

    @property
    def next_change_at(self) -> Millis | None:
        """When placement may change by time alone."""
        ...

    async def recover(self, workloads: Iterable[Workload]) -> None:
        """After a start, with everything on the board: tell the engine what still exists."""
        ...

    async def resume(self) -> list[OrderT]:
        """After a start and the first observation: take over what runs and is not on record; returns the orders that
        were recorded and perhaps never given."""
        ...

    async def observe(self) -> bool:
        """Take and keep the engine's reports, which it gives only once; whether its nodes have changed."""
        ...

    async def take_reported(self) -> set[str]:
        """The workloads on the board whose reports wait for a decision."""
        ...

    def retry_reports(self, workload_ids: Collection[str]) -> None:
        """The turn is over; nothing was recorded for these workloads, so their reports are decided on again."""
        ...

    def decide(self, entry: WorkloadEntry, now: Millis) -> Draft: ...

    async def place(self, drafts: dict[str, Draft], now: Millis) -> bool:
        """Write placements and evictions into the drafts; whether the scheduler was asked."""
        ...

    def orders(self, draft: Draft) -> list[OrderT]: ...

    def on_recorded(self, draft: Draft, workload: Workload) -> None: ...

    def on_read_again(self, before: WorkloadEntry, after: WorkloadEntry, pods: Sequence[Pod]) -> list[OrderT]:
        """A record whose commit outcome was unknown was read from the store; the orders that it still asks for."""
        ...

    async def on_directory_change(self, changed: Sequence[tuple[str, str]]) -> DirectoryReaction[OrderT]: ...

    def with_cordon(self, observed: Node, before: Node | None) -> Node:
        """An observed node, with the cordons and drains that are on record."""
        ...

    async def finish(self) -> None:
        """The loop has ended: store what is left."""
        ...


async def drop_deleted_claims(context: Context, changed: Iterable[tuple[str, str]]) -> list[DropClaims]:
    """The order for the claims among the changed records that no longer exist."""
    ids = dict.fromkeys(id for collection, id in changed if collection == CLAIMS.name)
    deleted = frozenset([id for id in ids if await context.store.get(CLAIMS, id) is None])
    return [DropClaims(deleted)] if deleted else []


def has_node(context: Context, name: str) -> bool:
    """Whether there is a node of that name on which pods may start."""
    return any(node.name == name and node.ready for node in context.directory.nodes.values())


def is_draining(context: Context, name: str) -> bool:
    """Whether pods are to be evicted from the node of that name."""
    return any(node.name == name and node.draining for node in context.directory.nodes.values())


def make_inputs(context: Context, review: Callable[[PodSet], Review]) -> dict[str, PhaseInputs]:
    """What decisions need beyond the workload, by kind."""
    return {
        key: PhaseInputs(
            outcome=kind.outcome,
            review=review,
            has_node=lambda name: has_node(context, name),
            is_draining=lambda name: is_draining(context, name),
            load=context.url_registry.traffic.load,
            expose=context.url_registry.claim,
            idle_time=lambda pod_ids: (
                samples.idle_time(pod_ids) if (samples := context.all_clusters.usage_samples) else 0
            ),
        )
        for key, kind in KINDS.items()
    }
