"""Jobs of operators whose pods failed and that begin again as a whole, which no operator does. Pure.

`engine.py` asks whenever something of such a workload changes; `observing.py` asks whether a failure is the end.
"""

from collections.abc import Sequence

import msgspec

from fairlead.engines.kubernetes.groups import ATTEMPT_LABEL, FAILURES
from fairlead.engines.kubernetes.objects import Metadata, Runner, condition
from fairlead.engines.kubernetes.place import Begun
from fairlead.model.podset import PodSet, RestartScope


def is_operated(runner: Runner) -> bool:
    return ATTEMPT_LABEL in runner.metadata.labels


def begun_of(metadata: Metadata) -> Begun:
    """Which attempt it is, as the job itself says."""
    attempt, failures = metadata.labels.get(ATTEMPT_LABEL, ""), metadata.annotations.get(FAILURES, "")
    return Begun(
        attempt=int(attempt) if attempt.isdecimal() else 0, failures=int(failures) if failures.isdecimal() else 0
    )


def decide_remake(podsets: Sequence[PodSet], runner: Runner, is_disrupted: bool) -> Begun | None:
    """With what it begins again; None while it runs, and when it has failed for good.

    An attempt from which the scheduler took pods away did not fail by itself: it is not counted.
    """
    if not podsets or podsets[0].restart_scope is not RestartScope.GROUP:
        return None
    if runner.metadata.deletion_timestamp is not None or condition(runner.status.conditions, "Failed") is None:
        return None
    begun = begun_of(runner.metadata)
    again = msgspec.structs.replace(begun, attempt=begun.attempt + 1)
    if is_disrupted:
        return again
    if begun.failures >= podsets[0].backoff_limit:
        return None
    return msgspec.structs.replace(again, failures=begun.failures + 1)
