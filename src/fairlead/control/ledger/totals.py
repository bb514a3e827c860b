"""Adds up a period by workload, user, project, department, node pool and day. Pure. Called by the report."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead.control.ledger.balance import Balance, balance_pools
from fairlead.control.ledger.loans import Loan, PoolHistory, find_loans
from fairlead.control.ledger.periods import RESOURCES, Period, SupplySpan, Use, clip_uses, locate_uses
from fairlead.control.ledger.quota_split import QuotaStep, split_by_quota
from fairlead.model.clock import DAY, Millis
from fairlead.model.records.ledger import PoolDeserved, UsageInterval

#: An owner without a quota in a pool can only borrow there.
_NO_QUOTA = PoolDeserved()


class PeriodRecords(NamedTuple):
    """Everything that is recorded about a period."""

    period: Period
    uses: Sequence[UsageInterval]
    waits: Sequence[UsageInterval]
    #: By name.
    nodes: Mapping[str, Sequence[SupplySpan]]
    #: By id.
    projects: Mapping[str, Sequence[SupplySpan]]
    departments: Mapping[str, Sequence[SupplySpan]]
    #: The department of each project, by id.
    department_of: Mapping[str, str]


class Grouping(NamedTuple):
    """By what is added up, and whose quota counts."""

    by_day: bool
    of_departments: bool
    #: The group of a use, without its day; None if it is in none.
    key: Callable[[Use], tuple[str, ...] | None]
    #: The same for an owner (by id) in a pool; no function if groups are smaller than owners.
    owner_key: Callable[[str, str], tuple[str, ...] | None] | None


def _zeros() -> list[int]:
    return [0, 0, 0]


class Sums(msgspec.Struct):
    """What a group used, borrowed, lent and waited for, in `ResourceAmounts` × milliseconds."""

    used: list[int] = msgspec.field(default_factory=_zeros)
    within: list[int] = msgspec.field(default_factory=_zeros)
    borrowed: list[int] = msgspec.field(default_factory=_zeros)
    waited: list[int] = msgspec.field(default_factory=_zeros)
    #: The time that workloads waited, whatever they requested.
    waited_time: Millis = 0
    lent: list[int] = msgspec.field(default_factory=_zeros)
    #: By the other owner's id.
    lent_to: dict[str, list[int]] = {}
    borrowed_from: dict[str, list[int]] = {}


#: A group, and the beginning of its day (of the period, if days are added up).
GroupKey = tuple[tuple[str, ...], Millis]


class PeriodTotals(NamedTuple):
    groups: dict[GroupKey, Sums]
    pools: dict[tuple[str, Millis], Balance]


def add_up(records: PeriodRecords, grouping: Grouping) -> PeriodTotals:
    period = records.period
    days = period.days() if grouping.by_day else [period]
    uses = list(locate_uses(clip_uses(records.uses, period), records.nodes))
    groups: dict[GroupKey, Sums] = {}
    owners = records.departments if grouping.of_departments else records.projects
    by_pool = _by_pool_and_owner(uses, grouping)
    for pool, by_owner in by_pool.items():
        for owner, of_owner in by_owner.items():
            _add_uses(groups, grouping, of_owner, _Quotas(owners.get(owner, ()), pool), days)
    _add_waits(groups, grouping, clip_uses(records.waits, period), days)
    pools = balance_pools(records.nodes, uses, days)
    if grouping.owner_key is not None:
        for pool in sorted({pool for pool, _ in pools} | by_pool.keys()):
            _add_loans(groups, grouping, pool, list(_loans(records, owners, pool, by_pool.get(pool, {}), days)))
    return PeriodTotals(groups, pools)


def _by_pool_and_owner(uses: Iterable[Use], grouping: Grouping) -> dict[str, dict[str, list[Use]]]:
    by_pool: dict[str, dict[str, list[Use]]] = {}
    for use in uses:
        owner = use.recorded.department_id if grouping.of_departments else use.recorded.project_id
        by_pool.setdefault(use.pool, {}).setdefault(owner, []).append(use)
    return by_pool


class _Quotas(NamedTuple):
    """The quotas of one owner in one pool over time."""

    spans: Sequence[SupplySpan]
    pool: str

    def steps(self, resource: int) -> list[QuotaStep]:
        steps = [QuotaStep(span.since, span.supply.deserved.get(self.pool, _NO_QUOTA)[resource]) for span in self.spans]
        if self.spans:
            # It has none after it was deleted.
            steps.append(QuotaStep(self.spans[-1].until, 0))
        return steps


def _sums(groups: dict[GroupKey, Sums], key: tuple[str, ...] | None, day: Period) -> Sums:
    """The sums of a group; those of no group are forgotten."""
    if key is None:
        return Sums()
    sums = groups.get((key, day.since))
    if sums is None:
        sums = groups[key, day.since] = Sums()
    return sums


def _parts(days: Sequence[Period], since: Millis, until: Millis) -> Iterator[tuple[Period, Millis]]:
    """The days of an interval, and how much of it is in each."""
    if len(days) == 1:
        yield days[0], until - since
        return
    first = since // DAY - days[0].since // DAY
    for day in days[first : (until - 1) // DAY - days[0].since // DAY + 1]:
        yield day, min(day.until, until) - max(day.since, since)


def _add_uses(
    groups: dict[GroupKey, Sums],
    grouping: Grouping,
    uses: Sequence[Use],
    quotas: _Quotas,
    days: Sequence[Period],
) -> None:
    for resource in RESOURCES:
        for part in split_by_quota(uses, quotas.steps(resource), resource):
            amount = part.use.amounts[resource]
            key = grouping.key(part.use)
            for day, time in _parts(days, part.since, part.until):
                sums = _sums(groups, key, day)
                sums.used[resource] += amount * time
                sums.within[resource] += part.within * time
                sums.borrowed[resource] += (amount - part.within) * time


def _add_waits(groups: dict[GroupKey, Sums], grouping: Grouping, waits: Iterable[Use], days: Sequence[Period]) -> None:
    for wait in waits:
        for day, time in _parts(days, wait.since, wait.until):
            sums = _sums(groups, grouping.key(wait), day)
            sums.waited_time += time
            for resource in RESOURCES:
                sums.waited[resource] += wait.amounts[resource] * time


def _loans(
    records: PeriodRecords,
    owners: Mapping[str, Sequence[SupplySpan]],
    pool: str,
    by_owner: Mapping[str, Sequence[Use]],
    days: Sequence[Period],
) -> Iterator[tuple[int, Period, Loan]]:
    cuts = [day.since for day in days] + [records.period.until]
    for resource in RESOURCES:
        used = [
            change
            for owner, uses in by_owner.items()
            for use in uses
            for change in (
                (use.since, owner, use.amounts[resource]),
                (use.until, owner, -use.amounts[resource]),
            )
        ]
        deserved = [
            (step.at, owner, step.deserved)
            for owner, spans in owners.items()
            for step in _Quotas(spans, pool).steps(resource)
        ]
        capacity = [
            change
            for spans in records.nodes.values()
            for span in spans
            if span.supply.node_pool == pool
            for change in (
                (span.since, span.supply.capacity[resource]),
                (span.until, -span.supply.capacity[resource]),
            )
        ]
        starts = {day.since: day for day in days}
        for loan in find_loans(PoolHistory(used, deserved, capacity), cuts):
            yield resource, starts[loan.since], loan


def _add_loans(
    groups: dict[GroupKey, Sums],
    grouping: Grouping,
    pool: str,
    loans: Iterable[tuple[int, Period, Loan]],
) -> None:
    if grouping.owner_key is None:
        return
    for resource, day, loan in loans:
        lender = _sums(groups, grouping.owner_key(loan.lender, pool), day)
        lender.lent[resource] += loan.amount
        lender.lent_to.setdefault(loan.borrower, _zeros())[resource] += loan.amount
        borrower = _sums(groups, grouping.owner_key(loan.borrower, pool), day)
        borrower.borrowed_from.setdefault(loan.lender, _zeros())[resource] += loan.amount
