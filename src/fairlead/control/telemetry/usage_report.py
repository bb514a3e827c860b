"""The report of usage: reads the ledger and what is still open, and adds it up for a caller. Reads only.

Called by the API. A caller sees the rows of their own projects; what others have is counted, never named.
"""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.draft import WAITING_PHASES
from fairlead.control.decide.expand import podsets_of
from fairlead.control.ledger.intervals import LEDGER, close_node, close_owner, use_of_pod, wait_of_workload
from fairlead.control.ledger.periods import Period, SupplySpan
from fairlead.control.ledger.report import Dimension, UsageReport, UsageRights, render_usage
from fairlead.control.ledger.totals import PeriodRecords
from fairlead.control.workloads.read import load_workloads_of
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import Invalid, NotFound
from fairlead.model.records.ledger import SupplyInterval, UsageInterval
from fairlead.model.records.organization import Department, Node, NodePool
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS, SUPPLY, USAGE, WORKLOADS

_NEVER: Millis = 2**62


class UsageQuestion(msgspec.Struct, frozen=True, kw_only=True):
    since: Millis
    #: None for now.
    until: Millis | None = None
    by: tuple[Dimension, ...] = ("project",)
    #: The only cluster that counts; empty for all.
    cluster_id: str = ""


async def report_usage(context: Context, caller: Caller, question: UsageQuestion) -> UsageReport:
    """Add up a period. What is still running or waiting counts until now."""
    access.check(caller, "workloads:read")
    period, start = await find_recorded_period(context, question.since, question.until)
    if question.cluster_id and question.cluster_id not in context.directory.clusters:
        raise NotFound(f"There is no cluster with the id {question.cluster_id[:60]!r}")
    records = await load_period(context.for_cluster(question.cluster_id) if question.cluster_id else context, period)
    rights = UsageRights(access.visible_projects(caller), access.visible_departments(caller, "departments:read"))
    return await context.questions.ask_uncached(caller.name, lambda: render_usage(records, question.by, rights, start))


async def find_recorded_period(context: Context, since: Millis, until: Millis | None) -> tuple[Period, Millis]:
    """The part of a period that is in the ledger, until now at most; and when the ledger begins."""
    now = context.clock()
    until = now if until is None else min(until, now)
    before = await context.store.get(SUPPLY, LEDGER)
    start = now if before is None else before.until
    if since >= until:
        raise Invalid(f"The period is empty: it begins at {iso(since)} and ends at {iso(until)}")
    if start >= until:
        raise Invalid(f"Nothing is recorded before {iso(start)}; ask for a period that ends later")
    return Period(max(since, start), until), start


async def load_period(context: Context, period: Period) -> PeriodRecords:
    """Of all clusters, or of the cluster that the context is a view of."""
    now = context.clock()
    # What is open is read first: an interval that is closed meanwhile is then read twice, and counted once.
    active = (Where("is_active", Comparison.EQUAL, 1),)
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=active))
    open_workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=active))
    owners = {one.id: one for one in open_workloads}
    owners |= await load_workloads_of(context, [pod for pod in pods if pod.workload_id not in owners])
    inside = (Where("until", Comparison.ABOVE, period.since), Where("since", Comparison.BELOW, period.until))
    closed: list[UsageInterval] = await context.store.find(Query(collection=USAGE, where=inside))
    supply: list[SupplyInterval] = await context.store.find(Query(collection=SUPPLY, order=(("until", False),)))
    uses = {pod.id: use_of_pod(owners[pod.workload_id], pod, now) for pod in pods if pod.workload_id in owners}
    uses |= {interval.id: interval for interval in closed if interval.type == "used"}
    waits = {
        (one.id, one.phase_updated_at): wait_of_workload(one, podsets_of(one), one.phase_updated_at, now)
        for one in open_workloads
        if one.phase in WAITING_PHASES
    }
    waits |= {(interval.workload_id, interval.since): interval for interval in closed if interval.type == "waited"}
    directory = context.directory
    nodes = {
        node.unique_name: close_node(node.unique_name, node, _pools_beside(context, node), period.until)
        for node in directory.nodes.values()
    }
    timelines = _timelines([one for one in supply if _has_node(context, one)], "node", nodes)
    return PeriodRecords(
        period=period,
        uses=tuple(_on_unique_node(context, one) for one in uses.values() if _has_project(context, one)),
        waits=tuple(one for one in waits.values() if _has_project(context, one)),
        nodes={name: _clip(spans, period) for name, spans in timelines.items()},
        projects=_timelines(supply, "project", _present(directory.projects)),
        departments=_timelines(supply, "department", _present(directory.departments)),
        department_of={id: project.department_id for id, project in directory.projects.items()},
    )


def _pools_beside(context: Context, node: Node) -> Iterable[NodePool]:
    """The node pools of a node's cluster; those of several clusters may have the same labels."""
    return context.for_cluster(context.directory.cluster_of(node)).directory.node_pools.values()


def _has_project(context: Context, interval: UsageInterval) -> bool:
    """Whether it belongs to this context's clusters. That of a deleted project does only if all clusters count."""
    return context.made_from is None or interval.project_id in context.directory.projects


def _has_node(context: Context, supply: SupplyInterval) -> bool:
    if context.made_from is None:
        return True
    added, _, _ = supply.subject.rpartition("/")
    return (added or context.directory.first_cluster.id) == context.directory.cluster_id


def _on_unique_node(context: Context, use: UsageInterval) -> UsageInterval:
    """With the node's name in the ledger: nodes of two clusters may be called the same."""
    project = context.directory.projects.get(use.project_id)
    if project is None or project.cluster_id == context.directory.first_cluster.id:
        return use
    located: UsageInterval = msgspec.structs.replace(use, node=f"{project.cluster_id}/{use.node}")
    return located


def _present(owners: Mapping[str, Department]) -> dict[str, SupplyInterval]:
    return {id: close_owner(owner, _NEVER) for id, owner in owners.items()}


def _timelines(
    closed: Iterable[SupplyInterval], type: str, present: Mapping[str, SupplyInterval]
) -> dict[str, list[SupplySpan]]:
    """The intervals of each subject in order; each begins when the previous one ends."""
    timelines: dict[str, list[SupplySpan]] = {}
    last = (msgspec.structs.replace(supply, until=_NEVER) for supply in present.values())
    for supply in (*(one for one in closed if one.type == type), *last):
        spans = timelines.setdefault(supply.subject, [])
        spans.append(SupplySpan(spans[-1].until if spans else 0, supply.until, supply))
    return timelines


def _clip(spans: Iterable[SupplySpan], period: Period) -> list[SupplySpan]:
    clipped = ((span, period.clip(span.since, span.until)) for span in spans if span.supply.node_pool)
    return [SupplySpan(part.since, part.until, span.supply) for span, part in clipped if part]
