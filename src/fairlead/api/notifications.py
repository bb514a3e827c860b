"""Routes of notification rules and of deliveries that failed. An addition of Fairlead."""

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import NO_CACHE, Call, Handler, Operation, Parameter, RequestBody, Schema, as_json
from fairlead.api.http.shapes import Instant, Shape
from fairlead.control.notifications import rules
from fairlead.control.notifications.rules import NotificationRuleInput
from fairlead.model.clock import SECOND, iso
from fairlead.model.records.notifications import Delivery, NotificationRule
from fairlead.model.spec.fields import Spec

_BASE = "/api/v1/notification-rules"


class NotificationRuleBody(Spec, frozen=True, kw_only=True):
    """What to tell, and where: `channel` is webhook, slack or email; without a project, about your own workloads."""

    channel: str
    #: A URL, or a mail address.
    target: str
    #: Some of started, completed, failed, evicted, idle, waiting, quota.
    on: tuple[str, ...]
    project_id: str = ""
    template: str = ""
    #: How long a workload waits before `waiting` is told.
    waiting_seconds: int = 3600


class NotificationRuleView(Shape):
    id: str
    channel: str
    #: A mail address, or the host of the URL.
    target: str
    on: tuple[str, ...]
    project_id: str
    owner: str
    template: str
    waiting_seconds: int
    created_at: Instant
    #: The key that signs webhooks; only in the answer to the creation.
    signing_key: str | UnsetType = UNSET


class NotificationRuleList(Shape):
    rules: list[NotificationRuleView]


class DeliveryView(Shape):
    """A message that could not be delivered yet, or was given up (`nextAttempt` is null)."""

    id: str
    rule_id: str
    event: str
    workload_id: str
    workload_name: str
    created_at: Instant
    attempts: int
    next_attempt: Instant | None
    error: str


class DeliveryList(Shape):
    deliveries: list[DeliveryView]


def _view(rule: NotificationRule, key: str = "") -> NotificationRuleView:
    return NotificationRuleView(
        id=rule.id,
        channel=rule.channel,
        target=rule.target,
        on=rule.on,
        project_id=rule.project_id,
        owner=rule.owner_name,
        template=rule.template,
        waiting_seconds=rule.waiting // SECOND,
        created_at=iso(rule.created_at),
        signing_key=key or UNSET,
    )


def _delivery(delivery: Delivery) -> DeliveryView:
    return DeliveryView(
        id=delivery.id,
        rule_id=delivery.rule_id,
        event=delivery.event,
        workload_id=delivery.workload_id,
        workload_name=delivery.workload_name,
        created_at=iso(delivery.created_at),
        attempts=delivery.attempts,
        next_attempt=iso(delivery.next_at) if delivery.next_at is not None else None,
        error=delivery.error,
    )


async def get_rules(call: Call) -> Response:
    own_rules = await rules.find_rules(call.context, call.caller)
    return as_json(NotificationRuleList(rules=[_view(rule) for rule in own_rules]))


async def create_rule(call: Call) -> Response:
    body = await receive_json(call, NotificationRuleBody)
    given = NotificationRuleInput(
        channel=body.channel,
        target=body.target,
        on=body.on,
        project_id=body.project_id,
        template=body.template,
        waiting_seconds=body.waiting_seconds,
    )
    created = await rules.create_rule(call.context, call.caller, given, call.request_id)
    return as_json(_view(created.rule, created.key), 201, NO_CACHE)


async def delete_rule(call: Call) -> Response:
    await rules.delete_rule(call.context, call.caller, call.path["ruleId"], call.request_id)
    return Response(status_code=204)


async def test_rule(call: Call) -> Response:
    return as_json(_delivery(await rules.try_rule(call.context, call.caller, call.path["ruleId"])), 202)


async def get_errors(call: Call) -> Response:
    failed = await rules.find_errors(call.context, call.caller)
    return as_json(DeliveryList(deliveries=[_delivery(one) for one in failed]))


def _operation(method: str, suffix: str, id: str, summary: str, run: Handler, answers: dict[int, Schema]) -> Operation:
    name = suffix.partition("{")[2].partition("}")[0]
    return Operation(
        method=method,
        path=f"{_BASE}{suffix}",
        id=id,
        tag="Notifications",
        summary=summary,
        run=run,
        parameters=(Parameter(name=name, place="path", schema={"type": "string"}),) if name else (),
        body=RequestBody(schema=NotificationRuleBody) if run is create_rule else None,
        answers={**failing(400, 401, 403, 404, 500, 503), **answers},
        is_addition=True,
    )


NOTIFICATION_OPERATIONS: tuple[Operation, ...] = (
    _operation("GET", "", "get_notification_rules", "List notification rules", get_rules, {200: NotificationRuleList}),
    _operation(
        "POST", "", "create_notification_rule", "Create a notification rule", create_rule, {201: NotificationRuleView}
    ),
    _operation(
        "GET", "/errors", "get_notification_errors", "List deliveries that failed", get_errors, {200: DeliveryList}
    ),
    _operation(
        "DELETE", "/{ruleId}", "delete_notification_rule", "Delete a notification rule", delete_rule, {204: None}
    ),
    _operation(
        "POST", "/{ruleId}/test", "test_notification_rule", "Send a test message", test_rule, {202: DeliveryView}
    ),
)
