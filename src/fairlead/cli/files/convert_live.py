"""A workload of the server, to be converted. Called by `convert --workload`."""

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.client.kinds import load_kinds
from fairlead.formats.convert.from_rest import from_request
from fairlead.formats.intermediate import IntermediateWorkload


def read_live(invocation: Invocation, name: str) -> IntermediateWorkload:
    """The workload as the server has it."""
    session = ServerSession(invocation)
    row = session.workload(name)
    key = next((key for key, entry in load_kinds().items() if entry.title == row["type"]), None)
    if key is None:
        raise UsageError(f"This version of `fairlead` does not know workloads of type {row['type']}.")
    client = session.client.kind(key)
    content = client.get(row["id"])
    session.close()
    body = {"name": content["name"], "spec": content.get("spec") or {}}
    body |= {name: content[name] for name in client.entry.outside_spec if name in content}
    workload = from_request(key, body, row["projectName"], "projectName")
    return msgspec.structs.replace(workload, is_active=content["desiredPhase"] != "Stopped")
