"""Use cases on notification rules and deliveries: create, list, delete, test, errors. Called by the API.

Everybody can have rules about their own workloads. A rule about all workloads of a project needs the right to change
the project.
"""

import re
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.notifications.messages import NOTIFIED, check_template
from fairlead.control.records import AuditedRequest, RecordChange, record_steps
from fairlead.model.clock import DAY, SECOND, Millis
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound, TooMuch, refuse_malformed
from fairlead.model.records.notifications import Delivery, NotificationRule
from fairlead.model.records.people import Caller
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import DELIVERIES, NOTIFICATION_RULES

CHANNELS = ("webhook", "slack", "email")
MAX_RULES = 50
_LONGEST = 2000
_MAIL = re.compile(r"[^@\s,;:<>()\[\]\\\"]+@[\w.-]+\Z")
#: Between two tests of one rule.
TEST_PAUSE: Millis = 10 * SECOND


class NotificationRuleInput(msgspec.Struct, frozen=True, kw_only=True):
    channel: str
    target: str
    on: tuple[str, ...]
    project_id: str = ""
    template: str = ""
    waiting_seconds: int = 3600


class CreatedRule(NamedTuple):
    """A new rule, and the key that signs its webhooks, which is shown once."""

    rule: NotificationRule
    key: str


async def create_rule(
    context: Context, caller: Caller, input: NotificationRuleInput, request_id: str = ""
) -> CreatedRule:
    if input.project_id:
        access.check(caller, "projects:update", input.project_id)
    refuse_malformed(_find_issues(caller, input))
    if input.channel == "email" and not context.settings.sends_mail:
        details = (
            "is email, but this server has no mail server; "
            "use webhook or slack, or ask its operator to start it with --smtp-url and --smtp-from"
        )
        raise Invalid(issues=(ComplianceIssue("channel", details),))
    check_template(input.template)
    own = Query(collection=NOTIFICATION_RULES, where=(Where("owner_id", Comparison.EQUAL, caller.id),))
    if await context.store.count(own) >= MAX_RULES:
        raise Invalid(f"You have {MAX_RULES} notification rules, the maximum; delete one first")
    id, now = context.new_id(), context.clock()
    key = secrets.token_urlsafe(32) if input.channel == "webhook" else ""
    is_mail = input.channel == "email"
    rule = NotificationRule(
        id=id,
        version=1,
        owner_id=caller.id,
        owner_name=caller.name,
        project_id=input.project_id,
        on=tuple(dict.fromkeys(input.on)),
        channel=input.channel,
        target=input.target if is_mail else str(urlsplit(input.target).hostname),
        sealed="" if is_mail else context.vault.seal({"url": input.target, "key": key}, id),
        template=input.template,
        waiting=input.waiting_seconds * SECOND,
        created_at=now,
    )
    message = f"{caller.name} wants to be notified by {input.channel}"
    step = RecordChange(NOTIFICATION_RULES, id, rule, "Created", message)
    await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    return CreatedRule(rule, key)


def _find_issues(caller: Caller, input: NotificationRuleInput) -> list[ComplianceIssue]:
    issues = []
    if input.channel not in CHANNELS:
        issues.append(ComplianceIssue("channel", f"must be one of {', '.join(CHANNELS)}"))
    elif input.channel == "email":
        if not _MAIL.match(input.target) or len(input.target) > _LONGEST:
            issues.append(ComplianceIssue("target", "must be a mail address"))
        elif input.target.lower() != caller.name.lower() and not input.project_id and not caller.is_administrator:
            issues.append(ComplianceIssue("target", f"must be your own address, {caller.name}"))
    else:
        if not _is_url(input.target):
            issues.append(ComplianceIssue("target", "must be a URL that starts with https:// or http://"))
    unknown = [word for word in input.on if word not in NOTIFIED]
    if unknown or not input.on:
        issues.append(ComplianceIssue("on", f"must be some of {', '.join(NOTIFIED)}"))
    if "quota" in input.on and not input.project_id:
        issues.append(ComplianceIssue("on", "can have quota only in a rule about a project (projectId)"))
    if not 60 <= input.waiting_seconds <= 30 * DAY // SECOND:
        issues.append(ComplianceIssue("waitingSeconds", "must be from 60 to 2592000"))
    if len(input.template) > _LONGEST:
        issues.append(ComplianceIssue("template", f"must have at most {_LONGEST} characters"))
    return issues


def _is_url(target: str) -> bool:
    try:
        parts = urlsplit(target)
        has_port = parts.port != 0
    except ValueError:
        return False
    is_plain = target.isascii() and target.isprintable() and " " not in target and len(target) <= _LONGEST
    return (
        is_plain and has_port and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    )


async def find_rules(context: Context, caller: Caller) -> list[NotificationRule]:
    """The caller's rules; an administrator sees all."""
    where = () if caller.is_administrator else (Where("owner_id", Comparison.EQUAL, caller.id),)
    return await context.store.find(Query(collection=NOTIFICATION_RULES, where=where, order=(("created_at", False),)))


async def load_rule(context: Context, caller: Caller, id: str) -> NotificationRule:
    rule = await context.store.get(NOTIFICATION_RULES, id) if "\x00" not in id else None
    if rule is None or (rule.owner_id != caller.id and not caller.is_administrator):
        raise NotFound(f"You have no notification rule with the id {id[:60]!r}")
    return rule


async def delete_rule(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    rule = await load_rule(context, caller, id)
    step = RecordChange(NOTIFICATION_RULES, rule.id, None, "Deleted", f"{caller.name} deleted a notification rule")
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)


async def try_rule(context: Context, caller: Caller, id: str) -> Delivery:
    """Make a delivery that says that it is a test."""
    rule = await load_rule(context, caller, id)
    now = context.clock()
    await _check_pause(context, rule, now)
    members = {"event": "test", "workload": "test", "text": f"This is a test of a notification of {rule.owner_name}"}
    delivery = Delivery(
        id=f"{rule.id}.test.{context.new_id()}",
        version=1,
        rule_id=rule.id,
        owner_id=rule.owner_id,
        project_id=rule.project_id,
        event="test",
        workload_id="",
        workload_name="",
        body=msgspec.json.encode(members).decode(),
        created_at=now,
        next_at=now,
    )
    await context.store.commit(Change(writes=(Put(DELIVERIES, delivery),)))
    return delivery


async def _check_pause(context: Context, rule: NotificationRule, now: Millis) -> None:
    """Raise TooMuch after a test that was just made, so that nobody floods a receiver."""
    where = (
        Where("owner_id", Comparison.EQUAL, rule.owner_id),
        Where("created_at", Comparison.ABOVE, now - TEST_PAUSE),
    )
    recent: list[Delivery] = await context.store.find(Query(collection=DELIVERIES, where=where))
    if any(one.rule_id == rule.id and one.event == "test" for one in recent):
        seconds = TEST_PAUSE // SECOND
        raise TooMuch(f"This rule was tested less than {seconds} s ago; try again in a moment", seconds)


async def find_errors(context: Context, caller: Caller) -> list[Delivery]:
    """Deliveries that failed at least once and were not sent, newest first."""
    where = [Where("has_failed", Comparison.EQUAL, 1)]
    if not caller.is_administrator:
        where.append(Where("owner_id", Comparison.EQUAL, caller.id))
    query = Query(collection=DELIVERIES, where=tuple(where), order=(("created_at", True),), limit=200)
    return await context.store.find(query)
