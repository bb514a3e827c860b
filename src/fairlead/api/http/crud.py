"""The routes that create, read, update and delete a resource, built from rows.

A room declares a `Resource` (path, view) with one row per route (body, input, use case); `operations` turns it into
operations. The handlers made here parse, call one use case and format. Routes of other shapes are rows with a handler.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Generic, Protocol, TypeVar

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import ACCEPTED, Error
from fairlead.api.http.operation import (
    NO_CACHE,
    Call,
    Handler,
    Inline,
    Operation,
    Parameter,
    RequestBody,
    Schema,
    as_json,
)
from fairlead.api.http.shapes import Accepted
from fairlead.control.context import Context
from fairlead.control.lists import normal_id
from fairlead.model.records.people import Caller

T = TypeVar("T")
#: The struct of a body, the input of a use case, the record that it returns.
Body = TypeVar("Body")
Input = TypeVar("Input")
Record = TypeVar("Record")
Created = TypeVar("Created")


async def resolve(result: T | Awaitable[T]) -> T:
    """The result of a use case, whether it had to wait or not."""
    return await result if isawaitable(result) else result


class Row(Protocol[Record]):
    """One route of a resource."""

    def operation(self, resource: "RestResource[Record]") -> Operation: ...


class RestResource(msgspec.Struct, Generic[Record], frozen=True, kw_only=True):
    path: str
    #: The path variable; routes of one record have it.
    id: Parameter
    tag: str
    #: What one record is shown as, and how it is rendered.
    view: Schema
    render: Callable[[Call, Record], object]
    rows: tuple[Row[Record], ...]
    #: Statuses with an error body that every route may answer.
    failures: tuple[int, ...]
    #: What a record is called; given if ids must be UUIDs.
    uuid_of: str = ""
    is_addition: bool = False
    is_deprecated: bool = False

    def id_of(self, call: Call) -> str:
        id = call.path[self.id.name]
        return normal_id(id, self.uuid_of) if self.uuid_of else id

    @property
    def one(self) -> str:
        return f"{self.path}/{{{self.id.name}}}"

    async def show(
        self, call: Call, record: Record, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        return as_json(await resolve(self.render(call, record)), status, headers)


def operations(resource: RestResource[Record]) -> tuple[Operation, ...]:
    return tuple(row.operation(resource) for row in resource.rows)


def failing(*statuses: int) -> dict[int, Schema]:
    """Those statuses, each with the plain error body."""
    return dict.fromkeys(statuses, Error)


class HandledRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A route with a handler of its own."""

    method: str = "GET"
    #: What follows the resource's path; `{}` stands for the path variable.
    suffix: str = ""
    id: str
    summary: str
    run: Handler
    needs: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Schema = None
    answers: dict[int, Schema]
    #: Statuses with an error body beside those of the resource.
    also: tuple[int, ...] = ()
    is_addition: bool = False

    def operation(self, resource: RestResource[Record]) -> Operation:
        path = resource.path + self.suffix.replace("{}", f"{{{resource.id.name}}}")
        return Operation(
            method=self.method,
            path=path,
            id=self.id,
            tag=resource.tag,
            summary=self.summary,
            run=self.run,
            needs=self.needs,
            parameters=(*((resource.id,) if "{" in self.suffix else ()), *self.parameters),
            body=None if self.body is None else RequestBody(schema=self.body),
            answers={**failing(*resource.failures, *self.also), **self.answers},
            is_addition=self.is_addition or resource.is_addition,
            is_deprecated=resource.is_deprecated,
        )


class CreateRoute(msgspec.Struct, Generic[Body, Input, Record], frozen=True, kw_only=True):
    id: str
    summary: str
    body: type[Body] | Inline[Body]
    read: Callable[[Body], Input]
    use_case: Callable[[Context, Caller, Input, str], Awaitable[Record]]
    #: Another rendering than the resource's.
    render: Callable[[Call, Record], object] | None = None
    status: int = 201
    also: tuple[int, ...] = ()
    is_addition: bool = False

    def operation(self, resource: "RestResource[Record]") -> Operation:
        async def run(call: Call) -> Response:
            given = self.read(await receive_json(call, self.body))
            created = await self.use_case(call.context, call.caller, given, call.request_id)
            shown = await resolve((self.render or resource.render)(call, created))
            return as_json(shown, self.status)

        return HandledRoute(
            method="POST",
            id=self.id,
            summary=self.summary,
            run=run,
            body=self.body,
            answers={self.status: resource.view},
            also=self.also,
            is_addition=self.is_addition,
        ).operation(resource)


class CreateShownOnce(msgspec.Struct, Generic[Body, Input, Created], frozen=True, kw_only=True):
    """Creates a record with a secret that only this answer shows."""

    id: str
    summary: str
    body: type[Body]
    read: Callable[[Body], Input]
    use_case: Callable[[Context, Caller, Input, str], Awaitable[Created]]
    view: Schema
    render: Callable[[Created], object]
    also: tuple[int, ...] = (400, 409)

    def operation(self, resource: RestResource[Record]) -> Operation:
        async def run(call: Call) -> Response:
            given = self.read(await receive_json(call, self.body))
            created = await self.use_case(call.context, call.caller, given, call.request_id)
            return as_json(self.render(created), 201, NO_CACHE)

        return HandledRoute(
            method="POST",
            id=self.id,
            summary=self.summary,
            run=run,
            body=self.body,
            answers={201: self.view},
            also=self.also,
        ).operation(resource)


class ReadRoute(msgspec.Struct, Generic[Record], frozen=True, kw_only=True):
    id: str
    summary: str
    use_case: Callable[[Context, Caller, str], Record | Awaitable[Record]]
    parameters: tuple[Parameter, ...] = ()
    also: tuple[int, ...] = (404,)

    def operation(self, resource: RestResource[Record]) -> Operation:
        async def run(call: Call) -> Response:
            record = await resolve(self.use_case(call.context, call.caller, resource.id_of(call)))
            return await resource.show(call, record)

        return HandledRoute(
            suffix="/{}",
            id=self.id,
            summary=self.summary,
            run=run,
            parameters=self.parameters,
            answers={200: resource.view},
            also=self.also,
        ).operation(resource)


class UpdateRoute(msgspec.Struct, Generic[Body, Input, Record], frozen=True, kw_only=True):
    method: str = "PUT"
    id: str
    summary: str
    body: type[Body] | Inline[Body]
    read: Callable[[Body], Input]
    use_case: Callable[[Context, Caller, str, Input, str], Awaitable[Record]]
    status: int = 200
    #: False: the answer has no body.
    is_shown: bool = True
    also: tuple[int, ...] = (404,)
    is_addition: bool = False

    def operation(self, resource: RestResource[Record]) -> Operation:
        async def run(call: Call) -> Response:
            given = self.read(await receive_json(call, self.body))
            id = resource.id_of(call)
            changed = await self.use_case(call.context, call.caller, id, given, call.request_id)
            return (
                await resource.show(call, changed, self.status) if self.is_shown else Response(status_code=self.status)
            )

        return HandledRoute(
            method=self.method,
            suffix="/{}",
            id=self.id,
            summary=self.summary,
            run=run,
            body=self.body,
            answers={self.status: resource.view if self.is_shown else None},
            also=self.also,
            is_addition=self.is_addition,
        ).operation(resource)


class DeleteRoute(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    summary: str
    #: Returns False if the deletion was accepted but is not complete.
    use_case: Callable[[Context, Caller, str, str], Awaitable[bool | None]]
    status: int = 204
    #: Further answers that are declared.
    answers: dict[int, Schema] = {}
    also: tuple[int, ...] = (404,)

    def operation(self, resource: RestResource[Record]) -> Operation:
        async def run(call: Call) -> Response:
            result = await self.use_case(call.context, call.caller, resource.id_of(call), call.request_id)
            return as_json(Accepted(202, ACCEPTED), 202) if result is False else Response(status_code=self.status)

        return HandledRoute(
            method="DELETE",
            suffix="/{}",
            id=self.id,
            summary=self.summary,
            run=run,
            answers={self.status: None, **self.answers},
            also=self.also,
        ).operation(resource)
