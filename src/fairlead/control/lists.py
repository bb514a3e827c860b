"""Lists: the parameters of a request, a page of records, and which records a caller may see.

Used by every use case that lists records or loads them by id. Callers check access first.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField, as_conditions, parse_filters, select
from fairlead.model.errors import NotFound
from fairlead.model.records.people import Caller
from fairlead.store.base import Collection, Comparison, Query, VersionedRecord, Where

T = TypeVar("T")
N = TypeVar("N", bound=VersionedRecord)

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a list."""

    filter_by: str = ""
    sort_by: str = ""
    descending: bool = False
    offset: int = 0
    limit: int = 50
    search: str = ""
    deleted: bool = False


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list: its records, the offset of the next page if there is one, and the revision."""

    items: list[T]
    next: int | None = None
    revision: int = 0
    #: The number of all matching records, if it is known without another query.
    total: int = 0


def normal_id(text: str, what: str) -> str:
    """The id as it is stored; raises NotFound for an id that is not a UUID."""
    if _UUID.fullmatch(text) is None:
        raise NotFound(f"There is no {what} with the id {text[:60]!r}; ids are UUIDs")
    return text.lower()


async def load_page(
    context: Context,
    collection: Collection[T],
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField[T]] | None = None,
) -> Page[T]:
    """A page of any collection of named records; `where` limits it to what may be seen."""
    query = build_query(collection, fields or {}, request, where, ("name",))
    return await find_page(context, query, request, 0)


async def count_page(
    context: Context,
    collection: Collection[T],
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField[T]],
) -> int:
    query = build_query(collection, fields, request, where, ("name",))
    return 0 if query is None else await context.store.count(query)


def seen_by(caller: Caller) -> tuple[Where, ...]:
    """The condition that limits a list to the projects that a caller may see; none for an administrator."""
    projects = access.visible_projects(caller)
    return () if projects is None else (Where("project_id", Comparison.ONE_OF, sorted(projects)),)


def build_query(
    collection: Collection[T],
    fields: Mapping[str, FilterField[T]],
    request: ListRequest,
    where: tuple[Where, ...],
    search_in: tuple[str, ...],
) -> Query[T] | None:
    """The query, for one record more than requested; None if the filters exclude everything."""
    conditions = as_conditions(parse_filters(request.filter_by, fields))
    if conditions is None:
        return None
    sort = fields[request.sort_by].column if request.sort_by else "created_at"
    return Query(
        collection=collection,
        where=(*where, *conditions),
        search=request.search,
        search_in=search_in,
        order=((sort, request.descending),) if sort else (),
        offset=request.offset,
        limit=request.limit + 1,
    )


async def find_page(context: Context, query: Query[T] | None, request: ListRequest, revision: int) -> Page[T]:
    if query is None:
        return Page([], None, revision)
    items = await context.store.find(query)
    more = len(items) > request.limit
    return Page(items[: request.limit], request.offset + request.limit if more else None, revision)


def page_of(
    records: Iterable[N], request: ListRequest, fields: Mapping[str, FilterField[N]], name_of: Callable[[N], str]
) -> Page[N]:
    """A page of a list in memory."""
    filters = parse_filters(request.filter_by, fields)
    word = request.search.lower()
    matching = [record for record in records if word in name_of(record).lower()]
    sort = fields[request.sort_by] if request.sort_by else None
    selected = select(matching, filters, sort, request.descending, lambda record: record.id)
    end = request.offset + request.limit
    return Page(selected[request.offset : end], end if end < len(selected) else None, total=len(selected))
