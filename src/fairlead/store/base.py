"""The seam to whatever keeps state. Control and API know these verbs and nothing below them.

A change is all or nothing, durable when `commit` returns, and carries its own events and audit lines. Records are
frozen structs with `id` and `version`; a put names the *new* version, and is refused as a lost race (`Conflict`)
unless the stored record has the one before (version 1: unless there is none).
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from fairlead.model.records.event import AuditLine, Event


class Column(msgspec.Struct, frozen=True):
    """A value taken out of a record so that it can be filtered and sorted by."""

    name: str
    #: `text`, `integer` or `real`.
    type: str
    take: Callable[[Any], Any]
    indexed: bool = False


class Collection(msgspec.Struct, frozen=True):
    """A table of records of one type. `store/collections.py` lists them all."""

    name: str
    record: type
    columns: tuple[Column, ...] = ()
    #: Groups of columns that no two records may share; a record with a null in the group is exempt.
    unique: tuple[tuple[str, ...], ...] = ()
    #: What the key is called in queries.
    key: str = "id"
    #: Records have no id of their own: the store numbers them in the order of commits and fills the key's field when
    #: they are read. They come in as a change's events and audit lines, never by a put.
    numbered: bool = False


class Comparison(StrEnum):
    EQUAL = "=="
    NOT_EQUAL = "!="
    AT_MOST = "<="
    AT_LEAST = ">="
    BELOW = "<"
    ABOVE = ">"
    CONTAINS = "=@"
    LACKS = "!@"
    STARTS = "=^"
    ENDS = "=$"
    #: The value is a sequence; any of them.
    ONE_OF = "in"
    #: The column is null; the value is True or False.
    IS_NULL = "null"


class Where(msgspec.Struct, frozen=True):
    column: str
    comparison: Comparison
    value: Any


class Query(msgspec.Struct, frozen=True, kw_only=True):
    collection: Collection
    where: tuple[Where, ...] = ()
    #: Free text and the columns any of which must contain it (case-insensitive).
    search: str = ""
    search_in: tuple[str, ...] = ()
    #: (column, descending) in order; ties always end in the id.
    order: tuple[tuple[str, bool], ...] = ()
    offset: int = 0
    limit: int | None = None


class Put(msgspec.Struct, frozen=True):
    collection: Collection
    record: Any


class Delete(msgspec.Struct, frozen=True):
    collection: Collection
    id: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happens together or not at all."""

    writes: tuple[Put | Delete, ...] = ()
    events: tuple[Event, ...] = ()
    audit: tuple[AuditLine, ...] = ()


#: Told after every durable commit, by this process or another on the same database: the newest revision and the
#: (collection, id) pairs that its events are about. It runs on the event loop and must return at once.
Listener = Callable[[int, Sequence[tuple[str, str]]], None]

T = TypeVar("T")


class Store(Protocol):
    """Six verbs. All raise `Unavailable` while the database cannot be reached or written."""

    async def commit(self, change: Change) -> int:
        """Make the change durable; returns the revision at which it is true. Raises `Conflict`."""
        ...

    async def get(self, collection: Collection, id: str) -> Any | None:
        """The record of that id, or None."""
        ...

    async def find(self, query: Query) -> list[Any]:
        """The records that match, in order."""
        ...

    async def count(self, query: Query) -> int:
        """How many match, offset and limit ignored."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every commit; the returned function ends that."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of the database."""
        ...
