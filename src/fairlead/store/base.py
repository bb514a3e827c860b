"""The seam to the database. Control and API know these verbs and nothing below them.

A change is applied whole or not at all, is durable when `commit` returns, and carries its events and audit lines.
Records are frozen structs with `id` and `version`. A put names the *new* version and fails with `Conflict` unless the
stored record has the version before it (for version 1: unless no record is stored).
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec

from fairlead.model.records.event import AuditLine, Event

#: What a column can hold.
Value = str | int | float | None

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


class VersionedRecord(Protocol):
    """A record that is written by a put."""

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> int: ...


class Column(msgspec.Struct, Generic[R_contra], frozen=True):
    """A value of a record that queries can filter and sort by."""

    name: str
    #: `text`, `integer` or `real`.
    type: str
    take: Callable[[R_contra], Value]
    #: Whether an index begins with it.
    indexed: bool = False


class Collection(msgspec.Struct, Generic[R_co], frozen=True):
    """A table of records of one type. `store/collections.py` lists them all."""

    name: str
    record: type[R_co]
    columns: tuple[Column[R_co], ...] = ()
    #: Groups of columns whose values must be unique together; a record with a null in the group is exempt.
    unique: tuple[tuple[str, ...], ...] = ()
    #: Groups of columns that have an index together.
    indexes: tuple[tuple[str, ...], ...] = ()
    #: The key's name in queries.
    key: str = "id"
    #: Records have no id of their own: the store numbers them in commit order and sets the key's field when it reads
    #: them. They are written as a change's events and audit lines, never by a put.
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
    #: The value is an iterable; the column must equal one of its values.
    ONE_OF = "in"
    #: The value says whether the column must be null.
    IS_NULL = "null"


class Where(msgspec.Struct, frozen=True):
    column: str
    comparison: Comparison
    value: Value | Iterable[Value]


class Query(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True):
    collection: Collection[R_co]
    where: tuple[Where, ...] = ()
    #: Free text; at least one of the columns must contain it (case-insensitive).
    search: str = ""
    search_in: tuple[str, ...] = ()
    #: (column, descending), the most significant first; the id breaks ties.
    order: tuple[tuple[str, bool], ...] = ()
    offset: int = 0
    limit: int | None = None


class Put(msgspec.Struct, frozen=True):
    collection: Collection[VersionedRecord]
    record: VersionedRecord


class Delete(msgspec.Struct, frozen=True):
    collection: Collection[object]
    id: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Writes, events and audit lines that are committed together or not at all."""

    writes: tuple[Put | Delete, ...] = ()
    events: tuple[Event, ...] = ()
    audit: tuple[AuditLine, ...] = ()


#: Called after every durable commit, by this process or another on the same database, with the newest revision and
#: the (collection, id) pairs of its events. It runs on the event loop and must return at once.
Listener = Callable[[int, Sequence[tuple[str, str]]], None]


class Store(Protocol):
    """Six verbs. All raise `Unavailable` while the database cannot be reached or written."""

    async def commit(self, change: Change) -> int:
        """Make the change durable and return its revision. Raises `Conflict`."""
        ...

    async def get(self, collection: Collection[R], id: str) -> R | None:
        """The record with that id, or None."""
        ...

    async def find(self, query: Query[R]) -> list[R]:
        """The records that match, in order."""
        ...

    async def count(self, query: Query[object]) -> int:
        """How many records match; ignores offset and limit."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every commit; the returned function unsubscribes it."""
        ...

    async def close(self) -> None:
        """Finish the commits under way and close the database."""
        ...
