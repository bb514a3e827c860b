"""The noun `notification`: rules for notifications about workloads, and messages that could not be delivered."""

from collections.abc import Mapping

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import shown_time
from fairlead.client.access.urls import quote

_PATH = "/api/v1/notification-rules"
_ADD = (
    Flag("webhook", "Send signed JSON to this URL", placeholder="URL"),
    Flag("slack", "Send to this webhook of Slack, or of a service compatible with it", placeholder="URL"),
    Flag("email", "Send mail to this address", placeholder="MAIL"),
    Flag("on", "Comma-separated events: started, completed, failed, evicted, idle, waiting, quota", default="failed"),
    Flag("project", "Notify about all workloads of this project, not only yours", short="p", placeholder="NAME"),
    Flag("waiting", "Send `waiting` when a workload has been pending for this long", "duration", default="1h"),
    Flag("template", "The text, with $workload, $project, $event, $phase, $user, $time, $url", placeholder="TEXT"),
)


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command("list", "List notification rules", _list, OUTPUT, aliases=("ls",)),
        Command("add", "Add a notification rule; the key that signs webhooks is shown once", _add, (*_ADD, *OUTPUT)),
        Command("remove", "Delete a notification rule", _remove, (), "ID", 1, 1, aliases=("rm",)),
        Command("test", "Send a test message", _test, (), "ID", 1, 1),
        Command("errors", "List messages that could not be delivered", _errors, OUTPUT),
    )


def _list(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    rows = session.client.request("GET", _PATH)["rules"]
    projects = {str(each["id"]): str(each["name"]) for each in session.client.projects()}
    columns = (
        TableColumn("ID", lambda row: row["id"]),
        TableColumn("CHANNEL", lambda row: row["channel"]),
        TableColumn("TARGET", lambda row: row["target"], shrinks=True),
        TableColumn("ON", lambda row: ",".join(row["on"]), shrinks=True),
        TableColumn("PROJECT", lambda row: _about(row["projectId"], projects)),
        TableColumn("OWNER", lambda row: row["owner"], wide=True),
    )
    listing = Listing(columns, lambda row: str(row["id"]), "There are no notification rules.")
    listing.show(session.console, chosen_format(invocation, session.settings), rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _about(project_id: str, projects: Mapping[str, str]) -> str:
    return projects.get(project_id, project_id) or "your own workloads"


def _add(invocation: Invocation) -> int:
    given = {name: invocation.get(name) for name in ("webhook", "slack", "email") if invocation.get(name)}
    if len(given) != 1:
        raise UsageError("Pass exactly one of --webhook, --slack and --email.")
    ((channel, target),) = given.items()
    session = ServerSession(invocation)
    project = invocation.get("project")
    body = {
        "channel": channel,
        "target": target,
        "on": (invocation.get("on") or "failed").split(","),
        "projectId": str(session.client.project(project)["id"]) if project else "",
        "template": invocation.get("template") or "",
        "waitingSeconds": int(invocation.get("waiting") or 3600),
    }
    created = session.client.request("POST", _PATH, body)
    if not session.show(created, str(created["id"])):
        session.console.data(created["id"])
        if created.get("signingKey"):
            session.console.say(f"Messages are signed with this key, which is not shown again: {created['signingKey']}")
    session.close()
    return OK


def _remove(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    session.client.request("DELETE", f"{_PATH}/{quote(invocation.names[0])}")
    session.console.say("The notification rule was deleted.")
    session.close()
    return OK


def _test(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    session.client.request("POST", f"{_PATH}/{quote(invocation.names[0])}/test")
    session.console.say("Sending a test message. If it does not arrive, see `fairlead notification errors`.")
    session.close()
    return OK


def _errors(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    rows = session.client.request("GET", f"{_PATH}/errors")["deliveries"]
    columns = (
        TableColumn("RULE", lambda row: row["ruleId"]),
        TableColumn("EVENT", lambda row: row["event"]),
        TableColumn("WORKLOAD", lambda row: row["workloadName"]),
        TableColumn("SINCE", lambda row: shown_time(row["createdAt"])),
        TableColumn("ATTEMPTS", lambda row: str(row["attempts"])),
        TableColumn("NEXT", lambda row: shown_time(row["nextAttempt"]) if row["nextAttempt"] else "given up"),
        TableColumn("ERROR", lambda row: row["error"], shrinks=True),
    )
    listing = Listing(columns, lambda row: str(row["id"]), "All messages were delivered.")
    listing.show(session.console, chosen_format(invocation, session.settings), rows, not invocation.get("no-headers"))
    session.close()
    return OK
