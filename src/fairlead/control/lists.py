"""Lists: what they are asked with, a page of a list, and which records a caller may see in it.

Used by every use case that lists or finds records by id. Access is checked by the caller of these functions.
"""

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField, as_conditions, parse_filters
from fairlead.model.errors import NotFound
from fairlead.model.records.organization import Caller
from fairlead.store.base import Collection, Comparison, Query, Where

T = TypeVar("T")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What every list is asked with."""

    filter_by: str = ""
    sort_by: str = ""
    descending: bool = False
    offset: int = 0
    limit: int = 50
    search: str = ""
    deleted: bool = False


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A piece of a list: its records, the offset of the next piece if there is one, and the revision."""

    items: list[T]
    next: int | None = None
    revision: int = 0
    #: How many match in all, where that is known without another question.
    total: int = 0


def normal_id(text: str, what: str) -> str:
    """The id in the form in which it is stored; what is no UUID names nothing."""
    if _UUID.fullmatch(text) is None:
        raise NotFound(f"There is no {what} with the id {text[:60]!r}; ids are UUIDs")
    return text.lower()


async def load_page(
    context: Context,
    collection: Collection[T],
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField] | None = None,
) -> Page[T]:
    """A piece of any collection that has names; the caller has checked access and says what may be seen."""
    query = build_query(collection, fields or {}, request, where, ("name",))
    return await find_page(context, query, request, 0)


async def count_page(
    context: Context,
    collection: Collection[object],
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField],
) -> int:
    query = build_query(collection, fields, request, where, ("name",))
    return 0 if query is None else await context.store.count(query)


def seen_by(caller: Caller) -> tuple[Where, ...]:
    """The condition that keeps a list to the projects that a caller may see; none for an administrator."""
    projects = access.visible_projects(caller)
    return () if projects is None else (Where("project_id", Comparison.ONE_OF, sorted(projects)),)


def build_query(
    collection: Collection[T],
    fields: Mapping[str, FilterField],
    request: ListRequest,
    where: tuple[Where, ...],
    search_in: tuple[str, ...],
) -> Query[T] | None:
    """The store's query, for one record more than asked for; None when the filters leave nothing."""
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
