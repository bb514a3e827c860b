"""Writes workloads that wait, and suspends them on the source so that they do not run twice."""

from fairlead.client.access.urls import quote
from fairlead.client.client import Client
from fairlead.client.errors import ServerError
from fairlead.client.kinds import load_kinds
from fairlead.client.transfer.writer import Writer


def write_workloads(writer: Writer, source: Client | None) -> None:
    """Submit the bundle's workloads; those that were accepted are suspended on the source, if there is one."""
    kinds = {entry.rest: entry for entry in load_kinds().values()}
    for workload in writer.bundle.workloads:
        name, project = str(workload["name"]), str(workload["projectName"])
        kind = kinds[workload["rest"]]
        project_id = writer.scopes.id_of("project", project)
        if project_id is None:
            writer.report.lose(kind.noun, name, f"its project {project} is not on the target")
            continue
        filters = [f"name=={name}", f"projectId=={project_id}"]
        same_name = writer.target.workloads(filterBy=filters)["workloads"] if project_id.isdecimal() else []
        if any(not row.get("deletedAt") for row in same_name):
            writer.leave_unchanged(kind.noun, name)
            continue
        place = {"projectId": project_id, "clusterId": writer.scopes.cluster_id}
        body = {"name": name, **place, **workload["request"]}
        created = writer.create(kind.noun, name, f"/api/v1/workloads/{kind.rest}", body)
        if created is not None and workload["hasCallerEnvironment"]:
            reason = "its caller's variables are kept like secrets; submit it again if it needs them"
            writer.report.lose(f"environment of {kind.noun}", name, reason)
        if created is None or source is None or writer.is_dry:
            continue
        if not kind.can_suspend:
            writer.report.lose(f"end of {kind.noun}", name, "it still waits on the source; delete it there")
            continue
        try:
            source.kind(kind.key).suspend(quote(str(workload["id"])))
        except ServerError as error:
            writer.report.lose(f"end of {kind.noun}", name, f"it still waits on the source: {error.message}")
