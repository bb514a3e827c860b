"""The routes of policies: for each type get, replace, change and delete; a list; and what holds in a project."""

from functools import partial
from typing import Annotated, Any, cast

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.admission.policies.merge import Policy
from fairlead.admission.policies.system import SYSTEM_POLICIES
from fairlead.api.http.body import query_boolean, query_choice, query_text, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Instant, ScopeType, Shape, Uuid
from fairlead.control.policies import policies
from fairlead.control.policies.effective import TYPES_BY_KEY, effective_policy, policy_of
from fairlead.control.policies.policies import PolicyInput
from fairlead.kinds.policies import POLICY_TYPES, PolicyType
from fairlead.model.clock import iso
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.assets import Scope
from fairlead.model.records.policies import PolicyRecord
from fairlead.model.spec.fields import FieldInfo, Int32, Maybe, Spec, Text, Text253, value_or
from fairlead.model.spec.fields import Uuid as UuidText

_BASE = "/api/v2/policy"
_SCOPES = ("tenant", "cluster", "department", "project")
_TITLES = tuple(type.title for type in POLICY_TYPES.values() if type.kind)
Tree = dict[str, Any]


class PolicyMetaBody(Spec, frozen=True, kw_only=True):
    name: Annotated[Text253, FieldInfo(text="Its name.")]
    scope: Annotated[ScopeType, FieldInfo(text="The scope in which it holds.")]
    cluster_id: Annotated[Maybe[UuidText], FieldInfo(text="The cluster, for scope `cluster`.")] = UNSET
    department_id: Annotated[Maybe[Text], FieldInfo(text="The department, for scope `department`.")] = UNSET
    project_id: Annotated[Maybe[Int32], FieldInfo(text="The project, for scope `project`.")] = UNSET


class PolicyContent(Spec, frozen=True, kw_only=True):
    defaults: Annotated[
        Maybe[Tree], FieldInfo(text="Values for fields that a workload does not set, nested as its spec is.")
    ] = UNSET
    rules: Annotated[Maybe[Tree], FieldInfo(text="Rules for fields, nested as the spec of a workload is.")] = UNSET
    imposed_assets: Annotated[
        Maybe[Any], FieldInfo(text="Ids of the data sources that every workload gets; by role for kinds with roles.")
    ] = UNSET
    status: Annotated[Maybe[Tree], FieldInfo(text="Ignored; it is in answers.")] = UNSET


class PolicyBody(Spec, frozen=True, kw_only=True):
    meta: Annotated[PolicyMetaBody, FieldInfo(text="Its name and scope.")]
    policy: Annotated[Maybe[PolicyContent], FieldInfo(text="Its defaults, rules and imposed assets.")] = UNSET


class PolicyChangeBody(PolicyBody, frozen=True, kw_only=True):
    reset: Annotated[
        Maybe[tuple[str, ...]], FieldInfo(text="Paths to remove, such as `rules.compute.gpuDevicesRequest`.")
    ] = UNSET


class PolicyMetaView(Shape):
    id: Uuid
    name: str
    scope: ScopeType
    tenant_id: int
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    cluster_id: Uuid | UnsetType = UNSET
    department_id: str | UnsetType = UNSET
    project_id: int | UnsetType = UNSET


class ValidationMessage(Shape):
    error_message: str


class PolicyValidation(Shape):
    validation: ValidationMessage


class PolicyContentView(Shape):
    defaults: Tree
    rules: Tree
    imposed_assets: Any = UNSET
    status: PolicyValidation | UnsetType = UNSET


class PolicyView(Shape):
    policy: PolicyContentView
    effective: PolicyContentView
    meta: PolicyMetaView
    effective_updated_at: Instant


class EffectiveView(Shape):
    effective: PolicyContentView


class ClusterSync(Shape):
    cluster_id: Uuid
    status: str


class PolicyStatus(Shape):
    clusters: list[ClusterSync]
    validation: ValidationMessage | UnsetType = UNSET


class PolicyEntry(Shape):
    type: str
    meta: PolicyMetaView
    status: PolicyStatus


class PolicyList(Shape):
    policies: list[PolicyEntry]


def _scope(scope: str, cluster_id: str, department_id: str, project_id: str) -> Scope:
    return Scope(scope, {"cluster": cluster_id, "department": department_id, "project": project_id}.get(scope, ""))


def _queried_scope(call: Call) -> Scope:
    scope = query_choice(call, "scope", _SCOPES)
    if not scope:
        raise Invalid(issues=(ComplianceIssue("scope", f"is missing; it must be one of {', '.join(_SCOPES)}"),))
    return _scope(scope, *(query_text(call, name) for name in ("clusterId", "departmentId", "projectId")))


def _listed_scope(call: Call) -> Scope | None:
    """The scope that a list is limited to: the one that is named, or whose id is given."""
    if query_text(call, "scope"):
        return _queried_scope(call)
    given = ((name, query_text(call, f"{name}Id")) for name in ("project", "department", "cluster"))
    return next((Scope(name, id) for name, id in given if id), None)


def _input(policy_type: PolicyType, body: PolicyBody) -> PolicyInput:
    content, meta = value_or(body.policy, PolicyContent()), body.meta
    project_id = value_or(meta.project_id, None)
    imposed = value_or(content.imposed_assets, None)
    return PolicyInput(
        name=meta.name,
        scope=_scope(
            meta.scope,
            value_or(meta.cluster_id, ""),
            value_or(meta.department_id, ""),
            "" if project_id is None else str(project_id),
        ),
        defaults=value_or(content.defaults, None),
        rules=value_or(content.rules, None),
        imposed_assets=None if imposed is None else _imposed(policy_type, imposed),
        is_merge=isinstance(body, PolicyChangeBody),
        reset=tuple(value_or(body.reset, ())) if isinstance(body, PolicyChangeBody) else (),
    )


def _imposed(policy_type: PolicyType, given: object) -> dict[str, tuple[str, ...]]:
    """Ids by role; a kind without roles has a plain list."""
    by_role = {"": given} if policy_type.roles == ("",) else given
    expected = (
        "a list of ids"
        if policy_type.roles == ("",)
        else f"an object of lists of ids for {' and '.join(policy_type.roles)}"
    )
    if not isinstance(by_role, dict) or not all(
        role in policy_type.roles
        and (ids is None or (isinstance(ids, list) and all(isinstance(id, str) for id in ids)))
        for role, ids in by_role.items()
    ):
        raise Invalid(issues=(ComplianceIssue("policy.imposedAssets", f"must be {expected}"),))
    return {role: tuple(ids or ()) for role, ids in by_role.items()}


def _render_content(policy_type: PolicyType, policy: Policy) -> PolicyContentView:
    imposed: Any = {role: list(ids) for role, ids in policy.imposed_assets.items() if ids}
    return PolicyContentView(
        defaults=policy.defaults,
        rules=policy.rules,
        imposed_assets=imposed.get("", []) if policy_type.roles == ("",) else imposed,
    )


def _render_meta(call: Call, record: PolicyRecord) -> PolicyMetaView:
    scope = record.scope
    return PolicyMetaView(
        id=record.id,
        name=record.name,
        scope=cast(ScopeType, scope.type),
        tenant_id=call.context.directory.cluster.tenant_id,
        created_at=iso(record.created_at),
        created_by=record.created_by,
        updated_at=iso(record.updated_at),
        updated_by=record.updated_by,
        cluster_id=scope.id if scope.type == "cluster" else UNSET,
        department_id=scope.id if scope.type == "department" else UNSET,
        project_id=int(scope.id) if scope.type == "project" else UNSET,
    )


def _find_remark(policy_type: PolicyType) -> ValidationMessage | UnsetType:
    """Why a valid policy has no effect; UNSET if it has one."""
    if policy_type.kind:
        return UNSET
    return ValidationMessage(f"This policy has no effect: {policy_type.title} workloads do not exist here")


def _render(call: Call, policy_type: PolicyType, record: PolicyRecord) -> PolicyView:
    effective = effective_policy(call.context, policy_type, record.scope, record)
    content, remark = _render_content(policy_type, policy_of(record)), _find_remark(policy_type)
    if remark is not UNSET:
        content.status = PolicyValidation(validation=remark)
    return PolicyView(
        meta=_render_meta(call, record),
        policy=content,
        effective=_render_content(policy_type, effective),
        effective_updated_at=iso(record.updated_at),
    )


async def _get(policy_type: PolicyType, call: Call) -> Response:
    return as_json(
        _render(call, policy_type, policies.load_policy(call.context, call.caller, policy_type, _queried_scope(call)))
    )


async def _write(policy_type: PolicyType, shape: type[PolicyBody], call: Call) -> Response:
    given = _input(policy_type, await receive_json(call, shape))
    is_dry_run = bool(query_boolean(call, "validateOnly"))
    record = await policies.write_policy(
        call.context, call.caller, policy_type, given, call.request_id, is_dry_run=is_dry_run
    )
    return as_json(_render(call, policy_type, record))


async def _delete(policy_type: PolicyType, call: Call) -> Response:
    await policies.delete_policy(call.context, call.caller, policy_type, _queried_scope(call), call.request_id)
    return Response(status_code=204)


async def _get_effective(policy_type: PolicyType, call: Call) -> Response:
    project_id = query_text(call, "projectId")
    policy = policies.load_effective(call.context, call.caller, policy_type, project_id)
    return as_json(EffectiveView(effective=_render_content(policy_type, policy)))


async def _list(call: Call) -> Response:
    title = query_choice(call, "workloadType", _TITLES)
    policy_type = next((each for each in POLICY_TYPES.values() if each.title == title), None)
    cluster = call.context.directory.cluster
    clusters = [ClusterSync(cluster_id=id, status="Ready") for id in call.context.directory.clusters]
    ready = PolicyStatus(clusters=clusters)
    entries = [
        PolicyEntry(
            type=record.type,
            meta=_render_meta(call, record),
            status=PolicyStatus(clusters=clusters, validation=_find_remark(TYPES_BY_KEY[record.type])),
        )
        for record in policies.find_policies(call.context, call.caller, policy_type, _listed_scope(call))
    ]
    if query_boolean(call, "includeFallbackPolicies") and any(policy.rules for policy in SYSTEM_POLICIES.values()):
        meta = PolicyMetaView(
            id=cluster.id,
            name="system",
            scope="system",
            tenant_id=cluster.tenant_id,
            created_at=iso(cluster.created_at),
            created_by="system",
            updated_at=iso(cluster.created_at),
            updated_by="system",
        )
        entries.append(PolicyEntry(type="fallback", meta=meta, status=ready))
    return as_json(PolicyList(policies=entries))


_QUERY = (
    Parameter(name="departmentId", schema={"type": "string"}),
    Parameter(name="projectId", schema={"type": "string"}),
    Parameter(name="clusterId", schema={"type": "string", "format": "uuid"}),
)
_SCOPE = Parameter(name="scope", schema={"type": "string", "enum": list(_SCOPES)})
_VALIDATE = Parameter(name="validateOnly", schema={"type": "boolean"}, description="Check it and change nothing.")
_APPROVE = Parameter(
    name="approveClusterDeletion", schema={"type": "boolean"}, description="No effect: policies are kept by the server."
)


def _type_operations(policy_type: PolicyType) -> tuple[Operation, ...]:
    workloads = policy_type.rest.replace("-", " ")
    noun = f"policy for {workloads}"
    word = policy_type.rest.replace("-", "_").removesuffix("s")
    is_versioned = policy_type.key != "nimService"
    version, approve = ("_v2", (_APPROVE,)) if is_versioned else ("", ())
    failures = failing(400, 401, 403, 503)

    def operation(method: str, id: str, summary: str, run: Handler, **members: Any) -> Operation:
        path = f"{_BASE}/{policy_type.rest}"
        members["is_addition"] = policy_type.is_addition
        return Operation(method=method, path=path, id=id, tag="Policies", summary=summary, run=run, **members)

    def writing(method: str, id: str, summary: str, body: type[PolicyBody]) -> Operation:
        return operation(
            method,
            id,
            summary,
            partial(_write, policy_type, body),
            parameters=(_VALIDATE, *approve),
            body=RequestBody(schema=body),
            answers={200: PolicyView, **failures},
        )

    return (
        operation(
            "GET",
            f"get_{word}_policy{version}",
            f"Get the {noun} of a scope, and what holds there with those of wider scopes",
            partial(_get, policy_type),
            parameters=(_SCOPE, *_QUERY),
            answers={200: PolicyView, **failures, 404: Error},
        ),
        writing("PUT", f"overwrite_{word}_policy{version}", f"Create or replace the {noun} of a scope", PolicyBody),
        writing(
            "PATCH", f"update_{word}_policy{version}", f"Change members of the {noun} of a scope", PolicyChangeBody
        ),
        operation(
            "DELETE",
            f"delete_{word}_policy",
            f"Delete the {noun} of a scope",
            partial(_delete, policy_type),
            parameters=(_SCOPE, *_QUERY, *approve),
            answers={204: None, **failures, 404: Error},
        ),
        Operation(
            method="GET",
            path=f"{_BASE}/{policy_type.rest}/effective",
            id=f"get_effective_{word}_policy",
            tag="Policies",
            summary=f"Get what holds in a project by the policies for {workloads} of all scopes",
            run=partial(_get_effective, policy_type),
            parameters=(Parameter(name="projectId", schema={"type": "string"}),),
            answers={200: EffectiveView, **failures, 404: Error},
            is_addition=True,
        ),
    )


POLICY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=_BASE,
        id="list_policies",
        tag="Policies",
        summary="List policies",
        run=_list,
        parameters=(
            Parameter(name="workloadType", schema={"type": "string", "enum": list(_TITLES)}),
            _SCOPE,
            *_QUERY,
            Parameter(name="includeFallbackPolicies", schema={"type": "boolean"}),
        ),
        answers={200: PolicyList, **failing(401, 403, 503), 400: Error},
    ),
    *(operation for policy_type in POLICY_TYPES.values() for operation in _type_operations(policy_type)),
)
