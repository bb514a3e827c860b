"""How a route is declared: an `Operation` with its path, texts, schemas and handler.

The router, 405 responses, the API description and the metrics' labels all come from these declarations. A handler that
is not declared cannot be reached.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.control.audit import AuditSubject
from fairlead.control.context import Context
from fairlead.model.records.people import Caller

#: The weight of an encoding that the client does not take.
_REFUSED_WEIGHT = re.compile(r"q=0(\.0*)?")


class Call:
    """One request: its caller, operation and id. Created by `application.py` only."""

    __slots__ = (
        "audited",
        "authenticate",
        "caller",
        "confirm_session",
        "context",
        "operation",
        "path",
        "request",
        "request_id",
    )

    def __init__(self, context: Context, operation: "Operation", request: Request, request_id: str) -> None:
        self.context = context
        self.operation = operation
        self.request = request
        self.request_id = request_id
        #: The values of the path's variables.
        self.path: dict[str, str] = {}
        self.caller: Caller = NOBODY
        #: What the audit says that a session was about; None for what the path names.
        self.audited: AuditSubject | None = None
        #: Checks the request's token again and returns its caller; raises `Unauthenticated` if it is no longer valid.
        self.authenticate: Callable[[], Caller] = lambda: self.caller
        #: Asks the identity provider about the caller's session, if that is due; raises `Unauthenticated`.
        self.confirm_session: Callable[[], Awaitable[None]] = _confirm_nothing

    def accepts(self, encoding: str) -> bool:
        """Whether the client takes an answer in this encoding."""
        for part in self.request.headers.get("accept-encoding", "").split(","):
            name, _, weight = (word.strip().lower() for word in part.partition(";"))
            if name == encoding:
                return not _REFUSED_WEIGHT.fullmatch(weight)
        return False


async def _confirm_nothing() -> None:
    """Public operations have no session."""


#: The caller of public operations.
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
    #: An addition of Fairlead to a path of Run:ai.
    is_addition: bool = False


#: Headers of an answer with a secret.
NO_CACHE = {"cache-control": "no-store"}

#: Marks a field as an addition of Fairlead to an answer of Run:ai: `Annotated[int, OURS]`.
OURS = msgspec.Meta(extra_json_schema={"x-fairlead-addition": True})


class Inline(msgspec.Struct, Generic[T_co], frozen=True):
    """A struct whose schema is written out where it is used, without references.

    `make` creates it on first use, not when the server starts: that took half a second.
    """

    make: Callable[[], type[T_co]]


class AnyOf(msgspec.Struct, frozen=True):
    """One of several: the name of a schema of a workload kind, or a struct."""

    name: str
    struct: type


#: A struct, the name of a schema of a workload kind, one of both, plain JSON schema, or None for no body.
Schema = type | Inline[object] | AnyOf | str | JsonSchema | None


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
    #: The right that every caller needs, such as `settings:read`, for handlers that call no use case. A use case checks
    #: access by itself, because it knows the project.
    needs: str = ""
    #: Needs no token.
    is_public: bool = False
    #: An addition of Fairlead.
    is_addition: bool = False
    is_deprecated: bool = False
    #: Issues tokens; and opens a session in a pod. Both are in the audit.
    is_sign_in: bool = False
    is_session: bool = False
    #: Changes nothing, although it is a POST; the audit does not record its mistakes as refusals.
    is_question: bool = False
    #: A page for browsers; it is not part of the API and its description.
    is_page: bool = False


class JsonAnswer(Response):
    """A response with an encoded JSON body. Sends what `Response` would send, but computes less per response."""

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
    """A response with a struct or plain data as JSON."""
    return JsonAnswer(msgspec.json.encode(value), status, headers)
