"""Whether a request may pass to a workload's URL, for ingress controllers that pass it on themselves. Ours alone.

A controller asks before every request, with the request's own headers and its address and method in others. The gate
is the proxy's; an answer of 200 says which headers the workload gets to see in the place of those that are ours.
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
_TWO_WAYS = "This request can be read in two ways, and only one of them was asked about; send it in its plainest form."


def access_operations(gate: UrlGate) -> tuple[Operation, ...]:
    async def check_access(call: Call) -> Response:
        if call.context.sessions is None:
            raise await holder_error(call.context)
        request = read_original(call.request.headers.raw)
        try:
            return decide_access(gate, request, call.request.query_params.get("url", ""))
        except RequestDenied as denied:
            raise _ERRORS[denied.status](denied.words) from denied

    return (
        Operation(
            method="GET",
            path=ACCESS,
            id="check_url_access",
            tag="Operating",
            summary="Whether a request may pass to a workload's URL, asked by an ingress controller with its headers",
            run=check_access,
            parameters=_PARAMETERS,
            answers={200: None, 400: Error, 401: Error, 403: Error, 404: Error, 503: Error},
            is_public=True,
            is_addition=True,
        ),
    )


def decide_access(gate: UrlGate, request: RequestHead, url: str = "") -> Response:
    """What is answered for a request to the URL of that host and path, or to the one that it seems to be for."""
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
    if route.place.host != request.host:
        raise RequestDenied(403, _TWO_WAYS)
    return route


def _find(gate: UrlGate, request: RequestHead) -> Route:
    """By its path, as long as that leads to one URL however it is read: controllers differ in what they tidy up."""
    path = unquote_to_bytes(request.target.partition(b"?")[0]).replace(b"\\", b"/")
    tidied = b"/" + posixpath.normpath(path).lstrip(b"/")
    route = gate.find(request)
    if gate.find(request._replace(target=tidied)) is not route:
        raise RequestDenied(403, _TWO_WAYS)
    return route


def read_original(headers: Headers) -> RequestHead:
    """The request that is asked about. Raises Invalid where nobody says which."""
    described = set()
    if address := value_of(headers, b"x-original-url"):
        authority, _, path = address.partition(b"://")[2].partition(b"/")
        described.add((authority, b"/" + path))
    if target := value_of(headers, b"x-forwarded-uri"):
        described.add((value_of(headers, b"x-forwarded-host"), target))
    methods = {value_of(headers, name) for name in (b"x-original-method", b"x-forwarded-method")} - {b""}
    if len(described) != 1 or len(methods) > 1:
        raise Invalid(
            "Say for which request this is asked, in one way: X-Original-URL and X-Original-Method, or "
            "X-Forwarded-Host, X-Forwarded-Uri and X-Forwarded-Method"
        )
    [(authority, target)] = described
    own = [(name, value) for name, value in headers if name != b"host"]
    # That it asks for another protocol is said to the controller alone.
    upgrade = b"websocket" if value_of(headers, b"sec-websocket-key") else b""
    # One whose method nobody says may be of any.
    method = next(iter(methods), b"")
    return RequestHead(method, target, [*own, (b"host", authority)], host_of(authority), NO_BODY, True, upgrade)


_TEXT = {"type": "string"}
_PARAMETERS = (
    Parameter(
        name="url",
        schema=_TEXT,
        description="Host and path of the URL that the request is for; without it, that is found by its address.",
    ),
    Parameter(name="X-Original-URL", place="header", schema=_TEXT, description="Its address, as nginx says it."),
    Parameter(name="X-Original-Method", place="header", schema=_TEXT),
    Parameter(name="X-Forwarded-Host", place="header", schema=_TEXT, description="The same, as Traefik says it."),
    Parameter(name="X-Forwarded-Uri", place="header", schema=_TEXT),
    Parameter(name="X-Forwarded-Method", place="header", schema=_TEXT),
)
