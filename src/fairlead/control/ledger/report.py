"""The report of usage: groups and node pools in hours, as far as the caller may see them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from fairlead.control.ledger.balance import Balance
from fairlead.control.ledger.periods import Use
from fairlead.control.ledger.totals import Grouping, PeriodRecords, PeriodTotals, Sums, add_up
from fairlead.model.clock import SECOND, Millis, iso
from fairlead.model.records.ledger import UsageInterval

Dimension = Literal["workload", "user", "project", "department", "nodepool", "day"]
DIMENSIONS: tuple[Dimension, ...] = ("workload", "user", "project", "department", "nodepool", "day")
#: Groups that are smaller than a project: what a project lends cannot be attributed to them.
_WITHIN_PROJECTS = frozenset({"workload", "user"})
#: Stands for everything that the caller may not see.
_OTHERS = "others"
_HOUR = 3600 * SECOND
_GIBIBYTE = 1 << 30
#: Of hours: the last one is less than four milliseconds.
_DIGITS = 6


class Hours(msgspec.Struct, frozen=True, rename="camel"):
    """GPUs, CPU cores and GiB of memory, times hours."""

    gpu_hours: float = 0.0
    cpu_hours: float = 0.0
    memory_gib_hours: float = 0.0


class Counterpart(msgspec.Struct, frozen=True, rename="camel"):
    """A project or department that lent or borrowed; `others` if the caller may not see it."""

    name: str
    hours: Hours


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One group. It has only the members by which the report is grouped."""

    day: str | None = None
    department: str | None = None
    department_id: str | None = None
    project: str | None = None
    project_id: str | None = None
    user: str | None = None
    workload: str | None = None
    workload_id: str | None = None
    node_pool: str | None = None
    used: Hours
    within_quota: Hours
    borrowed: Hours
    waited: Hours
    #: The hours that workloads waited, whatever they requested.
    waited_hours: float
    #: Missing if groups are smaller than projects.
    lent: Hours | None = None
    lent_to: tuple[Counterpart, ...] = ()
    borrowed_from: tuple[Counterpart, ...] = ()


class PoolRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Everything that a node pool had: used + idle + unavailable = capacity + overbooked."""

    node_pool: str
    day: str | None = None
    capacity: Hours
    used: Hours
    idle: Hours
    unavailable: Hours
    overbooked: Hours


class UsageReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    since: str
    until: str
    #: Since when the ledger is complete; the report does not begin earlier.
    ledger_start: str
    by: tuple[Dimension, ...]
    #: Whose quota decides what is borrowed and lent.
    quota_of: Literal["project", "department"]
    rows: tuple[UsageRow, ...]
    node_pools: tuple[PoolRow, ...]


class UsageRights(msgspec.Struct, frozen=True):
    """The projects and departments that a caller may see; None for all of them."""

    projects: frozenset[str] | None
    departments: frozenset[str] | None

    def sees(self, owner: str, *, is_department: bool) -> bool:
        seen = self.departments if is_department else self.projects
        return seen is None or owner in seen


class _Names(msgspec.Struct, frozen=True):
    """Names by id. An owner or workload that was deleted keeps its last one."""

    workloads: dict[str, str]
    projects: dict[str, str]
    departments: dict[str, str]
    #: The department of each project.
    department_of: dict[str, str]


def render_usage(records: PeriodRecords, by: Sequence[Dimension], rights: UsageRights, start: Millis) -> UsageReport:
    of_departments = "department" in by and "project" not in by
    names = _collect_names(records)
    members = [one for one in DIMENSIONS if one in by and one != "day"]

    def key(use: Use) -> tuple[str, ...] | None:
        recorded = use.recorded
        if not rights.sees(recorded.project_id, is_department=False):
            return None
        return tuple(_value(one, recorded, use.pool) for one in members)

    def owner_key(owner: str, pool: str) -> tuple[str, ...] | None:
        if not rights.sees(owner, is_department=of_departments):
            return None
        department = owner if of_departments else names.department_of.get(owner, "")
        values = {"project": owner, "department": department, "nodepool": pool}
        return tuple(values[one] for one in members)

    has_owners = _WITHIN_PROJECTS.isdisjoint(by)
    grouping = Grouping("day" in by, of_departments, key, owner_key if has_owners else None)
    totals = add_up(records, grouping)
    owners = names.departments if of_departments else names.projects
    shown = {id: name for id, name in owners.items() if rights.sees(id, is_department=of_departments)}
    table = _Table(tuple(members), "day" in by, names, shown if has_owners else None)
    return UsageReport(
        since=iso(records.period.since),
        until=iso(records.period.until),
        ledger_start=iso(start),
        by=tuple(by),
        quota_of="department" if of_departments else "project",
        rows=tuple(sorted((table.row(*one) for one in totals.groups.items()), key=_order)),
        node_pools=tuple(_pool_rows(totals, by_day="day" in by)),
    )


def _collect_names(records: PeriodRecords) -> _Names:
    names = _Names({}, {}, {}, dict(records.department_of))
    for interval in sorted((*records.uses, *records.waits), key=lambda one: one.until):
        names.workloads[interval.workload_id] = interval.workload_name
        names.projects[interval.project_id] = interval.project_name
        names.departments[interval.department_id] = interval.department_name
        names.department_of.setdefault(interval.project_id, interval.department_id)
    for owners, collected in ((records.projects, names.projects), (records.departments, names.departments)):
        collected.update({id: spans[-1].supply.name for id, spans in owners.items() if spans})
    return names


def _value(dimension: Dimension, use: UsageInterval, pool: str) -> str:
    values = {
        "workload": use.workload_id,
        "user": use.user,
        "project": use.project_id,
        "department": use.department_id,
        "nodepool": pool,
    }
    return values[dimension]


class _Table(msgspec.Struct, frozen=True):
    """How groups become rows."""

    members: tuple[Dimension, ...]
    by_day: bool
    names: _Names
    #: The names of owners that the caller may see; None if groups are smaller than owners.
    owners: Mapping[str, str] | None

    def row(self, group: tuple[tuple[str, ...], Millis], sums: Sums) -> UsageRow:
        key, day = group
        values = dict(zip(self.members, key, strict=True))
        project, department = values.get("project"), values.get("department")
        workload = values.get("workload")
        has_owners = self.owners is not None
        return UsageRow(
            day=iso(day)[:10] if self.by_day else None,
            department=None if department is None else self.names.departments.get(department, department),
            department_id=department,
            project=None if project is None else self.names.projects.get(project, project),
            project_id=project,
            user=values.get("user"),
            workload=None if workload is None else self.names.workloads.get(workload, workload),
            workload_id=workload,
            node_pool=values.get("nodepool"),
            used=_hours(sums.used),
            within_quota=_hours(sums.within),
            borrowed=_hours(sums.borrowed),
            waited=_hours(sums.waited),
            waited_hours=round(sums.waited_time / _HOUR, _DIGITS),
            lent=_hours(sums.lent) if has_owners else None,
            lent_to=self._counterparts(sums.lent_to),
            borrowed_from=self._counterparts(sums.borrowed_from),
        )

    def _counterparts(self, amounts: Mapping[str, Sequence[int]]) -> tuple[Counterpart, ...]:
        """Those that the caller may see by name, all others as one."""
        by_name: dict[str, list[int]] = {}
        for owner, amount in amounts.items():
            total = by_name.setdefault((self.owners or {}).get(owner, _OTHERS), [0, 0, 0])
            total[:] = map(sum, zip(total, amount, strict=True))
        return tuple(Counterpart(name, _hours(amount)) for name, amount in sorted(by_name.items()))


def _order(row: UsageRow) -> tuple[str, ...]:
    parts = (row.day, row.department, row.project, row.user, row.workload, row.workload_id, row.node_pool)
    return tuple(part or "" for part in parts)


def _pool_rows(totals: PeriodTotals, *, by_day: bool) -> Iterable[PoolRow]:
    for (pool, day), balance in sorted(totals.pools.items()):
        yield _pool_row(pool, iso(day)[:10] if by_day else None, balance)


def _pool_row(pool: str, day: str | None, balance: Balance) -> PoolRow:
    return PoolRow(
        node_pool=pool,
        day=day,
        capacity=_hours(balance.capacity),
        used=_hours(balance.used),
        idle=_hours(balance.idle),
        unavailable=_hours(balance.unavailable),
        overbooked=_hours(balance.overbooked),
    )


def _hours(amounts: Sequence[int]) -> Hours:
    gpu, cpu, memory = amounts
    return Hours(
        round(gpu / 1000 / _HOUR, _DIGITS),
        round(cpu / 1000 / _HOUR, _DIGITS),
        round(memory / _GIBIBYTE / _HOUR, _DIGITS),
    )
