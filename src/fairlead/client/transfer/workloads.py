"""Writes workloads, and suspends them on the source so that they do not run twice. Suspended ones stay suspended."""

from collections.abc import Sequence

from fairlead.client.access.urls import quote
from fairlead.client.client import Client
from fairlead.client.commands import HOST_IMAGE
from fairlead.client.errors import ServerError
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry, load_kinds
from fairlead.client.transfer.reader import PHASES, SUSPENDED
from fairlead.client.transfer.report import LOST, ReportLine
from fairlead.client.transfer.writer import Writer

#: The engine of a target without a machine of its own.
_CLUSTER = "kubernetes"
_NEEDS_MACHINE = "uses the files of its machine, which a cluster does not have; submit it there with an image"


def find_unrunnable(workloads: Sequence[Json], engine: str) -> list[ReportLine]:
    """The workloads that a target with this engine cannot run, which is known before anything is written."""
    nouns = {entry.rest: entry.noun for entry in load_kinds().values()}
    return [
        ReportLine(LOST, nouns[workload["rest"]], str(workload["name"]), _NEEDS_MACHINE)
        for workload in workloads
        if not _can_run(workload, engine)
    ]


def _can_run(workload: Json, engine: str) -> bool:
    return engine != _CLUSTER or not _uses_machine(workload["request"])


def _uses_machine(member: object) -> bool:
    """Whether a pod of the request, of whichever role, uses the files of the machine that it runs on."""
    if not isinstance(member, dict):
        return False
    return member.get("image") == HOST_IMAGE or any(_uses_machine(value) for value in member.values())


def write_workloads(writer: Writer, source: Client | None) -> None:
    """Submit the bundle's workloads; those that were accepted are suspended on the source, if there is one."""
    kinds = {entry.rest: entry for entry in load_kinds().values()}
    engine = str(writer.scopes.cluster.get("engine"))
    writer.report.lines += find_unrunnable(writer.bundle.workloads, engine)
    for workload in writer.bundle.workloads:
        if not _can_run(workload, engine):
            continue
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
        is_suspended = workload.get("phase") in SUSPENDED
        query = {"suspended": True} if is_suspended else {}
        created = writer.create(kind.noun, name, f"/api/v1/workloads/{kind.rest}", body, **query)
        if created is not None and workload["hasCallerEnvironment"]:
            reason = "its caller's variables are kept like secrets; submit it again if it needs them"
            writer.report.lose(f"environment of {kind.noun}", name, reason)
        if created is not None and source is not None and not writer.is_dry and not is_suspended:
            _suspend_on_source(writer, source, kind, workload)


def _suspend_on_source(writer: Writer, source: Client, kind: KindEntry, workload: Json) -> None:
    name, state = str(workload["name"]), "waits" if workload.get("phase") in PHASES["waiting"] else "runs"
    if not kind.can_suspend:
        writer.report.lose(f"end of {kind.noun}", name, f"it still {state} on the source; delete it there")
        return
    try:
        source.kind(kind.key).suspend(quote(str(workload["id"])))
    except ServerError as error:
        writer.report.lose(f"end of {kind.noun}", name, f"it still {state} on the source: {error.message}")
