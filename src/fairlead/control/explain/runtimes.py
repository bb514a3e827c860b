"""What is known about the running times of open workloads: what they declare, and how long similar ones ran.

Similar are, in this order: runs of the same user with the same image and command; runs of the same project with the
same compute request; runs of the same project. Reads only.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from fairlead.control.context import Context
from fairlead.control.decide.draft import RUNNING_PHASES
from fairlead.control.decide.placement.snapshot import key_in_snapshot
from fairlead.control.loop.board import Board
from fairlead.foresight.runtimes import RunningTime
from fairlead.model.clock import Millis
from fairlead.model.records.phase import TERMINAL
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import WORKLOADS

#: The annotation with a declared running time in seconds.
EXPECTED_RUNTIME = "fairlead/expected-runtime"
#: The newest ended workloads that are looked at, how many of one kind are enough, and how many of them count.
_LOOKED_AT, _ENOUGH, _COUNTED = 5_000, 3, 300


class _Runs(NamedTuple):
    """Running times in seconds of runs that are similar to each other."""

    ended: tuple[float, ...]
    running: tuple[float, ...]


SimilarRuns = Mapping[tuple[object, ...], _Runs]


async def load_similar_runs(context: Context, board: Board) -> SimilarRuns:
    """Runs that have ended, and those on the board that have not."""
    ended: list[Workload] = await context.store.find(
        Query(
            collection=WORKLOADS,
            where=(Where("phase", Comparison.ONE_OF, tuple(phase.value for phase in TERMINAL)),),
            order=(("completed_at", True),),
            limit=_LOOKED_AT,
        )
    )
    return index_runs(ended, (entry.workload for entry in board.entries.values()), context.clock())


def make_runtimes(board: Board, similar: SimilarRuns, now: Millis) -> dict[str, RunningTime]:
    """By the key of the workload in a snapshot."""
    return {
        key_in_snapshot(entry.workload): make_runtime(entry.workload, similar, now) for entry in board.entries.values()
    }


def index_runs(ended: Iterable[Workload], unfinished: Iterable[Workload], now: Millis) -> SimilarRuns:
    """The runs that started last, ended or not: if only those counted that ended last, long ones would seem rare."""
    runs_of: dict[tuple[object, ...], list[tuple[Millis, float, bool]]] = defaultdict(list)
    for workload in ended:
        if workload.running_time > 0:
            start = (workload.completed_at or workload.phase_updated_at) - workload.running_time
            for key in _similarity_keys(workload):
                runs_of[key].append((start, workload.running_time / 1000, True))
    for workload in unfinished:
        if workload.phase in RUNNING_PHASES and (seconds := _elapsed(workload, now)) > 0:
            for key in _similarity_keys(workload):
                runs_of[key].append((now - int(seconds * 1000), seconds, False))
    return {key: _newest(runs) for key, runs in runs_of.items()}


def _newest(runs: list[tuple[Millis, float, bool]]) -> _Runs:
    newest = sorted(runs)[-_COUNTED:]
    return _Runs(
        ended=tuple(sorted(seconds for _, seconds, has_ended in newest if has_ended)),
        running=tuple(sorted(seconds for _, seconds, has_ended in newest if not has_ended)),
    )


def _similarity_keys(workload: Workload) -> tuple[tuple[object, ...], ...]:
    """What similar runs have in common, the closest first."""
    spec = _plain(workload)
    parts = _parts(spec)
    program = msgspec.json.encode([part.get(name) for part in parts for name in ("image", "command", "args")])
    size = msgspec.json.encode([part.get("compute") for part in parts])
    return (
        ("user", workload.created_by, workload.kind, program),
        ("size", workload.project_id, size),
        ("project", workload.project_id),
    )


def _plain(workload: Workload) -> dict[str, Any]:
    spec = msgspec.json.decode(workload.spec)
    return spec if isinstance(spec, dict) else {}


def _parts(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The spec, and the specs of roles in it."""
    return [spec, *(value for value in spec.values() if isinstance(value, dict))]


def make_runtime(workload: Workload, similar: SimilarRuns, now: Millis) -> RunningTime:
    candidates = [runs for key in _similarity_keys(workload) if (runs := similar.get(key)) is not None and runs.ended]
    few = candidates[0] if candidates else _Runs((), ())
    chosen = next((runs for runs in candidates if len(runs.ended) >= _ENOUGH), few)
    return RunningTime(
        declared=_declared(workload),
        runs=chosen.ended,
        running=chosen.running,
        limit=workload.time_limit / 1000 if workload.time_limit is not None else None,
        elapsed=_elapsed(workload, now),
    )


def _elapsed(workload: Workload, now: Millis) -> float:
    current = max(0, now - workload.phase_updated_at) if workload.phase in RUNNING_PHASES else 0
    return (workload.running_time + current) / 1000


def _declared(workload: Workload) -> float | None:
    """The annotation's value; one that is not a positive number declares nothing."""
    annotations = [each for part in _parts(_plain(workload)) for each in part.get("annotations") or ()]
    values = [each.get("value") for each in annotations if each and each.get("name") == EXPECTED_RUNTIME]
    try:
        seconds = float(values[0] or 0) if values else 0
    except ValueError:
        return None
    return seconds if seconds > 0 else None
