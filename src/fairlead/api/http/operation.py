"""How a route is declared: one `Operation` with its path, its words, its shapes and the function that answers.

The router, the 405s, the API description and the metrics' labels are all read from these declarations; a handler that
is not declared cannot be reached, and what is declared is what is served.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.control.context import Context
from fairlead.model.records.organization import Caller


class Call:
    """One request on its way: who asks, for what, with which id. Made by `application.py` only."""

    __slots__ = ("authenticate", "caller", "context", "operation", "path", "request", "request_id")

    def __init__(self, context: Context, operation: "Operation", request: Request, request_id: str) -> None:
        self.context = context
        self.operation = operation
        self.request = request
        self.request_id = request_id
        #: The values of the path's variables.
        self.path: dict[str, str] = {}
        self.caller: Caller = NOBODY
        #: Who the request's token speaks for now; raises `Unauthenticated` once it is worth nothing.
        self.authenticate: Callable[[], Caller] = lambda: self.caller


#: Who calls a public operation.
NOBODY = Caller("", "")

Handler = Callable[[Call], Awaitable[Response]]


T_co = TypeVar("T_co", covariant=True)
JsonSchema = Mapping[str, object]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: `path`, `query` or `header`.
    place: str = "query"
    schema: JsonSchema
    description: str = ""
    #: Ours, on a path of Run:ai's.
    is_addition: bool = False


#: Headers of an answer with a secret.
NO_CACHE = {"cache-control": "no-store"}

#: Marks a member that is ours within an answer of Run:ai's: `Annotated[int, OURS]`.
OURS = msgspec.Meta(extra_json_schema={"x-fairlead-addition": True})


class Inline(msgspec.Struct, Generic[T_co], frozen=True):
    """A struct whose schema is written out where it is used, without references.

    `make` creates it on first use, not when the server starts: that took half a second.
    """

    make: Callable[[], type[T_co]]


#: A struct, the name of a schema of a workload kind, plain JSON schema, or None for no body.
Schema = type | Inline[object] | str | JsonSchema | None


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request: its schema and content type."""

    schema: Schema
    content_type: str = "application/json"
    required: bool = True


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    id: str
    tag: str
    summary: str
    run: Handler
    parameters: tuple[Parameter, ...] = ()
    body: RequestBody | None = None
    #: Status → the schema of its body.
    answers: Mapping[int, Schema] = {}
    content_type: str = "application/json"
    #: Needs no token.
    is_public: bool = False
    #: Ours, not Run:ai's.
    is_addition: bool = False
    is_deprecated: bool = False
    #: For browsers: no part of the API, so its description leaves it out.
    is_page: bool = False


class JsonAnswer(Response):
    """A JSON body that is already there as bytes. Sends what `Response` would, without working out each header anew."""

    def __init__(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if headers:
            self.raw_headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def as_json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A struct or plain data as the answer."""
    return JsonAnswer(msgspec.json.encode(value), status, headers)
