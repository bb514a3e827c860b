"""A change made ready for a database: every record encoded, its columns taken out, its statement chosen.

Both stores prepare on the event loop, where a mistake in a record meets its author, and write elsewhere. Reading goes
back the same way. Nothing here touches a database.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.model.errors import Conflict, FairleadError
from fairlead.store.base import Change, Collection, Delete, Put
from fairlead.store.collections import AUDIT, COLLECTIONS, EVENTS
from fairlead.store.sql import clean_text, statements

_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    collection.name: msgspec.json.Decoder(collection.record) for collection in COLLECTIONS
}
_TAKES = {collection.name: tuple(column.take for column in collection.columns) for collection in COLLECTIONS}
_NUMBER_FIELDS = {
    collection.name: any(field.name == collection.key for field in msgspec.structs.fields(collection.record))
    for collection in COLLECTIONS
    if collection.numbered
}


class Write(msgspec.Struct, frozen=True, gc=False):
    """One statement that must change exactly one row, or (a delete) may change none."""

    text: str
    values: tuple[Any, ...]
    collection: str
    id: str
    #: 0 for a delete.
    version: int


class Prepared(msgspec.Struct, frozen=True, gc=False):
    writes: tuple[Write, ...]
    #: Rows of events and audit lines without their numbers, which the writer appends.
    events: tuple[tuple[Any, ...], ...]
    audit: tuple[tuple[Any, ...], ...]
    #: What the events are about.
    subjects: tuple[tuple[str, str], ...]


#: A change and the future of the one who waits for it.
Waiter = tuple[Prepared, "asyncio.Future[int]"]
#: What a change came to: its revision, or why it was not made.
Outcome = int | FairleadError


class Numbered(msgspec.Struct, kw_only=True):
    """A batch with its events and audit lines numbered; the outcomes are in the order of its changes."""

    outcomes: list[Outcome]
    #: The newest numbers after the batch.
    revision: int = 0
    number: int = 0
    events: list[tuple[Any, ...]] = []
    audit: list[tuple[Any, ...]] = []
    subjects: list[tuple[str, str]] = []


def number_rows(
    batch: Sequence[Prepared], refusals: Sequence[FairleadError | None], revision: int, number: int
) -> Numbered:
    """Give the events and audit lines of the changes that were made the numbers after `revision` and `number`."""
    made = Numbered(outcomes=[], revision=revision, number=number)
    for prepared, refusal in zip(batch, refusals, strict=True):
        if refusal is not None:
            made.outcomes.append(refusal)
            continue
        for row in prepared.events:
            made.revision += 1
            made.events.append((*row, made.revision))
        for row in prepared.audit:
            made.number += 1
            made.audit.append((*row, made.number))
        made.subjects += prepared.subjects
        made.outcomes.append(made.revision)
    return made


def settle(batch: Sequence[Waiter], made: Numbered) -> bool:
    """Answer those who still wait; and whether any change was made. Must run on the event loop."""
    any_made = False
    for (_, future), outcome in zip(batch, made.outcomes, strict=True):
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
        tuple([(event.subject, event.subject_id) for event in change.events]),
    )


def _prepare_put(put: Put, mark: str) -> Write:
    collection, record = put.collection, put.record
    version = record.version
    if version < 1 or collection.numbered:
        raise ValueError(f"{collection.name} cannot be put with version {version}")
    texts = statements(collection.name, mark)
    row = (version, *_row(collection, record), record.id)
    if version == 1:
        return Write(texts.insert, row, collection.name, record.id, 1)
    return Write(texts.update, (*row, version - 1), collection.name, record.id, version)


def _prepare_delete(delete: Delete, mark: str) -> Write:
    collection = delete.collection
    text = statements(collection.name, mark).delete
    return Write(text, (key_value(collection, delete.id),), collection.name, delete.id, 0)


def _row(collection: Collection, record: Any) -> tuple[Any, ...]:
    """The columns and the data, without key and version."""
    data = _encoder.encode(record)
    values = [take(record) for take in _TAKES[collection.name]]
    if b"\\u0000" in data:
        values = [clean_text(value) if isinstance(value, str) else value for value in values]
    return (*values, data)


def key_value(collection: Collection, id: str) -> Any:
    """The id as the key column has it; None, which no row has, for what cannot be a number."""
    if not collection.numbered:
        return clean_text(id)
    return int(id) if id.isascii() and id.isdigit() and len(id) < 19 else None


def read_record(collection: Collection, key: Any, data: bytes) -> Any:
    record = _decoders[collection.name].decode(data)
    if collection.numbered and _NUMBER_FIELDS[collection.name]:
        return msgspec.structs.replace(record, **{collection.key: key})
    return record


def columns_of(collection: Collection, record: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """The values of those columns, for a layout that gains them."""
    takes = {column.name: column.take for column in collection.columns}
    values = (takes[name](record) for name in names)
    return tuple(clean_text(value) if isinstance(value, str) else value for value in values)


def lost_race(write: Write) -> Conflict:
    """The record is not at the version before the one to be written."""
    if write.version == 1:
        return Conflict(f"{write.collection} {write.id} exists already; read it and change it instead.")
    return Conflict(f"{write.collection} {write.id} was changed by somebody else meanwhile; read it again and retry.")


def taken(write: Write, columns: tuple[str, ...]) -> Conflict:
    """Another record has the same values in columns that must differ."""
    if columns in (("id",), ()):
        return lost_race(write)
    return Conflict(f"Another record of {write.collection} has the same {' and '.join(columns)}.", columns)
