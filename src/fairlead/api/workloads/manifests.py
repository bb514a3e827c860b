"""The routes of workloads that are submitted as Kubernetes manifests (`/api/v2/workloads`).

An object of a kind that `formats/foreign/manifests.py` knows is read as a workload, which both engines run. Any other
object is itself applied to the project's cluster, if an administrator has added its workload type. The manifest is
stored, and shown as it was sent.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.control import access
from fairlead.control.lists import normal_id
from fairlead.control.organization.workload_types import find_type
from fairlead.control.references.scopes import cluster_of_scope
from fairlead.control.workloads import lifecycle, read
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.update import ChangedManifest, update_from_manifest
from fairlead.formats.foreign.manifests import (
    ReadManifest,
    group_version_kind_of,
    is_read_as_workload,
    read_manifest,
    read_object,
    read_text,
)
from fairlead.formats.plain import Plain
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds.kind import outside_spec_names
from fairlead.model.clock import iso
from fairlead.model.dialect import Dialect
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound
from fairlead.model.records.assets import Scope
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import Given, Maybe, Spec
from fairlead.model.submission import Submission

_PATH = "/api/v2/workloads"
_ID = Parameter(name="WorkloadV2Id", place="path", schema={"type": "string", "format": "uuid"})
SyncStatus = Literal["Queued", "Applying", "Deleting", "Synced", "Deleted", "Failed"]


class ManifestMetadata(Spec, frozen=True, kw_only=True):
    name: Given[str] = UNSET
    use_given_name_as_prefix: Given[bool] = UNSET
    project_id: Given[str] = UNSET
    cluster_id: Given[str] = UNSET
    priority: Maybe[str] = UNSET
    category: Maybe[str] = UNSET
    preemptibility: Maybe[Literal["preemptible", "non-preemptible"]] = UNSET


class ManifestSubmission(Spec, frozen=True, kw_only=True):
    """A Kubernetes manifest, as an object or encoded with Base64, and what a workload has in addition."""

    metadata: ManifestMetadata
    manifest: Given[dict[str, Any]] = UNSET
    manifest_base64_encoded: Given[str] = UNSET


class ManifestMetadataUpdate(Spec, frozen=True, kw_only=True):
    category: Maybe[str] = UNSET
    priority: Maybe[str] = UNSET


class ManifestUpdate(Spec, frozen=True, kw_only=True):
    metadata: Given[ManifestMetadataUpdate] = UNSET
    manifest: Given[dict[str, Any]] = UNSET
    manifest_base64_encoded: Given[str] = UNSET


class GvkView(Shape):
    group: str
    version: str
    kind: str


class ManifestMetadataView(Shape):
    id: Uuid
    name: str
    project_id: str
    project_name: str
    department_id: str
    department_name: str
    cluster_id: Uuid
    tenant_id: int
    gvk: GvkView
    category: str | None
    priority: str | None
    preemptibility: Literal["preemptible", "non-preemptible"]
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    deleted_at: Instant | None


class ManifestWorkload(Shape):
    """A workload and its manifest: as it was sent, and as it is used."""

    metadata: ManifestMetadataView
    desired_phase: Literal["Running", "Stopped", "Deleted"]
    raw_manifest: dict[str, Any]
    workload_manifest: dict[str, Any]


class SyncInfo(Shape):
    status: SyncStatus
    message: str | UnsetType = UNSET


class ManifestWorkloadState(Shape):
    workload: ManifestWorkload
    sync_info: SyncInfo


def _manifest(body: ManifestSubmission | ManifestUpdate) -> Plain | None:
    """The manifest of a request, if it has one; raises Invalid if it has two or an unreadable one."""
    if body.manifest is not UNSET and body.manifest_base64_encoded is not UNSET:
        raise Invalid(issues=(ComplianceIssue("manifestBase64Encoded", "must not be given besides manifest"),))
    if body.manifest_base64_encoded is UNSET:
        return None if body.manifest is UNSET else body.manifest
    try:
        text = base64.b64decode(body.manifest_base64_encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(issues=(ComplianceIssue("manifestBase64Encoded", "is not encoded with Base64"),)) from None
    return read_text(text, "manifestBase64Encoded")


def _with_metadata(spec: Plain, metadata: ManifestMetadata | ManifestMetadataUpdate) -> Plain:
    """The spec with the values that the metadata give; they win over those of the manifest."""
    members = {"priorityClass": metadata.priority, "category": metadata.category}
    if isinstance(metadata, ManifestMetadata):
        members["preemptibility"] = metadata.preemptibility
    return {**spec, **{name: value for name, value in members.items() if isinstance(value, str)}}


def _defaults_of_type(call: Call, workload: ReadManifest) -> Plain:
    type = find_type(call.context, workload.gvk.group, workload.gvk.kind)
    return {} if type is None else {"priorityClass": type.priority, "category": type.category}


async def create(call: Call) -> Response:
    body = await receive_json(call, ManifestSubmission)
    manifest = _manifest(body)
    if manifest is None:
        raise Invalid(issues=(ComplianceIssue("manifest", "must be given, here or as manifestBase64Encoded"),))
    metadata = body.metadata
    project_id = metadata.project_id or ""
    wanted, *others = _read(call, manifest, project_id)
    _check_namespace(call, project_id, wanted)
    text = msgspec.json.encode(manifest).decode()
    dialect = Dialect.MANIFEST if is_read_as_workload(manifest) else Dialect.OBJECT
    submissions = [_submission(call, each, metadata) for each in (wanted, *others)]
    first, *rest = [msgspec.structs.replace(each, dialect=dialect, manifest=text) for each in submissions]
    first = msgspec.structs.replace(first, other_specs=await _admit_others(call, rest))
    workload = await submit(call.context, call.caller, first, call.request_id)
    return as_json(_render(call, workload), 202)


def _read(call: Call, manifest: Plain, project_id: str) -> tuple[ReadManifest, ...]:
    """The manifest as a workload; of another kind of object, one for each of its pod templates. Raises Invalid."""
    cluster = cluster_of_scope(call.context, Scope("project", project_id))
    if is_read_as_workload(manifest) or not call.context.engine_of(cluster).is_cluster:
        return (read_manifest(manifest),)
    gvk = group_version_kind_of(manifest)
    if find_type(call.context, gvk.group, gvk.kind) is None:
        detail = (
            f"is a {gvk.title[:120]}, for which there is no workload type; "
            "an administrator adds one with POST /api/v1/workload-types"
        )
        raise Invalid(issues=(ComplianceIssue("manifest.kind", detail),))
    return read_object(manifest)


async def _admit_others(call: Call, submissions: Sequence[Submission]) -> tuple[msgspec.Raw, ...]:
    """The specs of further pod templates with what policies add; raises Invalid if one breaks a rule."""
    admitted = [await submit(call.context, call.caller, each, call.request_id, is_dry_run=True) for each in submissions]
    return tuple(each.spec for each in admitted)


def _submission(call: Call, wanted: ReadManifest, metadata: ManifestMetadata) -> Submission:
    project_id = metadata.project_id or ""
    spec = _with_metadata({**_defaults_of_type(call, wanted), **wanted.spec}, metadata)
    outside = outside_spec_names(wanted.kind)
    request = {
        "name": metadata.name or wanted.name,
        "useGivenNameAsPrefix": metadata.use_given_name_as_prefix is True,
        "projectId": project_id,
        "clusterId": metadata.cluster_id or cluster_of_scope(call.context, Scope("project", project_id)),
        "spec": {name: value for name, value in spec.items() if name not in outside},
        **{name: spec[name] for name in outside if name in spec},
    }
    return read_submission(wanted.kind, msgspec.json.encode(request))


def _check_namespace(call: Call, project_id: str, wanted: ReadManifest) -> None:
    visible = access.visible_projects(call.caller)
    if visible is not None and project_id not in visible:
        # Its name is not for this caller, who will be refused anyway.
        return
    project = call.context.directory.projects.get(project_id)
    if project is not None and wanted.namespace not in ("", project.namespace):
        detail = f"is {wanted.namespace[:60]}; workloads of project {project.name} are in {project.namespace}"
        raise Invalid(issues=(ComplianceIssue("manifest.metadata.namespace", detail),))


async def _load(call: Call) -> Workload:
    id = normal_id(call.path["WorkloadV2Id"], "workload")
    workload = await read.load_readable(call.context, call.caller, id)
    if not workload.manifest:
        raise NotFound(f"Workload {workload.name} was not submitted as a manifest; GET /api/v1/workloads/{id} shows it")
    return workload


async def get(call: Call) -> Response:
    workload = await _load(call)
    return as_json(ManifestWorkloadState(workload=_render(call, workload), sync_info=_sync_info(workload)))


async def update(call: Call) -> Response:
    workload = await _load(call)
    body = await receive_json(call, ManifestUpdate)
    manifest = _manifest(body) or msgspec.json.decode(workload.manifest)
    wanted, *others = _read(call, manifest, workload.project_id)
    _check_namespace(call, workload.project_id, wanted)
    metadata = body.metadata if body.metadata is not UNSET else ManifestMetadataUpdate()
    before = group_version_kind_of(msgspec.json.decode(workload.manifest))
    is_object = not is_read_as_workload(manifest)
    is_other = is_object != (workload.dialect is Dialect.OBJECT) or (is_object and wanted.gvk != before)
    if wanted.kind.key != workload.kind or is_other:
        raise Invalid(issues=(ComplianceIssue("manifest.kind", f"is {wanted.gvk.kind}; it cannot change"),))
    # Only the specs of the others count; the name is that of the workload itself.
    place = ManifestMetadata(name="check", use_given_name_as_prefix=True, project_id=workload.project_id)
    other_specs = await _admit_others(call, [_submission(call, each, place) for each in others])
    spec, text = _with_metadata(wanted.spec, metadata), msgspec.json.encode(manifest).decode()
    first, *_ = _read(call, msgspec.json.decode(workload.manifest), workload.project_id)
    new = ChangedManifest(text=text, spec=spec, spec_before=first.spec, other_specs=other_specs)
    changed = await update_from_manifest(call.context, call.caller, workload, new, call.request_id)
    return as_json(_render(call, changed), 202)


async def delete(call: Call) -> Response:
    workload = await _load(call)
    deleted = await lifecycle.delete(call.context, call.caller, workload.kind, workload.id, call.request_id)
    return as_json(_render(call, deleted), 202)


def _sync_info(workload: Workload) -> SyncInfo:
    status: SyncStatus
    if workload.deleted_at is not None:
        status = "Deleted" if workload.gone else "Deleting"
    elif workload.phase in (Phase.CREATING, Phase.PENDING):
        status = "Queued"
    else:
        status = "Failed" if workload.phase is Phase.FAILED and workload.started_at is None else "Synced"
    return SyncInfo(status=status, message=workload.phase_message or UNSET)


def _render(call: Call, workload: Workload) -> ManifestWorkload:
    manifest: Plain = msgspec.json.decode(workload.manifest)
    kind = group_version_kind_of(manifest)
    project = call.context.directory.projects.get(workload.project_id)
    namespace = {"namespace": project.namespace} if project else {}
    metadata = {**(manifest.get("metadata") or {}), "name": workload.name, **namespace}
    return ManifestWorkload(
        metadata=ManifestMetadataView(
            id=workload.id,
            name=workload.name,
            project_id=workload.project_id,
            project_name=workload.project_name,
            department_id=workload.department_id,
            department_name=workload.department_name,
            cluster_id=workload.cluster_id,
            tenant_id=call.context.directory.cluster.tenant_id,
            gvk=GvkView(group=kind.group, version=kind.version, kind=kind.kind),
            category=workload.category or None,
            priority=workload.priority_class or None,
            preemptibility="preemptible" if workload.preemptible else "non-preemptible",
            created_at=iso(workload.created_at),
            created_by=workload.created_by,
            updated_at=iso(workload.updated_at),
            updated_by=workload.created_by,
            deleted_at=None if workload.deleted_at is None else iso(workload.deleted_at),
        ),
        desired_phase=workload.desired_phase.value,
        raw_manifest=manifest,
        workload_manifest={**manifest, "metadata": metadata},
    )


_FAILURES = failing(401, 403, 500, 503)
MANIFEST_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path=_PATH,
        id="create_workload_v2",
        tag="Manifests",
        summary="Submit a Kubernetes manifest as a workload",
        run=create,
        body=RequestBody(schema=ManifestSubmission),
        answers={**_FAILURES, **failing(400, 409), 202: ManifestWorkload},
    ),
    Operation(
        method="GET",
        path=f"{_PATH}/{{WorkloadV2Id}}",
        id="get_workload_v2_by_id",
        tag="Manifests",
        summary="Get a workload that was submitted as a manifest",
        run=get,
        parameters=(_ID,),
        answers={**_FAILURES, **failing(404), 200: ManifestWorkloadState},
    ),
    Operation(
        method="PUT",
        path=f"{_PATH}/{{WorkloadV2Id}}",
        id="update_workload_v2",
        tag="Manifests",
        summary="Change a workload that was submitted as a manifest",
        run=update,
        parameters=(_ID,),
        body=RequestBody(schema=ManifestUpdate),
        answers={**_FAILURES, **failing(400, 404), 202: ManifestWorkload},
    ),
    Operation(
        method="DELETE",
        path=f"{_PATH}/{{WorkloadV2Id}}",
        id="delete_workload_v2",
        tag="Manifests",
        summary="Delete a workload that was submitted as a manifest",
        run=delete,
        parameters=(_ID,),
        answers={**_FAILURES, **failing(404), 202: ManifestWorkload},
    ),
)
