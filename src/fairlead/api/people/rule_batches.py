"""Routes that create or delete many access rules, and that list the scopes in which the caller may act."""

import uuid
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import Error, status_of
from fairlead.api.http.operation import Call, Operation, RequestBody, as_json
from fairlead.api.http.shapes import ScopeType, Shape, Uuid
from fairlead.api.people.access_rules import (
    RuleCreation,
    RuleView,
    SubjectType,
    render_rule,
)
from fairlead.control.people import access_rules
from fairlead.control.people.access_rules import RuleInput
from fairlead.control.role_table import RESOURCE_TYPES
from fairlead.model.errors import FairleadError, Forbidden, Invalid
from fairlead.model.records.assets import Scope
from fairlead.model.spec.fields import Given, Int32, Spec

#: The most items in one request.
_MAX_ITEMS = 1000
_ANSWERS = {400: 0, 403: 0, 404: 0, 409: 0}


class RuleBatch(Spec, frozen=True, kw_only=True):
    """Access rules to delete, or to check for deletion; each by its number, which may be written as a UUID."""

    action: Literal["delete", "validate_delete"]
    ids: Annotated[tuple[str, ...], Meta(min_length=1, max_length=_MAX_ITEMS)]


class FailedDeletion(Shape):
    id: str
    code: int
    message: str


class DeletionBatch(Shape):
    id: Uuid
    succeeded: list[str] | UnsetType = UNSET
    failed: list[FailedDeletion] | UnsetType = UNSET


class BatchSubject(Spec, frozen=True, kw_only=True):
    subject_id: str
    subject_type: SubjectType


class BatchScope(Spec, frozen=True, kw_only=True):
    scope_id: str
    scope_type: ScopeType


class RuleProduct(Spec, frozen=True, kw_only=True):
    """One role for every subject in every scope."""

    subjects: Annotated[tuple[BatchSubject, ...], Meta(min_length=1, max_length=_MAX_ITEMS)]
    role_id: Int32
    scopes: Annotated[tuple[BatchScope, ...], Meta(min_length=1, max_length=_MAX_ITEMS)]
    cluster_id: Given[str] = UNSET


class RuleBatchCreation(Spec, frozen=True, kw_only=True):
    payload: RuleProduct


class FailedCreation(Shape):
    code: int
    message: str
    payload: RuleCreation


class CreationBatch(Shape):
    succeeded: list[RuleView]
    failed: list[FailedCreation]


class PermittedScopes(Shape):
    system: bool
    tenants: list[str]
    clusters: list[str]
    departments: list[str]
    projects: list[str]


class PermittedActions(Shape):
    create: PermittedScopes
    read: PermittedScopes
    update: PermittedScopes
    delete: PermittedScopes


class PermittedQuestion(Spec, frozen=True, kw_only=True):
    """A question for the scopes in which the caller may act on a type of resource."""

    resource_type: str
    action: Given[Literal["create", "read", "update", "delete"]] = UNSET


def _number(id: str) -> str:
    """The number of a rule, which may be written as a UUID."""
    try:
        return id if id.isdigit() else str(uuid.UUID(id).int)
    except ValueError:
        return id


async def change_many(call: Call) -> Response:
    """Delete or check each rule on its own; a failure does not affect the others."""
    body = await receive_json(call, RuleBatch)
    succeeded, failed = [], []
    for id in dict.fromkeys(body.ids):
        try:
            if body.action == "delete":
                await access_rules.delete_rule(call.context, call.caller, _number(id), call.request_id)
            else:
                access_rules.check_deletion(call.context, call.caller, _number(id))
        except Forbidden:
            raise
        except FairleadError as error:
            failed.append(FailedDeletion(id=id, code=status_of(error, _ANSWERS), message=str(error)))
        else:
            succeeded.append(id)
    return as_json(
        DeletionBatch(id=call.context.new_id(), succeeded=succeeded or UNSET, failed=failed or UNSET),
    )


async def create_many(call: Call) -> Response:
    body = await receive_json(call, RuleBatchCreation)
    wanted = body.payload
    succeeded, failed = [], []
    for subject in wanted.subjects:
        for scope in wanted.scopes:
            input = RuleInput(
                subject_id=subject.subject_id,
                subject_type=subject.subject_type,
                role_id=wanted.role_id,
                scope=Scope(scope.scope_type, scope.scope_id),
            )
            try:
                rule = await access_rules.create_rule(call.context, call.caller, input, call.request_id)
            except Forbidden:
                raise
            except FairleadError as error:
                given = RuleCreation(
                    role_id=wanted.role_id, **msgspec.structs.asdict(subject), **msgspec.structs.asdict(scope)
                )
                failed.append(FailedCreation(code=status_of(error, _ANSWERS), message=_message(error), payload=given))
            else:
                succeeded.append(render_rule(call, rule))
    return as_json(CreationBatch(succeeded=succeeded, failed=failed))


def _message(error: FairleadError) -> str:
    issues = error.issues if isinstance(error, Invalid) else ()
    return "; ".join([str(error), *(f"{issue.field}: {issue.details}" for issue in issues)])


async def get_permitted_scopes(call: Call) -> Response:
    body = await receive_json(call, PermittedQuestion)
    verbs = ("create", "read", "update", "delete") if body.action is UNSET else (body.action,)
    return as_json(
        PermittedActions(
            **{
                action: _permitted(
                    call,
                    access_rules.load_own_scopes(call.context, call.caller, f"{body.resource_type}:{action}")
                    if action in verbs
                    else [],
                )
                for action in ("create", "read", "update", "delete")
            }
        )
    )


def _permitted(call: Call, scopes: list[Scope]) -> PermittedScopes:
    tenant = str(call.context.directory.cluster.tenant_id)
    of_type = {
        kind: sorted({scope.id for scope in scopes if scope.type == kind})
        for kind in ("cluster", "department", "project")
    }
    is_wide = any(scope.type in ("system", "tenant") for scope in scopes)
    return PermittedScopes(
        system=False,
        tenants=[tenant] if is_wide else [],
        clusters=of_type["cluster"],
        departments=of_type["department"],
        projects=of_type["project"],
    )


_FAILURES = {400: Error, 401: Error, 403: Error, 500: Error, 503: Error}
_QUESTION = {
    "type": "object",
    "required": ["resourceType"],
    "properties": {
        "resourceType": {"type": "string", "enum": [type.name for type in RESOURCE_TYPES]},
        "action": {"type": "string", "enum": ["create", "read", "update", "delete"], "nullable": True},
    },
}
BATCH_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/api/v1/authorization/access-rules/batch",
        id="batch_access_rules",
        tag="Access rules",
        summary="Delete several access rules, or check whether they can be deleted",
        run=change_many,
        body=RequestBody(schema=RuleBatch),
        answers={200: DeletionBatch, **_FAILURES},
    ),
    Operation(
        method="POST",
        path="/api/v1/authorization/access-rules/batch-create",
        id="batch_create_access_rules",
        tag="Access rules",
        summary="Grant a role in several scopes to several subjects",
        run=create_many,
        body=RequestBody(schema=RuleBatchCreation),
        answers={200: CreationBatch, **_FAILURES},
    ),
    Operation(
        method="POST",
        path="/api/v1/authorization/permitted-scopes",
        id="get_permitted_scopes",
        tag="Access rules",
        summary="List the scopes in which the caller may act on a type of resource",
        run=get_permitted_scopes,
        body=RequestBody(schema=_QUESTION),
        answers={200: PermittedActions, 400: Error, 401: Error, 500: Error, 503: Error},
    ),
)
