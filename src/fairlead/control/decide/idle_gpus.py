"""The limit on idle GPUs that a project can set: a warning after half of that time, then the workload is stopped. Pure.

Called by the phase machine. A workload loses the warning when it uses its GPUs again or is stopped.
"""

from collections.abc import Callable, Sequence

from fairlead.control.decide.draft import RUNNING_PHASES, Draft
from fairlead.model.clock import SECOND, Millis
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Condition

#: The type of the condition while the warning stands, which is also the reason of its event.
IDLE_GPUS = "IdleGpus"
#: The reason of the event when it is stopped.
IDLE_LIMIT = "IdleLimit"

#: How long the GPUs of all these pods, by their ids, have been idle.
IdleTime = Callable[[Sequence[str]], Millis]


def has_exceeded_idle_limit(draft: Draft, idle_time: IdleTime) -> bool:
    """Whether its GPUs have been idle for longer than its project allows; it is then stopped as by a user."""
    workload, limit = draft.workload, draft.workload.idle_limit
    if workload.desired_phase is not DesiredPhase.RUNNING or limit is None:
        _set_warning(draft, "")
        return False
    idle = _idle_time_of(draft, idle_time)
    if idle >= limit:
        message = f"Stopping: its GPUs have been idle for {limit // SECOND} s, the limit of its project"
        draft.add_event(IDLE_LIMIT, message, warning=True, source="control")
        draft.set(desired_phase=DesiredPhase.STOPPED)
        _set_warning(draft, "")
        return True
    has_warning = any(each.type == IDLE_GPUS for each in workload.conditions)
    if idle < limit // 2:
        _set_warning(draft, "")
    elif not has_warning:
        spent, allowed = idle // SECOND, limit // SECOND
        message = f"Its GPUs have been idle for {spent} s; after {allowed} s it is stopped, unless it uses them"
        draft.add_event(IDLE_GPUS, message, warning=True, source="control")
        _set_warning(draft, message)
    return False


def wake_at_idle_limit(draft: Draft, idle_time: IdleTime) -> None:
    """Look again when the warning or the limit could be due; samples come a few seconds late."""
    limit = draft.workload.idle_limit
    if limit is not None and draft.workload.phase in RUNNING_PHASES:
        idle = _idle_time_of(draft, idle_time)
        due = limit // 2 if idle < limit // 2 else limit
        draft.wake(draft.now + max(SECOND, due - idle))


def _idle_time_of(draft: Draft, idle_time: IdleTime) -> Millis:
    return idle_time([pod.id for pod in draft.active_pods() if pod.gpu_devices])


def _set_warning(draft: Draft, message: str) -> None:
    conditions = tuple(each for each in draft.workload.conditions if each.type != IDLE_GPUS)
    if message:
        warning = Condition(type=IDLE_GPUS, status="True", message=message, last_transition_time=draft.now)
        conditions = (*conditions, warning)
    if conditions != draft.workload.conditions:
        draft.set(conditions=conditions)
