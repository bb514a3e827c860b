"""The explanation of a workload: what it waits for, its effective values, and the origin of each value.

An addition of Fairlead. It walks the field declarations and knows no field by name.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.api.workloads.scheduling import EvictionView, WaitingView, render_eviction, render_waiting
from fairlead.api.workloads.views import ConditionView, instant
from fairlead.control.explain.why import WaitingReport
from fairlead.kinds import KINDS
from fairlead.model.records.named_message import VisibleProjects
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import Field, fields_of

_HIDDEN = "(hidden)"


class ValueView(Shape):
    """One value of the spec: its path, the value, and its origin: given, or a default of something."""

    field: str
    value: Any
    origin: str
    unit: str = ""
    #: A description, if the effective default is not a single value.
    text: str = ""


class WorkloadExplanation(Shape):
    """Why the workload is in its phase, and the origin of each of its values."""

    workload_id: Uuid
    name: str
    phase: Phase
    desired_phase: str
    message: str
    #: What keeps it from running, as data: the resource, how much is requested, how much is free.
    blocked_by: dict[str, Any] | None
    #: A failed pod is not replaced before this time.
    retry_at: Instant | None
    conditions: tuple[ConditionView, ...]
    values: tuple[ValueView, ...]
    #: How often it was preempted.
    preemptions: int
    #: The dialect in which it was submitted.
    dialect: str | UnsetType = UNSET
    #: Its last eviction in favor of another workload.
    last_eviction: EvictionView | UnsetType = UNSET
    #: Computed for this request; absent if it does not wait for resources.
    waiting: WaitingView | UnsetType = UNSET


def render_explanation(
    workload: Workload, visible: VisibleProjects, waiting: WaitingReport | None = None
) -> WorkloadExplanation:
    """For a reader who may see the workloads of these projects."""
    kind = KINDS[workload.kind]
    given = msgspec.json.decode(workload.spec)
    return WorkloadExplanation(
        workload_id=workload.id,
        name=workload.name,
        phase=workload.phase,
        desired_phase=workload.desired_phase.value,
        message=workload.phase_message_for(visible),
        blocked_by=workload.blocked_by,
        retry_at=instant(workload.retry_at),
        conditions=tuple(
            ConditionView(
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                last_transition_time=instant(condition.last_transition_time or None),
            )
            for condition in workload.conditions
        ),
        values=tuple(_values(kind.spec, given if isinstance(given, dict) else {}, "")),
        dialect=workload.dialect,
        preemptions=workload.preemptions,
        last_eviction=render_eviction(workload.last_eviction, visible) if workload.last_eviction else UNSET,
        waiting=render_waiting(waiting) if waiting else UNSET,
    )


def _values(struct: type, given: dict[str, object], prefix: str) -> Iterator[ValueView]:
    for field in fields_of(struct):
        path = prefix + field.rest
        value = given.get(field.rest, UNSET)
        if value is UNSET or value is None:
            yield from _default(field, path, value)
        elif field.struct is None or field.is_list:
            yield ValueView(field=path, value=_shown(field, value), origin="given", unit=field.about.unit)
        elif isinstance(value, dict):
            yield from _values(field.struct, value, f"{path}.")


def _default(field: Field, path: str, value: object) -> Iterator[ValueView]:
    """The default of a field that was left out or null, if one is declared."""
    about = field.about
    if field.struct is not None and not field.is_list and value is UNSET:
        yield from _values(field.struct, {}, f"{path}.")
    elif about.origin or about.default_text:
        origin = f"default ({about.origin})" if about.origin else "default"
        yield ValueView(field=path, value=about.default, origin=origin, unit=about.unit, text=about.default_text)


def _shown(field: Field, value: object) -> object:
    """The value with secret fields hidden, in list items too."""
    if field.about.secret:
        return _HIDDEN
    if field.struct is not None and isinstance(value, dict):
        return _shown_members(field.struct, value)
    if field.struct is not None and isinstance(value, list):
        return [_shown_members(field.struct, item) if isinstance(item, dict) else item for item in value]
    return value


def _shown_members(struct: type, item: dict[str, object]) -> dict[str, object]:
    declared = {field.rest: field for field in fields_of(struct)}
    return {
        name: _shown(declared[name], value) if name in declared and value is not None else value
        for name, value in item.items()
    }
