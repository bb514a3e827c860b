"""The query parameters that lists share: declared once for the description, read once for the use cases."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import UNSET, UnsetType

from fairlead.api.http.body import query_boolean, query_choice, query_integer, query_text
from fairlead.api.http.operation import Call, Parameter
from fairlead.control.lists import ListRequest, Page

T = TypeVar("T")

MAX_LIMIT = 500
LIMIT = Parameter(
    name="limit",
    schema={"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT, "default": 50},
    description="The maximum number of records.",
)
OFFSET = Parameter(
    name="offset",
    schema={"type": "integer", "format": "int32", "minimum": 0, "default": 0},
    description="The number of records to skip; `next` of the previous answer.",
)
SEARCH = Parameter(name="search", schema={"type": "string"}, description="Text that one of the names must contain.")
DELETED = Parameter(
    name="deleted", schema={"type": "boolean", "default": False}, description="True lists only deleted records."
)
_OPERATORS = r"(==|!=|<=|>=|=@|!@|=\^|=\$)"


def sort_order(default: str = "asc") -> Parameter:
    return Parameter(
        name="sortOrder",
        schema={"type": "string", "enum": ["asc", "desc"], "default": default},
        description="Ascending or descending.",
    )


def sort_by(fields: Iterable[str]) -> Parameter:
    return Parameter(
        name="sortBy", schema={"type": "string", "enum": list(fields)}, description="The field to sort by."
    )


def filter_by(fields: Iterable[str]) -> Parameter:
    return Parameter(
        name="filterBy",
        schema={"type": "array", "items": {"type": "string", "pattern": f"^({'|'.join(fields)}){_OPERATORS}.+$"}},
        description="Field, operator, value; several are separated by commas and must all be true. "
        "`=@` contains, `!@` does not "
        "contain, `=^` starts with, `=$` ends with.",
    )


def read_list_request(call: Call, sort_fields: Iterable[str] = (), default_order: str = "asc") -> ListRequest:
    """The list parameters of a request; raises `Invalid` if one is out of bounds."""
    return ListRequest(
        filter_by=query_text(call, "filterBy"),
        sort_by=query_choice(call, "sortBy", tuple(sort_fields)),
        descending=query_choice(call, "sortOrder", ("asc", "desc"), default_order) == "desc",
        offset=query_integer(call, "offset", 0),
        limit=query_integer(call, "limit", 50, 1, MAX_LIMIT),
        search=query_text(call, "search"),
        deleted=bool(query_boolean(call, "deleted")),
    )


def next_offset(page: Page[T]) -> int | UnsetType:
    """The `next` of an answer: left out on the last page."""
    return UNSET if page.next is None else page.next
