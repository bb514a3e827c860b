"""What messages say about a workload or a project. Pure.

The messages of events are not repeated: they may name workloads of others.
"""

import string
from collections.abc import Mapping

import msgspec

from fairlead.control.decide.idle_gpus import IDLE_GPUS, IDLE_LIMIT
from fairlead.control.decide.phases import EVICTED
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.event import Event
from fairlead.model.records.notifications import NotificationRule
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.scheduling.messages import format_amount

#: The events that a rule can name, and how a message says them.
NOTIFIED = {
    "started": "has started",
    "completed": "has completed",
    "failed": "has failed",
    "evicted": "was evicted and waits for resources again",
    "idle": "has idle GPUs",
    "waiting": "has been waiting for a long time",
    "quota": "uses its whole quota of GPUs",
}
_PHASES = {Phase.RUNNING: "started", Phase.COMPLETED: "completed", Phase.FAILED: "failed"}
#: Reasons of events of a workload.
_REASONS = {IDLE_GPUS: "idle", IDLE_LIMIT: "idle"}
#: The names that a template can use after `$`.
NAMES = ("workload", "project", "event", "phase", "user", "time", "url", "text")


def notified_by(event: Event) -> str:
    """What an event tells about a workload; empty for nothing."""
    if event.subject != "workloads" or event.pod_id:
        return ""
    if event.phase == Phase.PENDING and event.message == EVICTED:
        return "evicted"
    return _REASONS.get(event.reason) or next((word for phase, word in _PHASES.items() if event.phase == phase), "")


def check_template(template: str) -> None:
    """Raise Invalid for a template with unknown names."""
    text = string.Template(template)
    unknown = [name for name in text.get_identifiers() if name not in NAMES]
    if unknown or not text.is_valid():
        names = ", ".join(f"${name}" for name in NAMES)
        raise Invalid(issues=(ComplianceIssue("template", f"has an unknown name after $; known are {names}"),))


def render_workload(rule: NotificationRule, workload: Workload, notified: str, at: Millis, public_url: str) -> str:
    """What is sent about a workload: members for programs, and a text for people."""
    url = f"{public_url.rstrip('/')}/ui/workloads/{workload.id}" if public_url else ""
    members = {
        "event": notified,
        "workload": workload.name,
        "workloadId": workload.id,
        "type": workload.kind,
        "project": workload.project_name,
        "phase": workload.phase.value,
        "user": workload.created_by,
        "time": iso(at),
        "url": url,
    }
    return _render(rule, members, f"{workload.name} in project {workload.project_name} {NOTIFIED[notified]}")


def render_quota(rule: NotificationRule, project: str, used: float, quota: float, at: Millis) -> str:
    """What is sent when a project uses its quota."""
    members = {
        "event": "quota",
        "workload": "",
        "workloadId": "",
        "type": "",
        "project": project,
        "phase": "",
        "user": "",
        "time": iso(at),
        "url": "",
    }
    amounts = f"it uses {format_amount(used, 'gpu')} GPUs, its quota is {format_amount(quota, 'gpu')}"
    return _render(rule, members, f"Project {project} {NOTIFIED['quota']}: {amounts}")


def _render(rule: NotificationRule, members: Mapping[str, str], usual: str) -> str:
    text = f"{usual}\n{members['url']}" if members["url"] else usual
    if rule.template:
        text = string.Template(rule.template).safe_substitute(members, text=usual)
    return msgspec.json.encode({**members, "text": text}).decode()
