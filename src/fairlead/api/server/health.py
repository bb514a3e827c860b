"""Health checks and metrics for operators. They need no token."""

from typing import Any

import msgspec
from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Handler, Operation, as_json
from fairlead.api.server.metrics import Metrics
from fairlead.control.workloads import read
from fairlead.model.errors import Unavailable


class Health(msgspec.Struct):
    status: str


def health_operations(metrics: Metrics) -> tuple[Operation, ...]:
    async def is_alive(call: Call) -> Response:
        return as_json(Health("alive"))

    async def is_ready(call: Call) -> Response:
        if call.context.stopping:
            raise Unavailable("The server is stopping")
        await read.load_revision(call.context)
        return as_json(Health("ready"))

    async def get_metrics(call: Call) -> Response:
        return Response(metrics.render(), 200, None, "text/plain; version=0.0.4; charset=utf-8")

    def operation(path: str, id: str, summary: str, run: Handler, **members: Any) -> Operation:
        return Operation(
            method="GET",
            path=path,
            id=id,
            tag="Operating",
            summary=summary,
            run=run,
            is_public=True,
            is_addition=True,
            **members,
        )

    return (
        operation("/healthz", "is_alive", "Check that the process is alive", is_alive, answers={200: Health}),
        operation(
            "/readyz",
            "is_ready",
            "Check that the server is ready for requests",
            is_ready,
            answers={200: Health, 503: Error},
        ),
        operation(
            "/metrics",
            "get_metrics",
            "Get metrics in Prometheus' text format",
            get_metrics,
            answers={200: {"type": "string"}},
            content_type="text/plain",
        ),
    )
