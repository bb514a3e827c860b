"""Makes the changes that a what-if was asked about, after a confirmation: for `what-if --apply` and `node drain`."""

import json

from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.console import is_terminal
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds

YES = Flag("yes", "Make the changes without asking for confirmation", "boolean", "y")
#: What can be done to a node, and how it is reported.
MAINTENANCE = {
    "cordon": "cordoned, it takes no new pods",
    "uncordon": "uncordoned, pods can be placed on it again",
    "drain": "cordoned, and its pods are being evicted",
}


def refuse_inapplicable(changes: list[Json]) -> None:
    """Refuse changes for which the server has no operation, before anything is asked or changed."""
    by_hand = [change for change in changes if not _is_applicable(change)]
    if by_hand:
        raise UsageError(
            f"The server has no operation for {json.dumps(by_hand[0])}; leave --apply out, or make that change by hand."
        )


def _is_applicable(change: Json) -> bool:
    return change["change"] in ("share", "removeWorkload") or change.get("action") in MAINTENANCE


def confirm_and_apply(session: ServerSession, changes: list[Json]) -> int:
    """Make the changes if the user confirms them, or has said --yes."""
    if not is_confirmed(session):
        return FAILED
    workloads = {
        change["workload"]: _find_workload(session, change["workload"])
        for change in changes
        if change["change"] == "removeWorkload"
    }
    for change in changes:
        if change["change"] == "share":
            _apply_share(session, change)
        elif change["change"] == "node":
            node = find_named(session.client.nodes(limit=500), change["node"], "node")
            maintain_node(session, node, change["action"])
        else:
            _suspend(session, workloads[change["workload"]])
    return OK


def maintain_node(session: ServerSession, node: Json, action: str) -> None:
    """Cordon, uncordon or drain a node."""
    session.client.request("POST", f"/api/v1/nodes/{quote(node['id'])}/{action}")
    session.console.data(f"{node['name']}: {MAINTENANCE[action]}")


def is_confirmed(session: ServerSession, question: str = "Make these changes?") -> bool:
    """Whether the user says yes, or has said --yes; without a terminal the answer is no."""
    if session.invocation.get("yes"):
        return True
    environment = session.invocation.environment
    if is_terminal(environment.stdin):
        environment.stderr.write(f"{question} (y/N) ")
        environment.stderr.flush()
        if environment.stdin.readline().strip().lower() in ("y", "yes"):
            return True
    session.console.complain("Nothing was changed. Use --yes to make changes without confirmation.")
    return False


def _apply_share(session: ServerSession, change: Json) -> None:
    noun, owner = _find_owner(session, change["queue"])
    chosen = [quota for quota in owner["resources"] if change.get("nodePool") in (None, quota["nodePool"]["name"])]
    changed = [quota | {change["resource"]: _changed_quota(quota, change)} for quota in chosen]
    session.client.request("PATCH", f"/api/v1/org-unit/{noun}s/{owner['id']}/resources", changed)
    session.console.data(f"{noun} {owner['name']}: {change['field']} changed")


def _changed_quota(quota: Json, change: Json) -> Json:
    """The quota of the resource as REST takes it: null is unlimited, except for guaranteed GPUs."""
    member = {"quota": "deserved", "limit": "limit", "weight": "overQuotaWeight"}[change["field"]]
    present: Json = dict(quota.get(change["resource"]) or {})
    value = change["value"]
    if change["resource"] == "memory" and member != "overQuotaWeight":
        value = value if value == -1 else value / {"MB": 10**6, "GB": 10**9}.get(str(present.get("units")), 2**20)
    is_null = value == -1 and (change["resource"], member) != ("gpu", "deserved")
    return present | {member: None if is_null else value}


def _find_owner(session: ServerSession, name: str) -> tuple[str, Json]:
    for noun, rows in (("project", session.client.projects()), ("department", session.client.departments())):
        for row in rows:
            # A name that a project and a department share is refused; each has one of its own in the scheduler.
            if name in (row["name"], f"{noun}-{row['id']}"):
                return noun, row
    raise UsageError(f"There is no project or department '{name}'.")


def _find_workload(session: ServerSession, name: str) -> Json:
    """By PROJECT/NAME, or by a name that only one project has: a what-if is about all projects."""
    project, _, plain = name.rpartition("/")
    if project:
        return session.client.find_workload(plain, project=project)
    rows = session.client.workloads(filterBy=[f"name=={plain}"])["workloads"]
    present = [row for row in rows if not row.get("deletedAt")]
    if len(present) == 1:
        found: Json = present[0]
        return found
    if not present:
        return session.client.workload(plain)
    projects = ", ".join(sorted(row["projectName"] for row in present))
    raise UsageError(f"Workloads called '{plain}' are in {projects}; name one as PROJECT/NAME.")


def _suspend(session: ServerSession, workload: Json) -> None:
    key = next(key for key, entry in load_kinds().items() if entry.title == workload["type"])
    session.client.kind(key).suspend(workload["id"])
    session.console.data(f"{workload['name']}: suspend requested")
