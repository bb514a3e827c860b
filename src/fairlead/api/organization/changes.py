"""Departments, projects and node pools: the routes that create, read, change and delete them."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from fairlead.api.http.body import read_body
from fairlead.api.http.crud import (
    CreateRoute,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    operations,
)
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, as_json
from fairlead.api.http.shapes import Accepted
from fairlead.api.organization.bodies import (
    DepartmentCreation,
    NodePoolCreation,
    NodePoolUpdate,
    OwnerUpdate,
    PoolQuotaBody,
    ProjectCreation,
    ProjectUpdate,
    node_pool_input,
    owner_input,
    read_resources,
    resources_input,
)
from fairlead.api.organization.nodes import NODE_POOL_READS, NodePoolView, render_node_pool
from fairlead.api.organization.reads import (
    DEPARTMENT_READS,
    PROJECT_READS,
    DepartmentView,
    PoolQuotaView,
    ProjectView,
    render_department,
    render_pool_quota,
    render_project,
)
from fairlead.control.context import Context
from fairlead.control.organization import inventory, node_pools, owners, removal
from fairlead.control.organization.inputs import NodePoolInput, OwnerInput
from fairlead.control.organization.inventory import Usages
from fairlead.model.records.organization import Department, NodePool, Project
from fairlead.model.records.people import Caller

UpdateOwner = Callable[[Context, Caller, str, OwnerInput, str], Awaitable[Department]]
#: A new department or project uses nothing.
_NO_USAGE: Usages = {}


async def _show_department(call: Call, record: Department) -> DepartmentView:
    return render_department(record, await inventory.load_usage(call.context))


async def _show_project(call: Call, record: Project) -> ProjectView:
    return _project(call, record, await inventory.load_usage(call.context))


def _project(call: Call, record: Project, usages: Usages) -> ProjectView:
    problem = call.context.engine_of(record.cluster_id).find_namespace_problem(record.namespace)
    return render_project(record, call.context.directory.departments.get(record.department_id), usages, problem)


async def _delete_department(context: Context, caller: Caller, id: str, request_id: str) -> None:
    """The contract has no 202 here: workloads of the department are stopped after the answer."""
    await removal.delete_department(context, caller, id, request_id)


def _resources(noun: str, update: UpdateOwner) -> tuple[HandledRoute, ...]:
    """Set or change only the quotas of a department or project."""

    def handler(*, is_merge: bool) -> Handler:
        async def run(call: Call) -> Response:
            quotas = read_resources(await read_body(call.request, "application/json"))
            given = resources_input(quotas, is_merge=is_merge)
            changed = await update(call.context, call.caller, call.path[f"{noun}Id"], given, call.request_id)
            return as_json([render_pool_quota(quota) for quota in changed.resources])

        return run

    def route(method: str, id: str, summary: str, run: Handler) -> HandledRoute:
        return HandledRoute(
            method=method,
            suffix="/{}/resources",
            id=id,
            summary=summary,
            run=run,
            body=list[PoolQuotaBody],
            answers={200: list[PoolQuotaView]},
            also=(400, 404, 500),
        )

    replace = f"Set the quotas of a {noun}; it can only borrow in pools that are left out"
    change = f"Change some quotas of a {noun}"
    return (
        route("PUT", f"update_{noun}_resources", replace, handler(is_merge=False)),
        route("PATCH", f"patch_{noun}_resources", change, handler(is_merge=True)),
    )


_DEPARTMENTS = RestResource(
    path="/api/v1/org-unit/departments",
    id=Parameter(name="departmentId", place="path", schema={"type": "string"}),
    tag="Organization",
    view=DepartmentView,
    render=_show_department,
    failures=(401, 403, 503),
    rows=(
        *DEPARTMENT_READS,
        ReadRoute(
            id="get_department",
            summary="Get a department",
            use_case=lambda context, caller, id: inventory.load_record(
                context, caller, context.directory.departments, id, "department"
            ),
        ),
        CreateRoute(
            id="create_department",
            summary="Create a department",
            body=DepartmentCreation,
            read=owner_input,
            use_case=owners.create_department,
            render=lambda call, record: render_department(record, _NO_USAGE),
            also=(400, 409),
        ),
        UpdateRoute(
            id="update_department",
            summary="Change a department",
            body=OwnerUpdate,
            read=owner_input,
            use_case=owners.update_department,
            also=(400, 404),
        ),
        DeleteRoute(
            id="delete_department",
            summary="Delete a department with its projects and their workloads",
            use_case=_delete_department,
            also=(400, 404),
        ),
        *_resources("department", owners.update_department),
    ),
)

_PROJECTS = RestResource(
    path="/api/v1/org-unit/projects",
    id=Parameter(name="projectId", place="path", schema={"type": "string"}),
    tag="Organization",
    view=ProjectView,
    render=_show_project,
    failures=(401, 403, 503),
    rows=(
        *PROJECT_READS,
        ReadRoute(
            id="get_project",
            summary="Get a project",
            use_case=lambda context, caller, id: inventory.load_record(
                context, caller, context.directory.projects, id, "project"
            ),
        ),
        CreateRoute(
            id="create_project",
            summary="Create a project",
            body=ProjectCreation,
            read=owner_input,
            use_case=owners.create_project,
            render=lambda call, record: _project(call, record, _NO_USAGE),
            also=(400, 409),
        ),
        UpdateRoute(
            id="update_project",
            summary="Change a project",
            body=ProjectUpdate,
            read=owner_input,
            use_case=owners.update_project,
            also=(400, 404),
        ),
        DeleteRoute(
            id="delete_project",
            summary="Delete a project; its workloads are stopped and deleted first",
            use_case=removal.delete_project,
            answers={202: Accepted},
            also=(400, 404, 500),
        ),
        *_resources("project", owners.update_project),
    ),
)


def _change_node_pool(method: str, id: str, summary: str) -> UpdateRoute[NodePoolUpdate, NodePoolInput, NodePool]:
    return UpdateRoute(
        method=method,
        id=id,
        summary=summary,
        body=NodePoolUpdate,
        read=node_pool_input,
        use_case=node_pools.update_node_pool,
        also=(400, 404, 500),
    )


_NODE_POOLS = RestResource(
    path="/api/v1/node-pools",
    id=Parameter(name="nodepoolId", place="path", schema={"type": "string"}),
    tag="Nodes",
    view=NodePoolView,
    render=render_node_pool,
    failures=(401, 403, 503),
    rows=(
        *NODE_POOL_READS,
        ReadRoute(
            id="get_nodepool",
            summary="Get a node pool",
            use_case=lambda context, caller, id: inventory.load_record(
                context, caller, context.directory.node_pools, id, "node pool"
            ),
            also=(404, 500),
        ),
        CreateRoute(
            id="create_nodepool",
            summary="Create a node pool",
            body=NodePoolCreation,
            read=node_pool_input,
            use_case=node_pools.create_node_pool,
            also=(400,),
        ),
        _change_node_pool("PUT", "update_nodepool", "Change a node pool"),
        _change_node_pool("PATCH", "patch_nodepool", "Change some fields of a node pool"),
        DeleteRoute(
            id="delete_nodepool",
            summary="Delete a node pool; its nodes move to another pool with their label, or to the default pool",
            use_case=node_pools.delete_node_pool,
            answers={202: Accepted},
            also=(400, 404, 500),
        ),
    ),
)

OWNER_OPERATIONS: tuple[Operation, ...] = (*operations(_DEPARTMENTS), *operations(_PROJECTS))
NODE_POOL_OPERATIONS: tuple[Operation, ...] = operations(_NODE_POOLS)
