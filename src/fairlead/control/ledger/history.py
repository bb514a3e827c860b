"""The submissions and ends of a period, from the ledger: the lines that `what-if history` replays. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from fairlead.control.ledger.periods import Period, Use, clip_uses
from fairlead.model.clock import SECOND, Millis
from fairlead.model.records.ledger import UsageInterval


class PastRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One workload of the period, as a line of the export that `what-if history` reads."""

    id: str
    #: Seconds since 1970: when it was submitted, or the beginning of the period if that was earlier.
    at: float
    project: str
    #: Seconds in the period in which any of its pods held something.
    duration: float
    #: GPUs of each pod: whole ones, or a part of one.
    gpus: float
    pods: int
    cpu_milli: int
    memory_bytes: int
    priority: int
    preemptible: bool


class RecordedRuns(NamedTuple):
    runs: tuple[PastRun, ...]
    #: Workloads of the period that only waited in it: nothing is known about how long they would run.
    left_out: int


class RunNames(NamedTuple):
    """What the caller may read about workloads and projects, by id. What is missing may not be named."""

    projects: Mapping[str, str]
    #: For projects that may not be named.
    hidden_project: Mapping[str, str]
    priorities: Mapping[str, int]


#: Of a workload whose record is gone.
_PRIORITY = 50


def list_runs(
    uses: Iterable[UsageInterval], waits: Iterable[UsageInterval], period: Period, names: RunNames
) -> RecordedRuns:
    """In the order of their times; workloads that may not be named have a number instead of their id."""
    uses_by_workload: dict[str, list[Use]] = {}
    began: dict[str, Millis] = {}
    for use in clip_uses(uses, period):
        uses_by_workload.setdefault(use.recorded.workload_id, []).append(use)
    for each in (*clip_uses(waits, period), *(use for some in uses_by_workload.values() for use in some)):
        id = each.recorded.workload_id
        began[id] = min(began.get(id, each.since), each.since)
    runs: list[PastRun] = []
    hidden = 0
    for id in sorted(uses_by_workload, key=lambda id: (began[id], id)):
        recorded = uses_by_workload[id][0].recorded
        shown = names.projects.get(recorded.project_id)
        hidden += shown is None
        runs.append(
            _run(
                uses_by_workload[id],
                id=id if shown is not None else f"hidden-{hidden}",
                at=began[id] / SECOND,
                project=shown if shown is not None else names.hidden_project[recorded.project_id],
                priority=names.priorities.get(id, _PRIORITY),
                preemptible=recorded.preemptible,
            )
        )
    return RecordedRuns(tuple(runs), len(began.keys() - uses_by_workload.keys()))


def _run(uses: Sequence[Use], *, id: str, at: float, project: str, priority: int, preemptible: bool) -> PastRun:
    """Its size is what it held when it held most. Pods without a GPU count to those that have one, if there are any."""
    largest = _most_held(uses)
    gpu, cpu, memory = (sum(use.amounts[resource] for use in largest) for resource in range(3))
    of_one = max(use.amounts.gpu for use in largest)
    pods = max(1, round(gpu / of_one)) if of_one else len(largest)
    return PastRun(
        id=id,
        at=at,
        project=project,
        duration=_time_held(uses) / SECOND,
        gpus=of_one / 1000 if of_one < 1000 else ceil(of_one / 1000),
        pods=pods,
        cpu_milli=cpu // pods,
        memory_bytes=memory // pods,
        priority=priority,
        preemptible=preemptible,
    )


def _most_held(uses: Sequence[Use]) -> list[Use]:
    """Those that were held at the same time, when most GPUs were, and then most pods."""
    largest: list[Use] = []
    present: list[Use] = []
    for use in sorted(uses, key=lambda use: use.since):
        present = [*(each for each in present if each.until > use.since), use]
        if _size(present) > _size(largest):
            largest = present
    return largest


def _size(uses: Sequence[Use]) -> tuple[int, int]:
    return sum(use.amounts.gpu for use in uses), len(uses)


def _time_held(uses: Sequence[Use]) -> Millis:
    """Time in which at least one of them was held."""
    total = reached = 0
    for use in sorted(uses, key=lambda use: use.since):
        total += max(0, use.until - max(use.since, reached))
        reached = max(reached, use.until)
    return total
