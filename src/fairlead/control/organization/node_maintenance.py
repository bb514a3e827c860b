"""Cordons, uncordons and drains nodes. Called by the API; the loop carries it out.

The request is on record until the node's engine has carried it out, so it survives a restart of the server.
"""

from typing import Literal

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inventory import load_node
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.model.errors import NotFound
from fairlead.model.records.organization import Node
from fairlead.model.records.people import Caller
from fairlead.store.collections import NODES

Maintenance = Literal["cordon", "uncordon", "drain"]
_EVENTS = {"cordon": "Cordoned", "uncordon": "Uncordoned", "drain": "Drained"}
_DONE = {
    "cordon": "was cordoned by {}: no new pods are placed on it",
    "uncordon": "was uncordoned by {}: pods can be placed on it again",
    "drain": "is being drained by {}: it takes no new pods, and its pods are evicted",
}


async def maintain_node(context: Context, caller: Caller, id: str, what: Maintenance, request_id: str = "") -> Node:
    """Record what is wanted of a node. To ask again for what it already is changes nothing."""
    access.check(caller, "nodes:update")

    async def attempt() -> Node:
        known = load_node(context, caller, id)
        before = await context.store.get(NODES, known.id)
        if before is None:
            raise NotFound(f"There is no node with the id {id!r}")
        after: Node = msgspec.structs.replace(
            before, version=before.version + 1, cordon_request=what != "uncordon", draining=what == "drain"
        )
        if (before.will_be_cordoned, before.draining) == (after.will_be_cordoned, after.draining):
            return before
        message = f"Node {before.name} {_DONE[what].format(caller.name)}"
        step = RecordChange(NODES, before.id, after, _EVENTS[what], message)
        await record_steps(context, AuditedRequest(caller, what, request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)
