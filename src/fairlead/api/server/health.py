"""Health checks and metrics for operators. They need no token."""

from functools import partial

import msgspec
from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, as_json
from fairlead.api.server.metrics import Metrics
from fairlead.control.workloads import read
from fairlead.model.errors import Unavailable


class Health(msgspec.Struct):
    status: str


def health_operations(metrics: Metrics) -> tuple[Operation, ...]:
    async def is_alive(call: Call) -> Response:
        return as_json(Health("alive"))

    async def is_ready(call: Call) -> Response:
        if call.context.draining or call.context.stopping:
            raise Unavailable("The server is stopping")
        await read.load_revision(call.context)
        return as_json(Health("ready"))

    async def get_metrics(call: Call) -> Response:
        return Response(metrics.render(), 200, None, "text/plain; version=0.0.4; charset=utf-8")

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
            answers={200: {"type": "string"}},
            content_type="text/plain",
        ),
    )
