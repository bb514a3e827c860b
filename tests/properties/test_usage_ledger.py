"""The ledger against a count by ticks: random pods, quotas and nodes, each moment looked at on its own."""

import random
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.control.ledger.periods import Period, SupplySpan, Use
from fairlead.control.ledger.totals import Grouping, PeriodRecords, PeriodTotals, add_up
from fairlead.model.clock import DAY
from fairlead.model.records.ledger import PoolDeserved, ResourceAmounts, SupplyInterval, UsageInterval

#: Everything changes at whole ticks; some of them are the ends of days.
TICK = DAY // 4
LAST = 12
NODES, POOLS, PROJECTS = ("n0", "n1", "n2"), ("a", "b"), ("p0", "p1", "p2")


class Case(NamedTuple):
    records: PeriodRecords
    period: tuple[int, int]


def make_case(seed: int) -> Case:
    chance = random.Random(seed)
    nodes = {name: _spans(chance, partial(_node, chance, name)) for name in NODES}
    projects = {id: _spans(chance, partial(_project, chance, id)) for id in PROJECTS}
    uses = tuple(_use(chance, number) for number in range(chance.randint(0, 10)))
    since = chance.randrange(LAST)
    period = (since, chance.randint(since + 1, LAST))
    return Case(PeriodRecords(Period(0, 0), uses, (), nodes, projects, {}, {}), period)


def _spans(chance: random.Random, make: Callable[[int], SupplyInterval]) -> list[SupplySpan]:
    """A history with up to three changes."""
    moments = [0, *sorted(chance.sample(range(1, LAST), chance.randint(0, 3))), LAST]
    return [SupplySpan(since * TICK, until * TICK, make(until)) for since, until in pairwise(moments)]


def _node(chance: random.Random, name: str, until: int) -> SupplyInterval:
    return SupplyInterval(
        id="",
        subject=name,
        until=until * TICK,
        # Without a pool it did not exist.
        node_pool=chance.choice(("", *POOLS)),
        capacity=ResourceAmounts(chance.randint(0, 4) * 1000, 0, 0),
        available=chance.random() < 0.7,
    )


def _project(chance: random.Random, id: str, until: int) -> SupplyInterval:
    quotas = {pool: PoolDeserved(chance.choice((None, chance.randint(0, 3000), 1000))) for pool in POOLS}
    return SupplyInterval(id="", type="project", subject=id, name=id, until=until * TICK, deserved=quotas)


def _use(chance: random.Random, number: int) -> UsageInterval:
    since = chance.randrange(LAST)
    project = chance.choice(PROJECTS)
    return UsageInterval(
        id=f"pod-{number}",
        since=since * TICK,
        until=chance.randint(since + 1, LAST) * TICK,
        workload_id=f"w{number}",
        workload_name=f"w{number}",
        user="ada",
        project_id=project,
        project_name=project,
        department_id="d",
        department_name="d",
        node_pool=chance.choice(POOLS),
        node=chance.choice(NODES),
        preemptible=chance.random() < 0.7,
        amounts=ResourceAmounts(chance.randint(0, 2500), 0, 0),
    )


def _at(spans: list[SupplySpan], tick: int) -> SupplyInterval:
    """What was there; nothing where the node did not exist."""
    return next(span.supply for span in spans if span.since <= tick * TICK < span.until)


def _pool(use: UsageInterval, node: SupplyInterval) -> str:
    return node.node_pool or use.node_pool


Counts = dict[tuple[str, ...], int]


cases = st.integers(min_value=0, max_value=1_000_000).map(make_case)
many = settings(max_examples=100, deadline=None)


def count_by_ticks(records: PeriodRecords, since: int, until: int) -> tuple[Counts, Counts]:
    """(project, pool, workload, what) and (pool, what) → thousandths of a GPU × ticks; each tick on its own."""
    of_workloads: Counts = {}
    of_pools: Counts = {}

    def add(counts: Counts, key: tuple[str, ...], amount: int) -> None:
        counts[key] = counts.get(key, 0) + amount

    for tick in range(since, until):
        nodes = {name: _at(list(spans), tick) for name, spans in records.nodes.items()}
        there = [use for use in records.uses if use.since <= tick * TICK < use.until]
        for name, node in nodes.items():
            for pool in POOLS:
                held = sum(use.amounts.gpu for use in there if use.node == name and _pool(use, node) == pool)
                capacity = node.capacity.gpu if node.node_pool == pool else 0
                add(of_pools, (pool, "capacity"), capacity)
                add(of_pools, (pool, "used"), held)
                add(of_pools, (pool, "overbooked"), max(0, held - capacity))
                add(of_pools, (pool, "idle" if node.available else "unavailable"), max(0, capacity - held))
        for project in PROJECTS:
            for pool in POOLS:
                deserved = _at(list(records.projects[project]), tick).deserved[pool].gpu
                rest = 10**9 if deserved is None else deserved
                mine = [use for use in there if use.project_id == project and _pool(use, nodes[use.node]) == pool]
                for use in sorted(mine, key=lambda one: (one.preemptible, one.since, one.id)):
                    within = min(use.amounts.gpu, rest)
                    rest -= within
                    add(of_workloads, (project, pool, use.workload_id, "within"), within)
                    add(of_workloads, (project, pool, use.workload_id, "borrowed"), use.amounts.gpu - within)
    return of_workloads, of_pools


def _by_workload(use: Use) -> tuple[str, ...]:
    return use.recorded.project_id, use.pool, use.recorded.workload_id


def _by_project(use: Use) -> tuple[str, ...]:
    return use.recorded.project_id, use.pool


def _totals(case: Case, *, by_day: bool = False, by_project: bool = False) -> PeriodTotals:
    """As the report asks: nodes are cut to the period, and those that did not exist are left out."""
    since, until = case.period
    period = Period(since * TICK, until * TICK)
    nodes = {
        name: [
            SupplySpan(part.since, part.until, span.supply)
            for span in spans
            if span.supply.node_pool and (part := period.clip(span.since, span.until))
        ]
        for name, spans in case.records.nodes.items()
    }
    records = case.records._replace(period=period, nodes=nodes)
    if by_project:
        return add_up(records, Grouping(by_day, False, _by_project, lambda owner, pool: (owner, pool)))
    return add_up(records, Grouping(by_day, False, _by_workload, None))


def _positive(counts: Mapping[tuple[str, ...], int]) -> Counts:
    return {key: amount for key, amount in counts.items() if amount}


@many
@given(cases)
def test_every_second_is_within_quota_or_borrowed(case: Case) -> None:
    of_workloads, _ = count_by_ticks(case.records, *case.period)
    found: Counts = {}
    for (key, _), sums in _totals(case).groups.items():
        found[*key, "within"] = sums.within[0]
        found[*key, "borrowed"] = sums.borrowed[0]
        assert sums.used == [a + b for a, b in zip(sums.within, sums.borrowed, strict=True)]
    assert _positive(found) == {key: amount * TICK for key, amount in _positive(of_workloads).items()}


@many
@given(cases)
def test_used_idle_and_unavailable_are_the_capacity(case: Case) -> None:
    _, of_pools = count_by_ticks(case.records, *case.period)
    totals = _totals(case)
    found: Counts = {}
    for (pool, _), balance in totals.pools.items():
        for what in ("capacity", "used", "idle", "unavailable", "overbooked"):
            found[pool, what] = getattr(balance, what)[0]
        assert balance.used[0] + balance.idle[0] + balance.unavailable[0] == balance.capacity[0] + balance.overbooked[0]
    assert _positive(found) == {key: amount * TICK for key, amount in _positive(of_pools).items()}
    used = sum(sums.used[0] for sums in totals.groups.values())
    assert used == sum(balance.used[0] for balance in totals.pools.values())


@many
@given(cases)
def test_days_and_parts_of_a_period_add_up(case: Case) -> None:
    """Nothing depends on where a report begins or ends, or on the days in between."""
    whole = _totals(case)
    daily: dict[tuple[str, ...], list[int]] = {}
    for (key, _), sums in _totals(case, by_day=True).groups.items():
        within, borrowed = daily.setdefault(key, [0, 0])
        daily[key] = [within + sums.within[0], borrowed + sums.borrowed[0]]
    assert daily == {key: [sums.within[0], sums.borrowed[0]] for (key, _), sums in whole.groups.items()}
    since, until = case.period
    if until - since > 1:
        middle = (since + until) // 2
        parts = [_totals(case._replace(period=period)) for period in ((since, middle), (middle, until))]
        for (key, _), sums in whole.groups.items():
            found = [
                part.groups[key, start * TICK]
                for part, start in zip(parts, (since, middle), strict=True)
                if (key, start * TICK) in part.groups
            ]
            assert sum(part.borrowed[0] for part in found) == sums.borrowed[0]


@many
@given(cases)
def test_no_project_lends_what_it_uses_or_more_than_others_borrow(case: Case) -> None:
    totals = _totals(case, by_project=True)
    lent = sum(sums.lent[0] for sums in totals.groups.values())
    borrowed = sum(sums.borrowed[0] for sums in totals.groups.values())
    received = sum(amount[0] for sums in totals.groups.values() for amount in sums.borrowed_from.values())
    given_away = sum(amount[0] for sums in totals.groups.values() for amount in sums.lent_to.values())
    assert lent == received == given_away <= borrowed
    assert {pool: amount * TICK for pool, amount in _lent_by_ticks(case).items()} == {
        pool: sum(sums.lent[0] for ((_, its), _), sums in totals.groups.items() if its == pool) for pool in POOLS
    }
    for ((project, _), _), sums in totals.groups.items():
        assert project not in sums.lent_to
        assert sum(amount[0] for amount in sums.borrowed_from.values()) <= sums.borrowed[0]


def _lent_by_ticks(case: Case) -> dict[str, int]:
    """By pool: what is borrowed beyond the capacity that is in nobody's quota, as far as quotas are unused."""
    lent = dict.fromkeys(POOLS, 0)
    for tick in range(*case.period):
        nodes = {name: _at(list(spans), tick) for name, spans in case.records.nodes.items()}
        there = [use for use in case.records.uses if use.since <= tick * TICK < use.until]
        for pool in POOLS:
            free = sum(node.capacity.gpu for node in nodes.values() if node.node_pool == pool)
            borrowed = unused = 0
            for project in PROJECTS:
                mine = [use for use in there if use.project_id == project and _pool(use, nodes[use.node]) == pool]
                held = sum(use.amounts.gpu for use in mine)
                deserved = _at(list(case.records.projects[project]), tick).deserved[pool].gpu
                quota = held if deserved is None else deserved
                free -= quota
                borrowed += max(0, held - quota)
                unused += max(0, quota - held)
            lent[pool] += max(0, min(borrowed - max(0, free), unused))
    return lent
