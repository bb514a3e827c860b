"""Routes and views of templates: for each kind of workload, from `KINDS`, and lists of all templates."""

from functools import cache, partial
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_integer, query_text
from fairlead.api.http.crud import (
    CreateRoute,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    operations,
)
from fairlead.api.http.list_parameters import (
    LIMIT,
    OFFSET,
    SEARCH,
    filter_by,
    next_offset,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import Call, Handler, Inline, Operation, Parameter, as_json
from fairlead.api.http.shapes import Count, Instant, ScopeType, Shape, Uuid
from fairlead.api.policies.compliance import PolicyIssue, render_issues
from fairlead.api.templates.dialects import MANIFEST_OPERATIONS
from fairlead.control.references.scopes import cluster_of_scope
from fairlead.control.workloads import templates
from fairlead.control.workloads.templates import TEMPLATE_FIELDS, TemplateInput
from fairlead.kinds import KINDS, MEANT_FOR
from fairlead.kinds.kind import Kind, noun_of
from fairlead.model.clock import iso
from fairlead.model.english import with_article
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound
from fairlead.model.records.assets import SCOPES, Scope
from fairlead.model.records.templates import Template
from fairlead.model.spec.fields import FieldInfo, Maybe, Spec, Text253, UpTo253, value_or
from fairlead.model.spec.fields import Uuid as UuidText

Description = Annotated[Maybe[Annotated[str, Meta(min_length=1, max_length=250)]], FieldInfo(text="What it is for.")]


class TemplateMetaUpdate(Spec, frozen=True, kw_only=True):
    name: Annotated[Text253, FieldInfo(text="Its name, unique in its scope.")]
    description: Description = UNSET


class TemplateMetaPatch(Spec, frozen=True, kw_only=True):
    name: Annotated[Maybe[Text253], FieldInfo(text="Its name, unique in its scope.")] = UNSET
    description: Description = UNSET


class TemplateMeta(TemplateMetaUpdate, frozen=True, kw_only=True):
    scope_type: Annotated[ScopeType, FieldInfo(text="The scope in which it can be used.")]
    scope_id: Annotated[Maybe[UpTo253], FieldInfo(text="The id of the project, department or cluster.")] = UNSET


class DataSourceRef(Spec, frozen=True, kw_only=True):
    id: Annotated[UuidText, FieldInfo(text="The data source's id.")]
    kind: Annotated[Maybe[Text253], FieldInfo(text="Its kind.")] = UNSET


class TemplateAssets(Spec, frozen=True, kw_only=True):
    """Assets by id; workloads get their values unless the request or the template sets them."""

    environment: Annotated[Maybe[UuidText], FieldInfo(text="An environment.")] = UNSET
    compute: Annotated[Maybe[UuidText], FieldInfo(text="A compute resource.")] = UNSET
    datasources: Annotated[
        Maybe[Annotated[tuple[DataSourceRef, ...], Meta(max_length=1000)]], FieldInfo(text="Data sources.")
    ] = UNSET


class TemplateMetaView(Shape):
    id: Uuid
    name: str
    workload_type: str
    scope_type: ScopeType
    scope_id: str
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    description: str | UnsetType = UNSET
    cluster_id: Uuid | UnsetType = UNSET
    department_id: str | UnsetType = UNSET
    project_id: int | UnsetType = UNSET


class Runnable(Shape):
    is_runnable: bool
    issue: str | UnsetType = UNSET


class TemplateView(Shape):
    meta: TemplateMetaView
    spec: dict[str, Any]
    runnable: Runnable
    assets: dict[str, Any] | UnsetType = UNSET
    combined_spec: dict[str, Any] | UnsetType = UNSET


class Pagination(Shape):
    limit: int
    offset: int
    next_offset: int | UnsetType = UNSET


class ListedTemplate(TemplateView, kw_only=True):
    #: What the policies of the project, or else of its own scope, refuse in it.
    compliance_issues: list[PolicyIssue]


class TemplateList(Shape):
    entries: list[ListedTemplate]
    pagination: Pagination


class TemplateBody(Spec, frozen=True, kw_only=True):
    """A request's body. Each kind of workload has subclasses with its own spec, one for each kind of meta."""

    meta: TemplateMetaUpdate | TemplateMetaPatch | UnsetType = UNSET
    spec: msgspec.Struct | UnsetType | None = UNSET
    assets: TemplateAssets | UnsetType | None = UNSET


@cache
def _body(kind: Kind, meta: type[TemplateMetaUpdate] | type[TemplateMetaPatch]) -> type[TemplateBody]:
    """The struct of a request's body; the kind's spec may be left out."""
    # The type is built at run time.
    given: Any = kind.spec | UnsetType | None
    spec = Annotated[given, FieldInfo(text="The spec of workloads created from it.")]
    assets = Annotated[TemplateAssets | UnsetType | None, FieldInfo(text="Assets by id.")]
    about = FieldInfo(text="Its name and scope.")
    head: Any = ("meta", Annotated[meta, about])
    if meta is TemplateMetaPatch:
        head = ("meta", Annotated[meta | UnsetType, about], UNSET)
    body = msgspec.defstruct(
        f"{kind.title}{meta.__name__}",
        [head, ("spec", spec, UNSET), ("assets", assets, UNSET)],
        bases=(TemplateBody,),
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    )
    return cast(type[TemplateBody], body)


def _input(body: TemplateBody, *, is_merge: bool) -> TemplateInput:
    head = TemplateMetaPatch() if body.meta is UNSET else body.meta
    scope = Scope("project")
    if isinstance(head, TemplateMeta):
        scope = Scope(head.scope_type, value_or(head.scope_id, ""))
    return TemplateInput(
        name=value_or(head.name, None),
        description=value_or(head.description, None),
        scope=scope,
        spec=value_or(body.spec, None),
        assets=None if body.assets is UNSET else msgspec.to_builtins(body.assets) or {},
        is_merge=is_merge,
    )


async def render_template(call: Call, template: Template) -> TemplateView:
    scope = template.scope
    spec: dict[str, Any] = msgspec.json.decode(bytes(template.spec))
    meta = TemplateMetaView(
        id=template.id,
        name=template.name,
        workload_type=KINDS[template.kind].title,
        scope_type=scope.type,  # type: ignore[arg-type]  # only values of the contract are stored
        scope_id=scope.id,
        created_at=iso(template.created_at),
        created_by=template.created_by,
        updated_at=iso(template.updated_at),
        updated_by=template.updated_by,
        description=template.description or UNSET,
        cluster_id=cluster_of_scope(call.context, scope) if scope.type != "tenant" else UNSET,
        department_id=scope.id if scope.type == "department" else UNSET,
        project_id=int(scope.id) if scope.type == "project" else UNSET,
    )
    combined = await templates.load_combined(call.context, template)
    is_whole = bool(combined.get("image"))
    runnable = Runnable(is_runnable=is_whole, issue=UNSET if is_whole else "image must be set at submission")
    if not template.assets:
        return TemplateView(meta=meta, spec=spec, runnable=runnable)
    return TemplateView(meta=meta, spec=spec, runnable=runnable, assets=template.assets, combined_spec=combined)


async def _render_listed(call: Call, template: Template, project: int | None) -> ListedTemplate:
    """With what the policies of a project, or else of the template's own scope, refuse in it."""
    view = await render_template(call, template)
    scope = template.scope if project is None else Scope("project", str(project))
    combined = view.spec if view.combined_spec is UNSET else view.combined_spec
    issues = render_issues(call, KINDS[template.kind], combined, scope)
    return ListedTemplate(**msgspec.structs.asdict(view), compliance_issues=issues)


def _lister(kind: Kind | None) -> Handler:
    async def find(call: Call) -> Response:
        request = read_list_request(call, TEMPLATE_FIELDS)
        project = query_integer(call, "complyToProject", None)
        chosen = query_choice(call, "complyToWorkloadType", _TYPES)
        query_choice(call, "complyToReplicaType", ("Worker", "Master"))
        wanted = kind or next((one for one in KINDS.values() if one.title == chosen), None)
        if chosen and wanted is None:
            return as_json(TemplateList(entries=[], pagination=Pagination(limit=request.limit, offset=0)))
        try:
            page = await templates.find_templates(
                call.context, call.caller, request, wanted, "" if project is None else str(project)
            )
        except NotFound:
            details = f"is {project}; {call.caller.name} can see no project with this id"
            raise Invalid(issues=(ComplianceIssue("complyToProject", details),)) from None
        return as_json(
            TemplateList(
                entries=[await _render_listed(call, template, project) for template in page.items],
                pagination=Pagination(
                    limit=request.limit,
                    offset=request.offset,
                    next_offset=next_offset(page),
                ),
            )
        )

    return find


async def count_templates(call: Call) -> Response:
    return as_json(Count(await templates.count_templates(call.context, call.caller, read_list_request(call))))


async def check_name(call: Call) -> Response:
    scope = Scope(query_choice(call, "scopeType", SCOPES[1:], "tenant"), query_text(call, "scopeId"))
    name = query_text(call, "templateName")
    if not await templates.is_name_free(call.context, call.caller, name, scope):
        raise Conflict(f"A template named {name[:253]} already exists in this scope", ("name",))
    return Response(status_code=204)


#: The kinds of workload for which the contract has templates.
_TYPES = tuple(word.title() for word in MEANT_FOR)
_FAILURES = (400, 401, 403, 500, 503)
_ID = Parameter(name="templateId", place="path", schema={"type": "string", "format": "uuid"})
_PROJECT = Parameter(
    name="complyToProject",
    schema={"type": "integer", "format": "int32", "minimum": 0},
    description="Only templates that this project can use.",
)
_LIST = (
    OFFSET,
    LIMIT,
    sort_order(),
    sort_by(TEMPLATE_FIELDS),
    filter_by(TEMPLATE_FIELDS),
    SEARCH,
    _PROJECT,
)
_BASE = "/api/v1/workload-templates"


def _update(
    kind: Kind, method: str, id: str, summary: str, meta: type[TemplateMetaUpdate] | type[TemplateMetaPatch]
) -> UpdateRoute[TemplateBody, TemplateInput, Template]:
    return UpdateRoute(
        method=method,
        id=id,
        summary=summary,
        body=Inline(partial(_body, kind, meta)),
        read=partial(_input, is_merge=meta is TemplateMetaPatch),
        use_case=lambda context, caller, id, given, request_id: templates.update_template(
            context, caller, kind, id, given, request_id
        ),
        # The contract changes only templates of kinds that can be suspended.
        is_addition=not kind.can_suspend,
    )


def _kind_operations(kind: Kind) -> tuple[Operation, ...]:
    noun = f"template for {with_article(noun_of(kind))}"
    word = kind.rest.replace("-", "_").removesuffix("s")
    resource = RestResource(
        path=f"{_BASE}/{kind.rest}",
        id=_ID,
        tag="Templates",
        view=TemplateView,
        render=render_template,
        failures=_FAILURES,
        uuid_of="template",
        # The contract has templates for some kinds of workload only.
        is_addition=kind.title not in _TYPES,
        rows=(
            HandledRoute(
                id=f"list_{word}_templates",
                summary=f"List templates for {noun_of(kind)}s",
                run=_lister(kind),
                parameters=_LIST,
                answers={200: TemplateList},
            ),
            CreateRoute(
                id=f"create_{word}_template",
                summary=f"Create a {noun}",
                body=Inline(partial(_body, kind, TemplateMeta)),
                read=partial(_input, is_merge=False),
                use_case=lambda context, caller, given, request_id: templates.create_template(
                    context, caller, kind, given, request_id
                ),
                status=202,
            ),
            ReadRoute(
                id=f"get_{word}_template",
                summary=f"Get a {noun}",
                use_case=lambda context, caller, id: templates.load_template(context, caller, id, kind),
            ),
            _update(kind, "PUT", f"update_{word}_template", f"Replace a {noun}", TemplateMetaUpdate),
            _update(kind, "PATCH", f"patch_{word}_template", f"Change a {noun}", TemplateMetaPatch),
            DeleteRoute(
                id=f"delete_{word}_template",
                summary=f"Delete a {noun}",
                use_case=lambda context, caller, id, request_id: templates.delete_template(
                    context, caller, kind, id, request_id
                ),
            ),
        ),
    )
    return operations(resource)


_TEMPLATES: RestResource[Template] = RestResource(
    path=_BASE,
    id=_ID,
    tag="Templates",
    view=TemplateView,
    render=render_template,
    failures=_FAILURES,
    uuid_of="template",
    rows=(
        HandledRoute(
            id="list_templates1",
            summary="List templates of all kinds",
            run=_lister(None),
            parameters=(
                *_LIST,
                Parameter(name="complyToWorkloadType", schema={"type": "string", "enum": list(_TYPES)}),
                Parameter(name="complyToReplicaType", schema={"type": "string", "enum": ["Worker", "Master"]}),
            ),
            answers={200: TemplateList},
        ),
        HandledRoute(
            suffix="/count",
            id="count_templates",
            summary="Count templates",
            run=count_templates,
            parameters=(filter_by(TEMPLATE_FIELDS), SEARCH),
            answers={200: Count},
        ),
        HandledRoute(
            suffix="/name-availability",
            id="template_name_availability",
            summary="Check whether a name is available: 204 if it is, 409 if it is taken",
            run=check_name,
            parameters=(
                Parameter(name="templateName", schema={"type": "string", "minLength": 1}),
                Parameter(name="scopeType", schema={"type": "string", "enum": list(SCOPES[1:])}),
                Parameter(name="scopeId", schema={"type": "string"}),
            ),
            answers={204: None},
            also=(409,),
        ),
        ReadRoute(id="get_template_by_id1", summary="Get a template of any kind", use_case=templates.load_template),
    ),
)

TEMPLATE_OPERATIONS: tuple[Operation, ...] = (
    *MANIFEST_OPERATIONS,
    *(operation for kind in KINDS.values() for operation in _kind_operations(kind)),
    *operations(_TEMPLATES),
)
