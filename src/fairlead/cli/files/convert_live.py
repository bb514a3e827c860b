"""A workload of the server as one between dialects. Called by `convert --workload`."""

from typing import Any

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.client.kinds import load_kinds


def read_live(invocation: Invocation, name: str) -> Any:
    """The workload as the server has it."""
    session = ServerSession(invocation)
    row = session.workload(name)
    key = next((key for key, entry in load_kinds().items() if entry.title == row["type"]), None)
    if key is None:
        raise UsageError(f"This version of the command does not know workloads of type {row['type']}.")
    client = session.client.kind(key)
    content = client.get(row["id"])
    session.close()
    body = {"name": content["name"], "spec": content.get("spec") or {}}
    body |= {name: content[name] for name in client.entry.beside if name in content}
    load = invocation.surroundings.load
    found = load("convert_from_rest").from_request(key, body, row["projectName"], "projectName")
    return load("converted").altered(found, {"is_active": content["desiredPhase"] != "Stopped"})
