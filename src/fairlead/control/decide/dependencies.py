"""What a workload still waits for before it starts, and the message about that. Pure.

A workload's record keeps it in `waits_for`: names that its project does not have yet, and a text for each workload that
must end. The text names the other workload by its id too, because its name is free again when it is deleted.
"""

from collections.abc import Mapping, Sequence

from fairlead.model.after import Dependency
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload

#: How the texts begin: to complete, to end in whatever way, and what can no longer happen.
_COMPLETE, _END, _NEVER = "after", "afterany", "never"


def describe_unmet(dependency: Dependency, other: Workload) -> tuple[str, ...]:
    """The text for `waits_for`; none if the other workload has ended as it must."""
    return _check(_END if dependency.is_any else _COMPLETE, other.id, other.name, other)


def dependency_ids(waits_for: Sequence[str]) -> tuple[str, ...]:
    """The ids of the workloads whose end may still change something."""
    return tuple(text.split(" ")[1] for text in waits_for if _is_open(text))


def recheck(waits_for: Sequence[str], others: Mapping[str, Workload]) -> tuple[str, ...]:
    """What is left of the dependencies in `waits_for`, given the workloads they name that still have a record."""
    still_open: list[str] = []
    for text in waits_for:
        if _is_open(text):
            word, id, name = text.split(" ")
            still_open += _check(word, id, name, others.get(id))
        elif text.startswith(f"{_NEVER} "):
            still_open.append(text)
    return tuple(still_open)


def format_waiting(waits_for: Sequence[str]) -> str:
    """What a workload waits for, as its phase message; it begins with what can never happen."""
    parsed = [(text.partition(" ")[0], text) for text in waits_for]
    never = [text.split(" ", 2)[2] for word, text in parsed if word == _NEVER]
    complete = [text.split(" ")[2] for word, text in parsed if word == _COMPLETE]
    end = [text.split(" ")[2] for word, text in parsed if word == _END]
    missing = [text for word, text in parsed if word not in (_COMPLETE, _END, _NEVER)]
    parts = [f"Can never start: {', '.join(never)}"] if never else []
    parts += [f"Waiting for {', '.join(complete)} to complete"] if complete else []
    parts += [f"Waiting for {', '.join(end)} to end"] if end else []
    parts += [f"Waiting for {', '.join(missing)} to be created in its project"] if missing else []
    return "; ".join(parts)


def _is_open(text: str) -> bool:
    return text.startswith((f"{_COMPLETE} ", f"{_END} "))


def _check(word: str, id: str, name: str, other: Workload | None) -> tuple[str, ...]:
    if other is not None and other.phase is Phase.COMPLETED:
        return ()
    failure = _failure(other)
    if not failure:
        return (f"{word} {id} {name}",)
    return () if word == _END else (f"{_NEVER} {id} {name} {failure}",)


def _failure(other: Workload | None) -> str:
    """How it ended without completing; empty if it may still complete."""
    if other is None or other.deleted_at is not None:
        return "was deleted"
    if other.phase is Phase.FAILED:
        return "failed"
    has_used_its_time = other.time_limit is not None and other.running_time >= other.time_limit
    return "was stopped at its time limit" if has_used_its_time and other.phase is Phase.STOPPED else ""
