"""Prepares a change for the database: encodes records, extracts their columns, chooses the statements.

Both stores prepare on the event loop, so that a mistake in a record is raised at its caller, and write elsewhere.
`read_record` is the way back. Nothing here touches a database.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.model.errors import Conflict, FairleadError
from fairlead.store.base import Change, Collection, Delete, Put, R, Value
from fairlead.store.collections import AUDIT, COLLECTIONS, EVENTS
from fairlead.store.sql import Parameter, clean_text, statements

#: The values of a statement, in its order.
Row = tuple[Parameter, ...]

_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    collection.name: msgspec.json.Decoder(collection.record) for collection in COLLECTIONS
}
_TAKES = {collection.name: tuple(column.take for column in collection.columns) for collection in COLLECTIONS}
_NUMBER_FIELDS = {
    collection.name: hasattr(collection.record, collection.key) for collection in COLLECTIONS if collection.numbered
}


class WriteStatement(msgspec.Struct, frozen=True, gc=False):
    """A statement that must change exactly one row; a delete may also change none."""

    text: str
    values: Row
    collection: str
    id: str
    #: 0 for a delete.
    version: int


class Prepared(msgspec.Struct, frozen=True, gc=False):
    writes: tuple[WriteStatement, ...]
    #: Rows of events and audit lines without their numbers, which the writer appends.
    events: tuple[Row, ...]
    audit: tuple[Row, ...]
    #: The (collection, id) pairs of the events, each once: one change of a record is told once.
    subjects: tuple[tuple[str, str], ...]


#: A change and the future that its caller awaits.
Waiter = tuple[Prepared, "asyncio.Future[int]"]
#: The revision of a change, or the error that it failed with.
Outcome = int | FairleadError


class NumberedBatch(msgspec.Struct, kw_only=True):
    """A batch with its events and audit lines numbered. The outcomes are in the order of the changes."""

    outcomes: list[Outcome]
    #: The newest numbers after the batch.
    revision: int = 0
    number: int = 0
    events: list[Row] = []
    audit: list[Row] = []
    subjects: list[tuple[str, str]] = []


def number_rows(
    batch: Sequence[Prepared], refusals: Sequence[FairleadError | None], revision: int, number: int
) -> NumberedBatch:
    """Number the events and audit lines of the changes that succeeded, starting after `revision` and `number`."""
    numbered = NumberedBatch(outcomes=[], revision=revision, number=number)
    for prepared, refusal in zip(batch, refusals, strict=True):
        if refusal is not None:
            numbered.outcomes.append(refusal)
            continue
        for row in prepared.events:
            numbered.revision += 1
            numbered.events.append((*row, numbered.revision))
        for row in prepared.audit:
            numbered.number += 1
            numbered.audit.append((*row, numbered.number))
        numbered.subjects += prepared.subjects
        numbered.outcomes.append(numbered.revision)
    return numbered


def resolve_futures(batch: Sequence[Waiter], numbered: NumberedBatch) -> bool:
    """Resolve the futures of a batch and return whether any change succeeded. Must run on the event loop."""
    any_made = False
    for (_, future), outcome in zip(batch, numbered.outcomes, strict=True):
        any_made = any_made or isinstance(outcome, int)
        if future.done():
            continue
        if isinstance(outcome, int):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)
    return any_made


def prepare(change: Change, mark: str) -> Prepared:
    return Prepared(
        tuple(
            [
                _prepare_put(write, mark) if isinstance(write, Put) else _prepare_delete(write, mark)
                for write in change.writes
            ]
        ),
        tuple([_row(EVENTS, event) for event in change.events]),
        tuple([_row(AUDIT, line) for line in change.audit]),
        tuple(dict.fromkeys([(event.subject, event.subject_id) for event in change.events])),
    )


def _prepare_put(put: Put, mark: str) -> WriteStatement:
    collection, record = put.collection, put.record
    version = record.version
    if version < 1 or collection.numbered:
        raise ValueError(f"{collection.name} cannot be put with version {version}")
    texts = statements(collection.name, mark)
    row = (version, *_row(collection, record), record.id)
    if version == 1:
        return WriteStatement(texts.insert, row, collection.name, record.id, 1)
    return WriteStatement(texts.update, (*row, version - 1), collection.name, record.id, version)


def _prepare_delete(delete: Delete, mark: str) -> WriteStatement:
    collection = delete.collection
    text = statements(collection.name, mark).delete
    return WriteStatement(text, (key_value(collection, delete.id),), collection.name, delete.id, 0)


def _row(collection: Collection[R], record: R) -> Row:
    """The values of columns and data, without key and version."""
    data = _encoder.encode(record)
    values: list[Value] = [take(record) for take in _TAKES[collection.name]]
    if b"\\u0000" in data:
        values = [clean_text(value) if isinstance(value, str) else value for value in values]
    return (*values, data)


def key_value(collection: Collection[object], id: str) -> str | int | None:
    """The id as a value of the key column; None, which matches no row, if the key is a number and the id is not."""
    if not collection.numbered:
        return clean_text(id)
    return int(id) if id.isascii() and id.isdigit() and len(id) < 19 else None


def read_record(collection: Collection[R], key: str | int, data: bytes) -> R:
    record: R = _decoders[collection.name].decode(data)
    if collection.numbered and isinstance(record, msgspec.Struct) and _NUMBER_FIELDS[collection.name]:
        return msgspec.structs.replace(record, **{collection.key: key})
    return record


def columns_of(collection: Collection[R], record: R, names: Sequence[str]) -> tuple[Value, ...]:
    """The values of those columns, for a migration that adds them."""
    takes = {column.name: column.take for column in collection.columns}
    values = (takes[name](record) for name in names)
    return tuple(clean_text(value) if isinstance(value, str) else value for value in values)


def version_conflict(write: WriteStatement) -> Conflict:
    """The error of a put whose record is not stored with the previous version."""
    if write.version == 1:
        return Conflict(f"{write.collection} {write.id} already exists; read it and change it instead.")
    return Conflict(f"{write.collection} {write.id} was changed by another request; read it again and retry.")


def duplicate_conflict(write: WriteStatement, columns: tuple[str, ...]) -> Conflict:
    """The error of a put whose values in unique columns belong to another record."""
    if columns in (("id",), ()):
        return version_conflict(write)
    return Conflict(f"Another record of {write.collection} has the same {' and '.join(columns)}.", columns)
