"""The report of usage: who used, borrowed, lent and waited for what. An addition of Fairlead."""

from typing import cast

from starlette.responses import Response

from fairlead.api.http.body import query_text, wrong_parameter
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.telemetry.metrics import read_names
from fairlead.control.ledger.report import DIMENSIONS, Dimension, UsageReport
from fairlead.control.telemetry.usage_report import UsageQuestion, report_usage
from fairlead.model.clock import DAY, Millis, from_iso

_DEFAULT_PERIOD = 30 * DAY
_TIME = {"type": "string", "format": "date-time"}


async def get_usage(call: Call) -> Response:
    until = _read_time(call, "until")
    since = _read_time(call, "since")
    end = call.context.clock() if until is None else until
    question = UsageQuestion(
        since=max(0, end - _DEFAULT_PERIOD) if since is None else since,
        until=until,
        by=cast(tuple[Dimension, ...], read_names(call, "by", DIMENSIONS)) or ("project",),
        cluster_id=query_text(call, "clusterId").lower(),
    )
    return as_json(await report_usage(call.context, call.caller, question))


def _read_time(call: Call, name: str) -> Millis | None:
    text = query_text(call, name)
    try:
        # A plus sign that was not escaped arrives as a space.
        return from_iso(text.replace(" ", "+")) if text else None
    except (ValueError, OverflowError):
        raise wrong_parameter(name, "must be an ISO-8601 date and time") from None


USAGE_OPERATIONS = (
    Operation(
        method="GET",
        path="/api/v1/usage",
        id="get_usage",
        tag="Usage",
        summary="Report who used, borrowed, lent and waited for GPUs, CPU and memory",
        run=get_usage,
        parameters=(
            Parameter(name="since", schema=_TIME, description="The beginning; 30 days before the end by default."),
            Parameter(name="until", schema=_TIME, description="The end; now by default."),
            Parameter(
                name="by",
                schema={"type": "string", "default": "project", "examples": ["project,day"]},
                description=f"What to group by: one or more of {', '.join(DIMENSIONS)}, separated by commas.",
            ),
            Parameter(
                name="clusterId",
                schema={"type": "string", "format": "uuid"},
                description="The only cluster that counts; all clusters by default.",
            ),
        ),
        answers={200: UsageReport, **failing(400, 401, 403, 404, 503)},
        is_addition=True,
    ),
)
