"""Authorization of requests to workloads' URLs, for ingress controllers that forward them. An addition of Fairlead.

A controller asks before every request; it sends the request's headers, with its URL and method in others. The gate
is that of the proxy; an answer of 200 has the headers that replace Fairlead's tokens and cookies.
"""

import posixpath
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.api.proxy.access import RequestDenied, UrlGate
from fairlead.api.proxy.messages import NO_BODY, Headers, RequestHead, host_of, value_of
from fairlead.control.serving.urls import Route
from fairlead.control.workloads.sessions import holder_error
from fairlead.model.errors import FairleadError, Forbidden, Invalid, NotFound, Unauthenticated
from fairlead.model.pods.urls import ACCESS, ANSWERED

_ERRORS: dict[int, type[FairleadError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound}
_TWO_WAYS = "This request is ambiguous: its path can be read in two ways. Send the path in its simplest form."


def access_operations(gate: UrlGate) -> tuple[Operation, ...]:
    async def check_access(call: Call) -> Response:
        if call.context.sessions is None:
            raise await holder_error(call.context)
        request = read_original(call.request.headers.raw)
        try:
            return decide_access(gate, request, call.request.query_params.get("url", ""))
        except RequestDenied as denied:
            raise _ERRORS[denied.status](denied.message) from denied

    return (
        Operation(
            method="GET",
            path=ACCESS,
            id="check_url_access",
            tag="Operating",
            summary="Check for an ingress controller whether a request to a workload's URL is permitted",
            run=check_access,
            parameters=_PARAMETERS,
            answers={200: None, 400: Error, 401: Error, 403: Error, 404: Error, 503: Error},
            is_public=True,
            is_addition=True,
        ),
    )


def decide_access(gate: UrlGate, request: RequestHead, url: str = "") -> Response:
    """The answer for a request to the URL with that host and path, or to the URL that its address matches."""
    route = _find_named(gate, request, url) if url else _find(gate, request)
    caller = gate.admit(request, route)
    seen = gate.cleaned_request(request, route, caller, "")
    response = Response(b"", 200, {"cache-control": "no-store"})
    for name in (word.lower().encode() for word in ANSWERED):
        values = [value for key, value in seen if key == name]
        if values:
            response.raw_headers.append((name, b"; ".join(values)))
    return response


def _find_named(gate: UrlGate, request: RequestHead, url: str) -> Route:
    route = gate.find_named(url)
    if route.location.host != request.host:
        raise RequestDenied(403, _TWO_WAYS)
    return route


def _find(gate: UrlGate, request: RequestHead) -> Route:
    """The URL that the path matches, if every way to normalize it matches the same URL: controllers differ in that."""
    path = unquote_to_bytes(request.target.partition(b"?")[0]).replace(b"\\", b"/")
    tidied = b"/" + posixpath.normpath(path).lstrip(b"/")
    route = gate.find(request)
    if gate.find(request._replace(target=tidied)) is not route:
        raise RequestDenied(403, _TWO_WAYS)
    return route


def read_original(headers: Headers) -> RequestHead:
    """The request to check. Raises `Invalid` if the headers do not name one."""
    described = set()
    if address := value_of(headers, b"x-original-url"):
        authority, _, path = address.partition(b"://")[2].partition(b"/")
        described.add((authority, b"/" + path))
    if target := value_of(headers, b"x-forwarded-uri"):
        described.add((value_of(headers, b"x-forwarded-host"), target))
    methods = {value_of(headers, name) for name in (b"x-original-method", b"x-forwarded-method")} - {b""}
    if len(described) != 1 or len(methods) > 1:
        raise Invalid(
            "Name the request to check in one way: X-Original-URL and X-Original-Method, or "
            "X-Forwarded-Host, X-Forwarded-Uri and X-Forwarded-Method"
        )
    [(authority, target)] = described
    own = [(name, value) for name, value in headers if name != b"host"]
    # The upgrade to another protocol is sent to the controller only.
    upgrade = b"websocket" if value_of(headers, b"sec-websocket-key") else b""
    # Without the header, the method may be any.
    method = next(iter(methods), b"")
    return RequestHead(method, target, [*own, (b"host", authority)], host_of(authority), NO_BODY, True, upgrade)


_TEXT = {"type": "string"}
_PARAMETERS = (
    Parameter(
        name="url",
        schema=_TEXT,
        description="Host and path of the workload's URL; without it, the URL is found by the request's address.",
    ),
    Parameter(name="X-Original-URL", place="header", schema=_TEXT, description="The request's URL, as nginx sends it."),
    Parameter(name="X-Original-Method", place="header", schema=_TEXT),
    Parameter(
        name="X-Forwarded-Host", place="header", schema=_TEXT, description="The request's path, as Traefik sends it."
    ),
    Parameter(name="X-Forwarded-Uri", place="header", schema=_TEXT),
    Parameter(name="X-Forwarded-Method", place="header", schema=_TEXT),
)
