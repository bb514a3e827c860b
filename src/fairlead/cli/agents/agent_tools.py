"""What the tools for agents do: one or two requests to the server each, with the caller's own rights.

The docstrings are what an agent reads to choose a tool.
"""

import threading
from collections.abc import Sequence
from typing import Any

from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads.queue import sort_by_turn
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.suggest import suggest

#: Workloads in an overview, and for how many of them changes are suggested.
_SHOWN, _SUGGESTED = 100, 20
#: Words of events that tell of an eviction.
_EVICTIONS = ("evict", "preempt")


class UnknownKind(ValueError):
    """A kind of workload that does not exist."""


class AgentTools:
    def __init__(self, session: ServerSession) -> None:
        self._client = session.client
        # Tools run in threads, and the connection serves one request at a time.
        self._turn = threading.RLock()

    def explain(self, workload: str, project: str | None = None) -> Json:
        """Explain the state of a workload: its phase, what it waits for, who holds that, and which changes would start
        it. Every change was tried on the scheduler; `changes` are sorted, the best first. Use it when a workload is
        Pending or does not do what is expected."""
        with self._turn:
            row = self._client.find_workload(workload, project=project)
            explanation = self._client.explanation(row["id"])
            if explanation.get("waiting"):
                explanation["why"] = self._client.why(row["id"])
        return {name: value for name, value in explanation.items() if name != "values"}

    def plan(self, kind: str, name: str, spec: dict[str, Any], project: str | None = None) -> Json:
        """Show what submitting a workload would do, without submitting it: where it starts or what it waits for and
        until when, whom it evicts or delays, and the quotas afterwards. `kind` is training, workspace, inference or
        another kind; `spec` is the spec of the REST interface, for example
        {"image": "python:3.12", "command": "python train.py", "compute": {"gpuDevicesRequest": 1}}."""
        with self._turn:
            plan: Json = self._client.kind(_kind_of(kind)).plan(self._request(name, spec, project))
        return plan

    def what_if(self, changes: list[dict[str, Any]]) -> Json:
        """Show what changes would do to all workloads, without making them: who starts, who is evicted, who waits
        longer, shares before and after. Examples of changes: {"change": "share", "queue": "team-a", "field": "quota",
        "resource": "gpu", "value": 8}, {"change": "addNodes", "like": "node-1", "count": 2}, {"change": "node", "node":
        "node-1", "action": "drain"}, {"change": "removeWorkload", "workload": "team-a/bert"}. `field` may also be limit
        or weight, `action` cordon, uncordon or remove."""
        with self._turn:
            return self._client.what_if(changes)

    def estimate(self, workload: str, project: str | None = None) -> Json:
        """Estimate when a pending workload starts: the median `p50` and the time `p90` by which nine of ten such starts
        happen, in seconds since 1970, with what happens before. The status `unknown` says why there is no estimate."""
        with self._turn:
            return self._client.estimate(self._client.find_workload(workload, project=project)["id"])

    def queue_overview(self, project: str | None = None) -> Json:
        """List the workloads that wait, in the order in which they are considered: what each waits for, since when, and
        the best change that would start it. Without a project, all projects that you may see."""
        with self._turn:
            filters = ["phase==Pending"]
            if project is not None:
                filters.append(f"projectId=={self._client.project(project)['id']}")
            rows = sort_by_turn(list(self._client.all_workloads(filterBy=filters)))
            suggestions = self._client.suggestions([row["id"] for row in rows[:_SUGGESTED]]) if rows else {}
        members = ("position", "name", "projectName", "submittedBy", "priority", "createdAt", "phaseMessage")
        waiting = [
            {**{member: row.get(member) for member in members}, "bestChange": suggestions.get(row["id"])}
            for row in rows[:_SHOWN]
        ]
        return {"waiting": waiting, "count": len(rows)}

    def audit_quota(self, project: str | None = None) -> Json:
        """Compare quotas with use: for each project and department and each node pool, its quota, limit and over-quota
        weight, what it has allocated and requested, and its fair share of GPUs with what it borrows and lends. Who
        uses more than its fair share can lose it. Without a project, all that you may see."""
        with self._turn:
            projects = self._client.projects() if project is None else [self._client.project(project)]
            departments = self._client.departments() if project is None else []
            shares = self._client.gpu_shares()
        return {
            "projects": [_quota_of(row, "project", shares) for row in projects],
            "departments": [_quota_of(row, "department", shares) for row in departments],
        }

    def diagnose_eviction(self, workload: str, project: str | None = None) -> Json:
        """Explain why a workload lost its place: the last eviction with its rule, the workload that it made room for
        and the figures of both queues, and the events that tell of evictions."""
        with self._turn:
            row = self._client.find_workload(workload, project=project)
            explanation = self._client.explanation(row["id"], waiting=False)
            events = self._client.events(row["id"])
        return {
            "workload": row["name"],
            "phase": explanation["phase"],
            "message": explanation.get("message"),
            "lastEviction": explanation.get("lastEviction"),
            "events": [event for event in events if _is_about_eviction(event)],
        }

    def usage(self, by: str = "project", since: str | None = None, until: str | None = None) -> Json:
        """Report who used, borrowed, lent and waited for GPU-, CPU- and memory-hours. `by` is one or more of project,
        department, user, workload, nodepool and day, joined by commas. `since` and `until` are times such as
        2026-10-01T00:00:00Z; the last 30 days without them."""
        with self._turn:
            report: Json = self._client.request("GET", "/api/v1/usage", by=by, since=since, until=until)
        return report

    def submit(self, kind: str, name: str, spec: dict[str, Any], project: str | None = None) -> Json:
        """Submit a workload. Ask `plan` first. What could never start is refused."""
        with self._turn:
            request = self._request(name, spec, project)
            created: Json = self._client.kind(_kind_of(kind)).submit(request, must_fit=True)
        return created

    def suspend(self, workload: str, project: str | None = None) -> Json:
        """Suspend a workload: its pods stop, and it can be resumed later."""
        with self._turn:
            row = self._client.find_workload(workload, project=project)
            by_type = {kind.title: key for key, kind in load_kinds().items()}
            answer: Json = self._client.kind(by_type[row["type"]]).suspend(row["id"])
        return answer

    def _request(self, name: str, spec: dict[str, Any], project: str | None) -> Json:
        owner = self._client.project(project)
        return {"name": name, "projectId": str(owner["id"]), "clusterId": owner["clusterId"], "spec": spec}


def _kind_of(name: str) -> str:
    known = load_kinds()
    if name not in known:
        raise UnknownKind(f"There is no kind '{name}'.{suggest(name, known)} The kinds are {', '.join(known)}.")
    return name


def _is_about_eviction(event: Json) -> bool:
    text = f"{event.get('reason')} {event.get('message')}".lower()
    return any(word in text for word in _EVICTIONS)


def _quota_of(row: Json, owner: str, shares: Sequence[Json]) -> Json:
    return {
        "name": row["name"],
        "resources": row.get("resources"),
        "used": (row.get("status") or {}).get("nodePoolQuotaStatuses"),
        "gpuShares": [share for share in shares if (share["type"], share["id"]) == (owner, row["id"])],
    }
