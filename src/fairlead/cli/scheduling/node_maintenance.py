"""`node cordon`, `node uncordon` and `node drain`: show what would follow, ask for confirmation, and do it."""

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.scheduling.answers import show_what_if
from fairlead.cli.scheduling.applied_changes import is_confirmed, maintain_node
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.client.json_object import Json


def run(invocation: Invocation, action: str) -> int:
    """`action` is cordon, uncordon or drain."""
    session = ServerSession(invocation)
    node = find_named(session.client.nodes(limit=500), invocation.names[0], "node")
    _show_consequences(session, node, action)
    has_confirmed = is_confirmed(session, f"{action.capitalize()} node {node['name']}?")
    if has_confirmed:
        maintain_node(session, node, action)
    session.close()
    return OK if has_confirmed else FAILED


def _show_consequences(session: ServerSession, node: Json, action: str) -> None:
    """Of the first cluster, which is the one that the scheduler's questions are about."""
    first = session.client.clusters()[0]
    if node["clusterUuid"] != first["uuid"]:
        session.console.say(f"The effects are unknown: node {node['name']} is not in cluster {first['name']}.")
        return
    announce_turn(session)
    show_what_if(session.console, session.client.what_if([{"change": "node", "node": node["name"], "action": action}]))
