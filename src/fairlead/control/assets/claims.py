"""Claims: create, read, delete. Engines provide the storage.

Called by the API, and by `workloads/submit.py` for the claims that a workload's spec creates.
"""

import re

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.lists import ListRequest, Page, load_page
from fairlead.control.records import AuditedRequest, RecordChange, record_steps
from fairlead.control.references import scopes
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.control.references.users import refuse_in_use
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound, refuse_malformed
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.records.assets import DEFAULT_STORAGE_CLASS, STORAGE_CLASSES, Claim, Reference, project_scope_key
from fairlead.model.records.organization import Project
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.canonical import items
from fairlead.model.spec.claims import Pvc
from fairlead.model.spec.fields import Maybe, Spec, is_given, value_or
from fairlead.model.spec.pod_fields import pods_of
from fairlead.model.spec.storage import BasicStorage
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CLAIMS, WORKLOADS

ACCESS_MODES = {
    "read_write_once": "ReadWriteOnce",
    "read_only_many": "ReadOnlyMany",
    "read_write_many": "ReadWriteMany",
}
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z")
_LONGEST = 63


class ClaimInput(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of a new claim."""

    name: str
    project_id: str
    size: str
    storage_class: str = DEFAULT_STORAGE_CLASS
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)
    volume_mode: str = "Filesystem"
    description: str = ""
    attributes: dict[str, str] = {}
    data_sharing: bool = False


def claim_issues(name: str, size: str, storage_class: str, path: str = "") -> list[ComplianceIssue]:
    issues = []
    if len(name) > _LONGEST or not _NAME.match(name):
        rule = "lower-case letters, digits, hyphens and dots; start and end with a letter or digit"
        issues.append(
            ComplianceIssue(f"{path}name", f"is '{name[:80]}'; up to {_LONGEST} of these are allowed: {rule}")
        )
    try:
        is_sized = parse(size) > 0
    except BadQuantity:
        is_sized = False
    if not is_sized:
        issues.append(
            ComplianceIssue(f"{path}size", f"is '{size[:63]}'; it must be a quantity above zero, such as 10Gi")
        )
    if storage_class not in STORAGE_CLASSES:
        known = ", ".join(STORAGE_CLASSES)
        issues.append(
            ComplianceIssue(
                f"{path}storageClass", f"there is no storage class '{storage_class[:63]}'; known are {known}"
            )
        )
    return issues


def make_claim(context: Context, caller: Caller, input: ClaimInput, asset_id: str = "") -> Claim:
    now = context.clock()
    return Claim(
        id=context.new_id(),
        version=1,
        name=input.name,
        scope_key=project_scope_key(input.project_id),
        project_id=input.project_id,
        description=input.description,
        size=input.size,
        storage_class=input.storage_class,
        access_modes=input.access_modes,
        volume_mode=input.volume_mode,
        attributes=input.attributes,
        data_sharing=input.data_sharing,
        asset_id=asset_id,
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        updated_by=caller.name,
    )


async def create_claim(context: Context, caller: Caller, input: ClaimInput, request_id: str = "") -> Claim:
    project = scopes.load_project(context, caller, "claims:create", input.project_id)
    issues = claim_issues(input.name, input.size, input.storage_class)
    refuse_malformed(issues)
    claim = make_claim(context, caller, input)
    message = f"Claim {input.name} of {input.size} was created by {caller.name} in project {project.name}"
    try:
        step = RecordChange(CLAIMS, claim.id, claim, "Created", message)
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    except Conflict as error:
        if not error.columns:
            raise
        raise Conflict(f"A claim named {input.name} already exists in project {project.name}", error.columns) from None
    await recheck_waiting_workloads(context)
    return claim


async def load_claim(context: Context, caller: Caller, id: str, verb: str = "read") -> Claim:
    claim: Claim | None = await context.store.get(CLAIMS, id)
    if claim is None:
        raise NotFound(f"There is no claim with the id {id[:60]!r}")
    scopes.check_visible(context, caller, "claims:read", claim.scope_key, f"claim with the id {id[:60]!r}")
    if verb != "read":
        access.check_at(caller, f"claims:{verb}", claim.scope_key)
    return claim


async def find_claims(context: Context, caller: Caller, request: ListRequest, project_id: str = "") -> Page[Claim]:
    access.check(caller, "claims:read", project_id)
    seen = access.visible_projects(caller, "claims:read")
    where: tuple[Where, ...] = ()
    if project_id:
        where = (Where("place", Comparison.EQUAL, project_scope_key(project_id)),)
    elif seen is not None:
        where = (Where("place", Comparison.ONE_OF, [project_scope_key(id) for id in seen]),)
    return await load_page(context, CLAIMS, where, request)


async def delete_claim(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Delete it, unless a workload that has not ended mounts it."""
    claim = await load_claim(context, caller, id, "delete")
    if claim.asset_id:
        raise Invalid(f"The claim {claim.name} belongs to a data source; delete the data source {claim.asset_id}")
    await refuse_in_use(context, caller, Reference.CLAIM, claim)
    step = RecordChange(CLAIMS, id, None, "Deleted", f"Claim {claim.name} was deleted by {caller.name}")
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)


def claim_name(workload: str, given: Maybe[str], item: Maybe[str], number: int) -> str:
    """The name of an item's claim: the given one, or the workload's name with the item's name or number."""
    claim = f"{workload}-{value_or(item, '') or number}".lower()
    return value_or(given, "") or re.sub(r"[^a-z0-9.-]+", "-", claim)[:_LONGEST].strip("-.")


async def build_claims(
    context: Context, caller: Caller, project: Project, workload: Workload, spec: Spec
) -> list[Claim]:
    """The claims that a workload creates because they do not exist yet; they are written together with it.

    So are those of a workload that is being deleted, unchanged: either this workload is written first, and the claims
    stay because it mounts them, or the claims are deleted first, and the lost race is run again. Ephemeral claims have
    no record: the engine creates and deletes them.
    """
    wanted: dict[str, Pvc] = {}
    for pod, _ in pods_of(spec):
        storage: Maybe[BasicStorage] = getattr(pod, "storage", None)
        for number, item in enumerate(items(storage.pvc) if is_given(storage) else ()):
            if not value_or(item.existing_pvc, False) and not value_or(item.ephemeral, False):
                wanted.setdefault(claim_name(workload.name, item.claim_name, item.name, number), item)
    if not wanted:
        return []
    where = (
        Where("place", Comparison.EQUAL, project_scope_key(project.id)),
        Where("name", Comparison.ONE_OF, list(wanted)),
    )
    there = {claim.name: claim for claim in await context.store.find(Query(collection=CLAIMS, where=where))}
    leaving = [claim for claim in there.values() if await _is_leaving(context, claim)]
    return [msgspec.structs.replace(claim, version=claim.version + 1) for claim in leaving] + [
        msgspec.structs.replace(
            make_claim(context, caller, claim_input_of(name, project.id, item)), workload_id=workload.id
        )
        for name, item in wanted.items()
        if name not in there
    ]


async def _is_leaving(context: Context, claim: Claim) -> bool:
    """Whether the workload that created it is being deleted, and the claim with it."""
    owner: Workload | None = await context.store.get(WORKLOADS, claim.workload_id) if claim.workload_id else None
    return owner is not None and owner.desired_phase is DesiredPhase.DELETED


def claim_input_of(name: str, project_id: str, item: Pvc) -> ClaimInput:
    """The claim that a `pvc` item of a spec (or of a data source) describes."""
    info = item.claim_info if is_given(item.claim_info) else None
    modes = info.access_modes if info is not None and is_given(info.access_modes) else None
    chosen = tuple(
        word for name, word in ACCESS_MODES.items() if modes is not None and value_or(getattr(modes, name), False)
    )
    attributes = value_or(info.added_attr_values, ()) if info is not None else ()
    return ClaimInput(
        name=name,
        project_id=project_id,
        size=value_or(info.size, "") if info is not None else "",
        storage_class=(value_or(info.storage_class, "") if info is not None else "") or DEFAULT_STORAGE_CLASS,
        access_modes=chosen or ("ReadWriteOnce",),
        volume_mode=value_or(info.volume_mode, "Filesystem") if info is not None else "Filesystem",
        attributes={attribute.key: value_or(attribute.value, "") for attribute in attributes},
        data_sharing=value_or(item.data_sharing, False),
    )
