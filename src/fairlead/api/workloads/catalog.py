"""Priority classes and workload categories. They are constant and come from the model."""

import uuid
from functools import partial
from typing import TypeVar

from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import filter_by, read_list_request, sort_by, sort_order
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.control.filters import FilterField, parse_filters, select
from fairlead.control.lists import normal_id
from fairlead.model.errors import NotFound
from fairlead.model.priority import CATEGORIES, PRIORITIES

#: Ids are derived from names, so that they are the same in every installation.
_NAMESPACE = uuid.UUID("6f0f54f8-3b5a-5d0e-9c53-1b1e8b1d9c11")
_SOURCE = "Run:ai"

T = TypeVar("T")


class PriorityView(Shape):
    """A priority class; within one queue, higher values go first."""

    id: Uuid
    name: str
    value: int
    source: str


class CategoryView(Shape):
    id: Uuid
    name: str
    description: str


class PriorityList(Shape):
    priorities: list[PriorityView]


class CategoryList(Shape):
    categories: list[CategoryView]


def constant_id(what: str, name: str) -> str:
    """The id of a constant: a category, a priority or a built-in type."""
    return str(uuid.uuid5(_NAMESPACE, f"{what}/{name}"))


_PRIORITIES = [
    PriorityView(id=constant_id("priority", name), name=name, value=value, source=_SOURCE)
    for name, value in PRIORITIES.items()
]
_CATEGORY_VIEWS = {
    constant_id("category", name): CategoryView(id=constant_id("category", name), name=name, description=text)
    for name, text in CATEGORIES.items()
}
_PRIORITY_FIELDS: dict[str, FilterField[PriorityView]] = {
    "name": FilterField(read=lambda view: view.name),
    "source": FilterField(read=lambda view: view.source),
    "value": FilterField("number", read=lambda view: view.value),
}


async def get_priorities(call: Call) -> Response:
    request = read_list_request(call, _PRIORITY_FIELDS)
    filters = parse_filters(request.filter_by, _PRIORITY_FIELDS)
    sort = _PRIORITY_FIELDS[request.sort_by or "value"]
    priorities = select(_PRIORITIES, filters, sort, request.descending, lambda view: view.id)
    return as_json(PriorityList(priorities=priorities))


async def get_categories(call: Call) -> Response:
    return as_json(CategoryList(categories=list(_CATEGORY_VIEWS.values())))


async def get_category(call: Call) -> Response:
    return as_json(_one(_CATEGORY_VIEWS, call.path["categoryId"], "category"))


def _one(views: dict[str, T], id: str, what: str) -> T:
    view = views.get(normal_id(id, what))
    if view is None:
        raise NotFound(f"There is no {what} with the id {id}")
    return view


_FAILURES = {401: Error, 403: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error}
_UUID = {"type": "string", "format": "uuid"}


_read = partial(Operation, method="GET", tag="Workload properties")


CATALOG_OPERATIONS: tuple[Operation, ...] = (
    _read(
        path="/api/v1/workload-priorities",
        id="get_workload_priorities",
        summary="List priority classes",
        run=get_priorities,
        needs="workload-priorities:read",
        parameters=(sort_order(), sort_by(_PRIORITY_FIELDS), filter_by(_PRIORITY_FIELDS)),
        answers={200: PriorityList, **_FAILURES, 500: Error},
    ),
    _read(
        path="/api/v1/workload-categories",
        id="list_categories",
        summary="List workload categories",
        run=get_categories,
        needs="workload-categories:read",
        answers={200: CategoryList, **_FAILURES},
    ),
    _read(
        path="/api/v1/workload-categories/{categoryId}",
        id="get_category_by_id",
        summary="Get a workload category",
        run=get_category,
        needs="workload-categories:read",
        parameters=(Parameter(name="categoryId", place="path", schema=_UUID),),
        answers={200: CategoryView, **_ONE},
    ),
)
