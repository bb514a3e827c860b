"""Health checks and metrics for operators. They need no token of a user; metrics can ask for one of their own."""

import asyncio
import hmac
import logging
from functools import partial
from pathlib import Path

import msgspec
from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, as_json
from fairlead.api.server.metrics import Metrics
from fairlead.control.workloads import read
from fairlead.model.errors import Refused, Unauthenticated, Unavailable

logger = logging.getLogger("fairlead.api")


class Health(msgspec.Struct):
    status: str


def load_metrics_token(path: str) -> str:
    """The token that a scrape needs. Read at every scrape, so that it can be replaced; raises Refused."""
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"The file of --metrics-token-file cannot be read: {error}") from error
    if not token:
        raise Refused(f"The file of --metrics-token-file, {path}, is empty")
    return token


def check_metrics_token(path: str) -> None:
    """Raise Refused if there is no token in the file; an empty path means that none is asked for."""
    if path:
        load_metrics_token(path)


def health_operations(metrics: Metrics, token_file: str, *, are_metrics_open: bool) -> tuple[Operation, ...]:
    """Health and metrics. Without a token file, only open metrics name people, projects and workloads."""

    async def is_alive(call: Call) -> Response:
        return as_json(Health("alive"))

    async def is_ready(call: Call) -> Response:
        if call.context.draining or call.context.stopping:
            raise Unavailable("The server is stopping")
        await read.load_revision(call.context)
        return as_json(Health("ready"))

    async def get_metrics(call: Call) -> Response:
        if token_file:
            try:
                wanted = f"Bearer {await asyncio.to_thread(load_metrics_token, token_file)}"
            except Refused as error:
                # Strangers may scrape, too, and must not learn the path.
                logger.error("/metrics cannot be served: %s", error)
                raise Unavailable("The token of /metrics cannot be read; the log of the server says why") from error
            given = call.request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), wanted.encode()):
                raise Unauthenticated("/metrics needs `Authorization: Bearer` with the token of --metrics-token-file")
        text = metrics.render(has_names=bool(token_file) or are_metrics_open)
        return Response(text, 200, None, "text/plain; version=0.0.4; charset=utf-8")

    operation = partial(Operation, method="GET", tag="Operating", is_public=True, is_addition=True)
    return (
        operation(
            path="/healthz",
            id="is_alive",
            summary="Check that the process is alive",
            run=is_alive,
            answers={200: Health},
        ),
        operation(
            path="/readyz",
            id="is_ready",
            summary="Check that the server is ready for requests",
            run=is_ready,
            answers={200: Health, 503: Error},
        ),
        operation(
            path="/metrics",
            id="get_metrics",
            summary="Get metrics in Prometheus' text format",
            run=get_metrics,
            answers={200: {"type": "string"}, 401: Error, 503: Error},
            content_type="text/plain",
        ),
    )
