"""The HTTP application: one thin layer around every request, and the table of all operations.

`app` creates it with `make_application` and hands it to the HTTP server. The layer gives each request an id, finds its
operation, authenticates, limits, counts, logs, and turns every exception into the one error shape. There is no
middleware stack: a submission passes through one function.
"""

import itertools
import logging
import re
import secrets
import time
from collections.abc import Iterable
from functools import lru_cache, partial
from urllib.parse import parse_qsl, quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead import __version__
from fairlead.api.assets.assets import ASSET_OPERATIONS
from fairlead.api.assets.data_volumes import VOLUME_OPERATIONS
from fairlead.api.assets.history import HISTORY_OPERATIONS
from fairlead.api.assets.secrets import OBJECT_OPERATIONS
from fairlead.api.audit import AUDIT_OPERATIONS
from fairlead.api.deprecated.routes import deprecated_operations
from fairlead.api.documentation import documentation_operations
from fairlead.api.http.errors import HttpError, render_error
from fairlead.api.http.forward import run_or_forward
from fairlead.api.http.one_time import OneTimeCodes
from fairlead.api.http.operation import Call, Operation
from fairlead.api.http.routing import Router
from fairlead.api.http.websocket import answer_websocket
from fairlead.api.notifications import NOTIFICATION_OPERATIONS
from fairlead.api.openapi import description_operations
from fairlead.api.organization.changes import NODE_POOL_OPERATIONS, OWNER_OPERATIONS
from fairlead.api.organization.clusters import CLUSTER_CHANGE_OPERATIONS
from fairlead.api.organization.nodes import NODE_OPERATIONS
from fairlead.api.organization.reads import CLUSTER_OPERATIONS
from fairlead.api.organization.topologies import NETWORK_TOPOLOGY_OPERATIONS
from fairlead.api.page import page_operations
from fairlead.api.people.access_rules import RULE_OPERATIONS
from fairlead.api.people.accounts import PEOPLE_OPERATIONS
from fairlead.api.people.auth import authenticate, token_operations
from fairlead.api.people.browser_sessions import session_operations
from fairlead.api.people.roles import ROLE_OPERATIONS
from fairlead.api.people.rule_batches import BATCH_OPERATIONS
from fairlead.api.people.sessions import SESSION_LIST_OPERATIONS
from fairlead.api.people.sign_on import sign_on_operations
from fairlead.api.policies.policies import POLICY_OPERATIONS
from fairlead.api.proxy.access import UrlGate
from fairlead.api.proxy.ingress_auth import access_operations
from fairlead.api.server.health import health_operations
from fairlead.api.server.metrics import Metrics, Samples
from fairlead.api.settings import SETTING_OPERATIONS
from fairlead.api.telemetry.clusters import PLACE_OPERATIONS
from fairlead.api.telemetry.metrics import telemetry_operations
from fairlead.api.telemetry.owners import OWNER_TELEMETRY_OPERATIONS
from fairlead.api.templates.conversions import CONVERSION_OPERATIONS
from fairlead.api.templates.templates import TEMPLATE_OPERATIONS
from fairlead.api.unsupported import UNSUPPORTED_OPERATIONS
from fairlead.api.workloads.batch import BATCH_WORKLOAD_OPERATIONS
from fairlead.api.workloads.caller_environments import CALLER_ENVIRONMENT_OPERATIONS
from fairlead.api.workloads.catalog import CATALOG_OPERATIONS
from fairlead.api.workloads.kind_routes import kind_operations
from fairlead.api.workloads.logs import LOG_OPERATIONS
from fairlead.api.workloads.manifests import MANIFEST_OPERATIONS
from fairlead.api.workloads.reads import WORKLOAD_OPERATIONS
from fairlead.api.workloads.revisions import revision_operations
from fairlead.api.workloads.scheduling import SCHEDULING_OPERATIONS
from fairlead.api.workloads.sessions import SESSION_OPERATIONS, url_operations
from fairlead.api.workloads.types import WORKLOAD_TYPE_OPERATIONS
from fairlead.api.workloads.watch import watch_operations
from fairlead.control import access
from fairlead.control.audit import AuditSubject, AuditWriter, RequestFacts, current_request
from fairlead.control.context import Context
from fairlead.control.people.authentication import Authenticator
from fairlead.model.errors import FairleadError, TooMuch, Unavailable
from fairlead.model.records.event import AuditLine

logger = logging.getLogger("fairlead.api")
#: The command line detects a server of another version by it.
_VERSION_HEADER = (b"x-fairlead-version", __version__.encode("ascii"))
#: Makes a client connect again, which leads it to another server.
_CLOSE_HEADER = (b"connection", b"close")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for requests, and what other servers are recognized by; `app` sets them."""

    body_bytes: int = 1024 * 1024
    #: Requests that one caller may send within one second.
    requests_per_second: int = 20_000
    #: How long a read waits while another server takes over the machine.
    takeover_seconds: float = 30.0
    watch_streams: int = 1000
    #: A file with the token that a scrape of /metrics needs; empty for none.
    metrics_token_file: str = ""
    #: Whether /metrics names people, projects and workloads to everybody if no token is needed.
    are_metrics_open: bool = False
    #: The file of this server's certificate, which all servers of an installation have; empty without TLS.
    certificate: str = ""


#: Operations that need nothing of this server but the context of each call.
_TABLES: tuple[Operation, ...] = (
    *CLUSTER_OPERATIONS,
    *CLUSTER_CHANGE_OPERATIONS,
    *OWNER_OPERATIONS,
    *NODE_POOL_OPERATIONS,
    *NODE_OPERATIONS,
    *NETWORK_TOPOLOGY_OPERATIONS,
    *SCHEDULING_OPERATIONS,
    *CATALOG_OPERATIONS,
    *WORKLOAD_TYPE_OPERATIONS,
    *OBJECT_OPERATIONS,
    *ASSET_OPERATIONS,
    *HISTORY_OPERATIONS,
    *VOLUME_OPERATIONS,
    *TEMPLATE_OPERATIONS,
    *CONVERSION_OPERATIONS,
    *POLICY_OPERATIONS,
    *AUDIT_OPERATIONS,
    *NOTIFICATION_OPERATIONS,
    *PEOPLE_OPERATIONS,
    *SESSION_LIST_OPERATIONS,
    *RULE_OPERATIONS,
    *ROLE_OPERATIONS,
    *BATCH_OPERATIONS,
    *SETTING_OPERATIONS,
)


def make_application(
    context: Context,
    authenticator: Authenticator,
    settings: RequestSettings | None = None,
    samples: Samples = tuple,
    gate: UrlGate | None = None,
    more: Iterable[Operation] = (),
) -> "Application":
    """The application. `samples` adds metrics of other rooms to `/metrics`; `more` adds operations."""
    metrics = Metrics(samples)
    settings = settings or RequestSettings()
    gate = gate or UrlGate(authenticator, context.url_registry, context.clock)
    operations = [
        *kind_operations(),
        *token_operations(authenticator),
        *WORKLOAD_OPERATIONS,
        *BATCH_WORKLOAD_OPERATIONS,
        *MANIFEST_OPERATIONS,
        *CALLER_ENVIRONMENT_OPERATIONS,
        *revision_operations(),
        *telemetry_operations(),
        *PLACE_OPERATIONS,
        *OWNER_TELEMETRY_OPERATIONS,
        *LOG_OPERATIONS,
        *SESSION_OPERATIONS,
        *url_operations(gate),
        *watch_operations(settings.watch_streams),
        *_TABLES,
        *deprecated_operations(authenticator),
        *UNSUPPORTED_OPERATIONS,
        *health_operations(metrics, settings.metrics_token_file, are_metrics_open=settings.are_metrics_open),
        *access_operations(gate),
        *_browser_operations(context, authenticator),
        *more,
    ]
    operations += description_operations(operations)
    return Application(context, authenticator, settings, metrics, operations)


def _browser_operations(context: Context, authenticator: Authenticator) -> list[Operation]:
    """The page, its sessions, and the documentation."""
    sessions = session_operations(authenticator, OneTimeCodes(context.clock))
    return [*sessions, *sign_on_operations(authenticator), *page_operations(), *documentation_operations()]


class Application:
    """The ASGI application. Created by `make_application` only."""

    def __init__(
        self,
        context: Context,
        authenticator: Authenticator,
        settings: RequestSettings,
        metrics: Metrics,
        operations: list[Operation],
    ) -> None:
        self._context = context
        self._auditor = AuditWriter(context)
        self._authenticator = authenticator
        self._settings = settings
        self._metrics = metrics
        self._router = Router(operations)
        self._second = 0
        self._requests: dict[str, int] = {}
        self._ids = itertools.count(1)
        self._id_prefix = secrets.token_hex(5)

    async def close(self) -> None:
        """Write what the audit still has to write."""
        await self._auditor.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        elif self._opens_session(scope["path"]):
            await answer_websocket(scope, receive, send, self._answer)
        else:
            # A WebSocket that is closed before it is accepted is answered with 403.
            await send({"type": "websocket.close", "code": 1000})

    def _opens_session(self, path: str) -> bool:
        """Whether a POST to the path opens a session in a pod; only those have a WebSocket too."""
        try:
            return self._router.find("POST", path)[0].is_session
        except HttpError:
            return False

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request_id = self._request_id(scope)
        operation: Operation | None = None
        self._metrics.in_flight += 1
        try:
            try:
                operation, path = self._router.find(scope["method"], scope["path"])
                response = await self._run(operation, path, scope, receive, request_id)
            except Exception as error:
                response = self._render(error, operation, scope, request_id)
            response.raw_headers.append((b"x-request-id", request_id.encode("latin-1")))
            response.raw_headers.append(_VERSION_HEADER)
            if self._context.draining:
                response.raw_headers.append(_CLOSE_HEADER)
            if operation is not None and _is_audited(operation, scope, response.status_code):
                self._audit(operation, scope, response.status_code, request_id)
            await self._send(response, scope, receive, send, request_id)
        finally:
            self._metrics.in_flight -= 1
        seconds = time.perf_counter() - started
        self._metrics.count(operation.id if operation else "unknown", response.status_code, seconds)
        if logger.isEnabledFor(logging.DEBUG) or response.status_code >= 400:
            self._log(scope, response.status_code, request_id, seconds)

    async def _send(self, response: Response, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        """Send the response. If a stream fails, its status is already sent, so the error is logged."""
        try:
            await response(scope, receive, send)
        except ClientDisconnect:
            logger.debug("The caller of %s disconnected", scope["path"][:500])
        except Exception as error:
            fields = {"request_id": request_id, "method": scope["method"], "path": scope["path"][:500]}
            trace = None if isinstance(error, FairleadError) else error
            logger.error("A response failed while it was sent: %s", error, exc_info=trace, extra={"fields": fields})

    async def _run(
        self, operation: Operation, path: dict[str, str], scope: Scope, receive: Receive, request_id: str
    ) -> Response:
        context = self._context
        scope["fairlead.body_limit"] = self._settings.body_bytes
        call = Call(context, operation, Request(scope, receive), request_id)
        call.path = path
        scope["fairlead.call"] = call
        current_request.set(_facts(scope))
        if not operation.is_public:
            call.authenticate = partial(authenticate, self._authenticator, call.request)
            call.caller = call.authenticate()
            call.confirm_session = partial(self._confirm_session, call)
            await call.confirm_session()
            self._limit(call.caller.id)
            if context.stopping:
                raise Unavailable("The server is stopping; send the request again in a moment")
        if operation.needs:
            access.check(call.caller, operation.needs)
        return await run_or_forward(call, self._settings.takeover_seconds, self._settings.certificate)

    async def _confirm_session(self, call: Call) -> None:
        """Ask the identity provider about the caller's session, if that is due; their rights may change."""
        if await self._authenticator.confirm_session(call.caller):
            call.caller = call.authenticate()

    def _audit(self, operation: Operation, scope: Scope, status: int, request_id: str) -> None:
        """Record a refusal, a sign-in or a session; changes are recorded with what they change."""
        call: Call | None = scope.get("fairlead.call")
        name = scope.get("fairlead.account", "") if operation.is_sign_in else call.caller.name if call else ""
        if call is None or not name:
            # Anybody can send requests without an account; they must not fill the audit.
            return
        facts = _facts(scope)
        subject = call.audited or AuditSubject(operation.tag.lower(), next(iter(call.path.values()), ""), "")
        self._auditor.add(
            AuditLine(
                at=self._context.clock(),
                caller=name,
                caller_type=call.caller.type,
                operation=operation.id,
                action="sign-in" if operation.is_sign_in else _ACTIONS.get(scope["method"], "create"),
                subject=subject.collection,
                subject_id=subject.id,
                subject_name=subject.name,
                cluster_id=subject.cluster_id,
                request_id=request_id,
                result="Succeeded" if status < 400 else "Failed",
                status=status,
                address=facts.address,
                method=facts.method,
                url=facts.url,
            )
        )

    def _limit(self, caller: str) -> None:
        """Count a caller's requests in the current second; raises `TooMuch` above the limit."""
        second = self._context.clock() // 1000
        if second != self._second:
            self._second = second
            self._requests.clear()
        number = self._requests.get(caller, 0) + 1
        self._requests[caller] = number
        if number > self._settings.requests_per_second:
            raise TooMuch(
                f"More than {self._settings.requests_per_second} requests within a second; wait and try again"
            )

    def _request_id(self, scope: Scope) -> str:
        """The caller's own request id if it is valid, else a new one."""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                if _REQUEST_ID.fullmatch(value):
                    return str(value, "ascii")
                break
        return f"{self._id_prefix}-{next(self._ids):x}"

    def _render(self, error: Exception, operation: Operation | None, scope: Scope, request_id: str) -> Response:
        if not isinstance(error, FairleadError | HttpError):
            fields = {"request_id": request_id, "method": scope["method"], "path": scope["path"]}
            logger.error("Unexpected error in a request", exc_info=error, extra={"fields": fields})
        return render_error(error, operation.answers if operation else {}, request_id)

    def _log(self, scope: Scope, status: int, request_id: str, seconds: float) -> None:
        """Log a failed request; successful ones are logged at debug level. Never logs headers or body."""
        level = logging.DEBUG if status < 400 else logging.INFO if status < 500 else logging.WARNING
        fields = {
            "request_id": request_id,
            "method": scope["method"],
            "path": scope["path"][:500],
            "status": status,
            "milliseconds": round(seconds * 1000, 2),
        }
        logger.log(level, "%s %s %d", scope["method"], scope["path"][:500], status, extra={"fields": fields})


#: The action that a method stands for in the audit.
_ACTIONS = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
#: Parameters with which an operation only says what it would do.
_CHECKS = ("dryRun", "validateOnly")


def _facts(scope: Scope) -> RequestFacts:
    client, server = scope.get("client"), scope.get("server") or ("", 0)
    url = _url(scope.get("scheme", "http"), server[0], server[1], scope["path"][:500])
    return RequestFacts(client[0] if client else "", scope["method"], url)


@lru_cache(256)
def _url(scheme: str, host: str, port: int | None, path: str) -> str:
    return f"{scheme}://{host}:{port}{quote(path)}"


def _is_audited(operation: Operation, scope: Scope, status: int) -> bool:
    """Whether a request is recorded by itself: sign-ins, sessions, and writes that were refused."""
    if operation.is_sign_in or operation.is_session:
        return True
    return status >= 400 and scope["method"] in _ACTIONS and not (status == 400 and _only_checks(operation, scope))


def _only_checks(operation: Operation, scope: Scope) -> bool:
    """Whether a request would change nothing: the page sends one whenever somebody types into a form."""
    if operation.is_question:
        return True
    true_parameters = {
        name for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if value in ("true", "plan")
    }
    return any(parameter.name in true_parameters for parameter in operation.parameters if parameter.name in _CHECKS)


async def _live(receive: Receive, send: Send) -> None:
    """Acknowledge the server's lifespan messages; `app` starts and stops everything."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
