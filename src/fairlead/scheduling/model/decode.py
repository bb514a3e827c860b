"""From JSON to the types of a snapshot or of a division, with everything that is wrong told at once.

The quick way is the decoder's own, which stops at the first violation; only then is the document walked part by part.
Whole numbers may be written as 1000.0 or 1e9. Called by `read_snapshot`, `read_shares` and the command line.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec

from fairlead.scheduling.model.snapshot import Job, Queue, Snapshot, SnapshotNode, Task, Topology
from fairlead.scheduling.model.validate import SnapshotError, contradictions

Document = TypeVar("Document", bound=msgspec.Struct)

#: GPUs of a node that could not be read: whatever is said to be on it may be true.
_COUNTLESS = 1 << 20


def read_snapshot(data: bytes | str) -> Snapshot:
    """A snapshot from JSON, or one SnapshotError with everything that is wrong with it."""
    try:
        snapshot = msgspec.json.decode(data, type=Snapshot, strict=False)
        problems: list[str] = []
    except msgspec.ValidationError as error:
        raw = msgspec.json.decode(data)
        snapshot, problems = _sound_parts(raw), list(violations(raw, Snapshot)) or [f"{error}."]
    except msgspec.DecodeError as error:
        raise SnapshotError([_not_json(data, error)]) from error
    snapshot = name_groups(snapshot)
    problems += contradictions(snapshot)
    if problems:
        raise SnapshotError(problems)
    return snapshot


def read_document(data: bytes | str, kind: type[Document]) -> Document:
    """Any other document of this room, or one SnapshotError with every violation of its form."""
    try:
        return msgspec.json.decode(data, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise SnapshotError(list(violations(msgspec.json.decode(data), kind)) or [f"{error}."]) from error
    except msgspec.DecodeError as error:
        raise SnapshotError([_not_json(data, error)]) from error


def _not_json(data: bytes | str, error: msgspec.DecodeError) -> str:
    return f"It is not JSON: {error}." if data.strip() else "It is empty."


def violations(value: object, kind: object, path: str = "") -> Iterator[str]:
    """Whatever does not have the form of the type, each with its path."""
    try:
        msgspec.convert(value, kind, strict=False)
        return
    except msgspec.ValidationError as error:
        violations = list(_inner_violations(value, kind, path))
        # What is wrong with the whole and not with a part of it; the decoder's own path starts at this part.
        yield from violations or [f"{path or 'the document'}: {str(error).split(' - at ')[0]}."]


def _inner_violations(value: object, kind: object, path: str) -> Iterator[str]:
    inside = f"{path}." if path else ""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for name in value:
            if name not in known:
                yield f"{inside}{name}: there is no such field."
        for name, field in known.items():
            if name in value:
                yield from violations(value[name], hints[field.name], f"{inside}{name}")
            elif field.required:
                yield f"{inside}{name}: is missing."
        return
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        for position, item in enumerate(value):
            yield from violations(item, arguments[0], f"{path}[{position}]")
    elif typing.get_origin(kind) in (types.UnionType, typing.Union) and value is not None:
        choices = [choice for choice in arguments if choice is not type(None)]
        if len(choices) == 1 and typing.get_origin(choices[0]) is not Literal:
            yield from _inner_violations(value, choices[0], path)


def _sound_parts(raw: object) -> Snapshot:
    """What can be read of a snapshot, so that contradictions in it are told too."""
    given = raw if isinstance(raw, dict) else {}
    return Snapshot(
        now=0,
        nodes=tuple(_sound(given.get("nodes"), SnapshotNode)),
        queues=tuple(_sound(given.get("queues"), Queue)),
        jobs=tuple(_sound(given.get("jobs"), Job)),
        topologies=tuple(_sound(given.get("topologies"), Topology)),
    )


def _sound(items: object, kind: type[Document]) -> Iterator[Document]:
    for item in items if isinstance(items, list) else ():
        try:
            yield msgspec.convert(item, kind, strict=False)
        except msgspec.ValidationError:
            if kind is SnapshotNode and isinstance(item, dict) and isinstance(item.get("name"), str):
                yield kind(name=item["name"], gpu=_COUNTLESS)


def name_groups(snapshot: Snapshot) -> Snapshot:
    """Tasks on shared GPUs that name only devices: the device stands for the group."""
    if not any(_lacks_groups(task) for job in snapshot.jobs for task in job.tasks):
        return snapshot
    jobs = []
    for job in snapshot.jobs:
        tasks = tuple(_with_groups(task) if _lacks_groups(task) else task for task in job.tasks)
        jobs.append(msgspec.structs.replace(job, tasks=tasks))
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs))


def _lacks_groups(task: Task) -> bool:
    return bool(task.devices and not task.gpu_groups and (task.gpu_portion or task.gpu_memory_mib))


def _with_groups(task: Task) -> Task:
    with_names: Task = msgspec.structs.replace(
        task, gpu_groups=tuple(f"{task.node}-device-{device}" for device in task.devices)
    )
    return with_names
