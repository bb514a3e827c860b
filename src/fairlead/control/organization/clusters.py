"""The cluster of this installation: its name. Called by the API."""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.owners import name_issues
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.model.errors import NotFound, refuse_malformed
from fairlead.model.records.organization import Cluster
from fairlead.model.records.people import Caller
from fairlead.store.collections import CLUSTERS


async def rename_cluster(context: Context, caller: Caller, id: str, name: str, request_id: str = "") -> Cluster:
    access.check(caller, "clusters:update")

    async def attempt() -> Cluster:
        before: Cluster | None = await context.store.get(CLUSTERS, id.lower())
        if before is None:
            raise NotFound(f"There is no cluster with the id {id[:60]!r}")
        refuse_malformed(name_issues(name))
        after: Cluster = msgspec.structs.replace(before, version=before.version + 1, name=name)
        message = f"Cluster {before.name} was renamed to {name} by {caller.name}"
        step = RecordChange(CLUSTERS, after.id, after, "Updated", message)
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)
