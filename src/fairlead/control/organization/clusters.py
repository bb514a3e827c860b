"""The cluster of this installation: its name. Called by the API."""

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.owners import name_issues
from fairlead.control.records import AuditedRequest, change_cluster, retry_on_conflict
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
        message = f"Cluster {before.name} was renamed to {name} by {caller.name}"
        return await change_cluster(context, AuditedRequest(caller, "update", request_id), before, message, name=name)

    return await retry_on_conflict(attempt)
