"""Routes and views of access rules."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_choice, query_integer, query_text
from fairlead.api.http.crud import CreateRoute, DeleteRoute, HandledRoute, ReadRoute, RestResource, failing, operations
from fairlead.api.http.list_parameters import LIMIT, OFFSET, SEARCH, filter_by, read_list_request, sort_by, sort_order
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, Schema, as_json
from fairlead.api.http.shapes import Count, Instant, ScopeType, Shape, Uuid
from fairlead.control.lists import ListRequest
from fairlead.control.people import access_rules
from fairlead.control.people.access_rules import RULE_FIELD_NAMES, SUBJECT_TYPES, RuleInput
from fairlead.control.references.scopes import cluster_of_scope
from fairlead.model.clock import iso
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.spec.fields import Given, Int32, Spec

SubjectType = Literal["user", "app", "service-account", "group"]


class RuleStatus(Shape):
    phase: Literal["Creating", "Ready", "NotReady", "Deleting"]


class RuleView(Shape):
    id: int
    subject_id: str
    subject_type: SubjectType
    role_id: int
    role_name: str
    scope_id: str
    scope_type: ScopeType
    scope_name: str
    created_at: Instant
    created_by: str
    updated_at: Instant
    cluster_id: Uuid | UnsetType = UNSET
    tenant_id: int | UnsetType = UNSET
    status: RuleStatus | UnsetType = UNSET


class RuleList(Shape):
    access_rules: list[RuleView]
    display_records: int
    total_records: int


class OwnRules(Shape):
    access_rules: RuleList


class RuleCreation(Spec, frozen=True, kw_only=True):
    """A new access rule: a role for a user, group or service account in a scope and everything below it."""

    subject_id: str
    subject_type: SubjectType
    role_id: Int32
    scope_id: str
    scope_type: ScopeType
    cluster_id: Given[str] = UNSET


def render_rule(call: Call, rule: AccessRule) -> RuleView:
    cluster = call.context.directory.cluster
    return RuleView(
        id=int(rule.id),
        subject_id=rule.subject_id,
        subject_type=rule.subject_type,  # type: ignore[arg-type]  # only values of the contract are stored
        role_id=rule.role_id,
        role_name=access_rules.role_name(call.context, rule.role_id),
        scope_id=rule.scope.id,
        scope_type=rule.scope.type,  # type: ignore[arg-type]  # only values of the contract are stored
        scope_name=access_rules.scope_name(call.context, rule.scope),
        created_at=iso(rule.created_at),
        created_by=rule.created_by,
        updated_at=iso(rule.created_at),
        cluster_id=UNSET if rule.scope.type == "tenant" else cluster_of_scope(call.context, rule.scope),
        tenant_id=cluster.tenant_id,
        status=RuleStatus(phase="Ready"),
    )


def _request(call: Call) -> ListRequest:
    """The list's filters combined with the older ones, which are separate parameters.

    Deleted rules are not kept and rules are not filtered by cluster, so those two parameters have no effect.
    """
    request = read_list_request(call, RULE_FIELD_NAMES)
    query_boolean(call, "includeDeleted")
    older = {
        "subjectType": query_choice(call, "subjectType", SUBJECT_TYPES),
        "subjectId": query_text(call, "subjectIdFilter"),
        "scopeType": query_text(call, "scopeType"),
        "scopeId": query_text(call, "scopeId"),
        "roleId": str(query_integer(call, "roleId", "")),
    }
    filters = [f"{name}=={value}" for name, value in older.items() if value]
    joined = ",".join([*([request.filter_by] if request.filter_by else []), *filters])
    return msgspec.structs.replace(request, filter_by=joined)


async def get_rules(call: Call) -> Response:
    page = access_rules.find_rules(call.context, call.caller, _request(call))
    subjects = query_text(call, "subjectIds")
    wanted = subjects.split(",") if subjects else None
    since = query_text(call, "lastUpdated")
    rules = [rule for rule in page.items if wanted is None or rule.subject_id in wanted]
    views = [render_rule(call, rule) for rule in rules if iso(rule.created_at) >= since]
    return as_json(RuleList(access_rules=views, display_records=len(views), total_records=page.total))


async def count_rules(call: Call) -> Response:
    return as_json(Count(access_rules.find_rules(call.context, call.caller, _request(call)).total))


def rule_input(body: RuleCreation) -> RuleInput:
    return RuleInput(
        subject_id=body.subject_id,
        subject_type=body.subject_type,
        role_id=body.role_id,
        scope=Scope(body.scope_type, body.scope_id),
    )


async def get_own_rules(call: Call) -> Response:
    page = access_rules.load_own_rules(call.context, call.caller, read_list_request(call))
    views = [render_rule(call, rule) for rule in page.items]
    listed = RuleList(access_rules=views, display_records=len(views), total_records=page.total)
    return as_json(OwnRules(access_rules=listed))


async def count_own_rules(call: Call) -> Response:
    return as_json(Count(access_rules.load_own_rules(call.context, call.caller, read_list_request(call)).total))


_DELETED = Parameter(name="includeDeleted", schema={"type": "boolean", "default": False})
NUMBER = {"type": "integer", "format": "int32", "minimum": 0}
_OLDER = (
    Parameter(name="subjectType", schema={"type": "string", "enum": list(SUBJECT_TYPES)}),
    Parameter(name="subjectIdFilter", schema={"type": "string"}),
    Parameter(name="scopeType", schema={"type": "string"}),
    Parameter(name="scopeId", schema={"type": "string"}),
    Parameter(name="roleId", schema={"type": "integer", "format": "int32", "minimum": 1}),
)


_RULES = RestResource(
    path="/api/v1/authorization/access-rules",
    id=Parameter(name="accessRuleId", place="path", schema=NUMBER),
    tag="Access rules",
    view=RuleView,
    render=render_rule,
    failures=(401, 403, 500, 503),
    rows=(
        HandledRoute(
            id="get_access_rules",
            summary="List access rules",
            run=get_rules,
            parameters=(
                *_OLDER,
                _DELETED,
                Parameter(name="subjectIds", schema={"type": "array", "items": {"type": "string"}}),
                Parameter(name="lastUpdated", schema={"type": "string"}),
                Parameter(name="clusterId", schema={"type": "string", "format": "uuid"}),
                filter_by(RULE_FIELD_NAMES),
                sort_by(RULE_FIELD_NAMES),
                sort_order(),
                OFFSET,
                LIMIT,
                SEARCH,
            ),
            answers={200: RuleList},
            also=(400,),
        ),
        CreateRoute(
            id="create_access_rule",
            summary="Grant a role in a scope to a subject",
            body=RuleCreation,
            read=rule_input,
            use_case=access_rules.create_rule,
            also=(400, 404, 409),
        ),
        HandledRoute(
            suffix="/count",
            id="count_access_rules",
            summary="Count access rules",
            run=count_rules,
            parameters=(*_OLDER, _DELETED, filter_by(RULE_FIELD_NAMES), SEARCH),
            answers={200: Count},
            also=(400,),
        ),
        ReadRoute(id="get_access_rule", summary="Get an access rule", use_case=access_rules.load_rule),
        DeleteRoute(id="delete_access_rule", summary="Delete an access rule", use_case=access_rules.delete_rule),
    ),
)


def read_operation(
    path: str, id: str, summary: str, run: Handler, parameters: tuple[Parameter, ...], view: Schema
) -> Operation:
    statuses = (400, 401, 403, 404, 500, 503) if "{" in path else (400, 401, 403, 500, 503)
    return Operation(
        method="GET",
        path=f"/api/v1/authorization{path}",
        id=id,
        tag="Access rules",
        summary=summary,
        run=run,
        parameters=parameters,
        answers={**failing(*statuses), 200: view},
    )


RULE_OPERATIONS: tuple[Operation, ...] = (
    *operations(_RULES),
    read_operation(
        "/me/access-rules",
        "get_me_access_rules",
        "List the access rules that apply to the caller",
        get_own_rules,
        (OFFSET, LIMIT, SEARCH),
        OwnRules,
    ),
    read_operation(
        "/me/access-rules/count",
        "count_me_access_rules",
        "Count the access rules that apply to the caller",
        count_own_rules,
        (SEARCH,),
        Count,
    ),
)
