"""Writes the status of custom resources, and events about them, with as few requests as people notice.

Called by `loop.py` with the status that an object should have. Phases that pass by, such as Pending before Running, are
written only if they last; what people wait for is written at once.
"""

import time
from collections.abc import Callable

import msgspec

from fairlead.control.custom_resources.status import Status
from fairlead.engines.base import CustomResourceWriter
from fairlead.model.custom_resource import CustomResource
from fairlead.model.records.phase import Phase

#: Seconds that a passing phase, or another figure of the same phase, may last without being written.
SETTLE_SECONDS = 2.0
#: Seconds after which a watch that does not show a written status is no longer waited for.
_WATCH_SECONDS = 5.0
_PASSING = frozenset(
    {Phase.CREATING, Phase.PENDING, Phase.INITIALIZING, Phase.RESUMING, Phase.STOPPING, Phase.DELETING, Phase.UPDATING}
)
#: Phases of which an event in the cluster would say nothing new.
_SILENT = frozenset({Phase.CREATING, Phase.INITIALIZING})


class _Progress(msgspec.Struct):
    """How far the cluster knows the state of one object."""

    #: The phase of the last event.
    announced: str
    #: The last phase that was to be written, and since when.
    phase: str = ""
    since: float = 0.0
    #: The status that was written last and when, until the watch shows it.
    written: Status | None = None
    written_at: float = 0.0
    #: Since when the status in the cluster is not up to date; None if it is.
    outdated_since: float | None = None


class StatusWriter:
    """`remind(id, seconds)` asks for another call about an object later."""

    def __init__(
        self,
        objects: CustomResourceWriter,
        remind: Callable[[str, float], None],
        settle_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects = objects
        self._remind = remind
        self._settle_seconds = settle_seconds
        self._now = now
        self._progress: dict[str, _Progress] = {}

    def forget(self, id: str) -> None:
        self._progress.pop(id, None)

    async def write(self, resource: CustomResource, status: Status) -> None:
        now, phase = self._now(), status["phase"]
        known = self._progress.setdefault(resource.id, _Progress(announced=_announced_phase(resource)))
        if known.phase != phase:
            known.phase, known.since = phase, now
        await self._write_status(resource, status, known, now)
        await self._write_event(resource, status, known, now)

    async def _write_status(self, resource: CustomResource, status: Status, known: _Progress, now: float) -> None:
        if _agrees(resource.status, status):
            known.written, known.outdated_since = None, None
            return
        if _without_times(known.written) == _without_times(status) and now < known.written_at + _WATCH_SECONDS:
            self._remind(resource.id, known.written_at + _WATCH_SECONDS - now)
            return
        if known.outdated_since is None:
            known.outdated_since = now
        delay = known.outdated_since + self._settle_seconds - now
        if delay > 0 and _can_wait(known.written or resource.status, status):
            self._remind(resource.id, delay)
            return
        await self._objects.set_status(resource, status)
        known.written, known.written_at, known.outdated_since = status, now, None

    async def _write_event(self, resource: CustomResource, status: Status, known: _Progress, now: float) -> None:
        phase = status["phase"]
        if phase == known.announced or phase in _SILENT:
            return
        delay = known.since + self._settle_seconds - now
        if delay > 0 and phase in _PASSING:
            self._remind(resource.id, delay)
            return
        known.announced = phase
        type = "Warning" if phase == Phase.FAILED else "Normal"
        await self._objects.add_event(resource, type, phase, status["message"] or phase)


def _announced_phase(resource: CustomResource) -> str:
    """Of a passing phase in the cluster nobody knows whether it had an event."""
    phase = str(resource.status.get("phase", ""))
    return "" if phase in _PASSING else phase


def _without_times(status: Status | None) -> Status | None:
    """Times of conditions come from the watch, which may not show them yet."""
    if status is None:
        return None
    conditions = [{**one, "lastTransitionTime": ""} for one in status.get("conditions") or ()]
    return {**status, "conditions": conditions}


def _agrees(seen: Status, status: Status) -> bool:
    return all(seen.get(name) == value for name, value in status.items())


def _can_wait(before: Status, after: Status) -> bool:
    """Whether nobody waits for it: the object was accepted before, and nothing new of it is rejected."""
    if not before.get("workloadId") or _types(before) != _types(after):
        return False
    return after["phase"] in _PASSING or before.get("phase") == after["phase"]


def _types(status: Status) -> set[str]:
    return {str(one.get("type")) for one in status.get("conditions") or ()}
