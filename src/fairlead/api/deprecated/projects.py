"""The older routes of projects, departments and node pools."""

from starlette.responses import Response

from fairlead.api.deprecated import bodies
from fairlead.api.deprecated.bodies import (
    MB,
    MIB,
    DeprecatedDepartment,
    DeprecatedNodePool,
    DeprecatedNodePoolCreation,
    DeprecatedNodePoolLabels,
    DeprecatedNodePoolUpdate,
    DeprecatedProject,
    DeprecatedProjectCreation,
    DeprecatedProjectUpdate,
)
from fairlead.api.deprecated.paths import BASE, FAILURES, check_cluster, deprecated, flag, path_parameters
from fairlead.api.http.body import query_boolean, receive_json
from fairlead.api.http.operation import Call, Handler, Operation, RequestBody, as_json
from fairlead.api.organization.nodes import POOL_LABEL
from fairlead.control.lists import ListRequest
from fairlead.control.organization import inventory, node_pools, owners, removal
from fairlead.model.errors import Refused
from fairlead.model.records.organization import DEFAULT_NODE_POOL, NodePool, Project

#: These lists have no pages.
_ALL = ListRequest(limit=1_000_000)
_SHOWN_AS_BEFORE = flag("excludePermissions")
_MEMORY_UNIT = flag("memoryUnitMb")


def _unit(call: Call) -> tuple[int, str]:
    return MB if query_boolean(call, "memoryUnitMb") else MIB


async def _show(call: Call, project: Project) -> Response:
    usages = await inventory.load_usage(call.context)
    return as_json(
        bodies.render_project(project, call.context.directory.clusters[project.cluster_id], usages, _unit(call))
    )


def _load(call: Call) -> Project:
    projects = call.context.directory.projects
    return inventory.load_record(call.context, call.caller, projects, call.path["id"], "project")


async def get_projects(call: Call) -> Response:
    context = call.context.for_cluster(check_cluster(call))
    usages = await inventory.load_usage(context)
    projects = inventory.find_projects(context, call.caller, _ALL, usages).items
    cluster, unit = context.directory.cluster, _unit(call)
    return as_json([bodies.render_project(each, cluster, usages, unit) for each in projects])


async def get_project(call: Call) -> Response:
    check_cluster(call)
    return await _show(call, _load(call))


async def create_project(call: Call) -> Response:
    cluster_id = check_cluster(call)
    given = bodies.project_input(await receive_json(call, DeprecatedProjectCreation), cluster_id)
    return await _show(call, await owners.create_project(call.context, call.caller, given, call.request_id))


async def update_project(call: Call) -> Response:
    cluster_id = check_cluster(call)
    given = bodies.project_input(await receive_json(call, DeprecatedProjectUpdate), cluster_id)
    changed = await owners.update_project(call.context, call.caller, call.path["id"], given, call.request_id)
    return await _show(call, changed)


async def delete_project(call: Call) -> Response:
    check_cluster(call)
    project = _load(call)
    await removal.delete_project(call.context, call.caller, project.id, call.request_id)
    return await _show(call, project)


async def get_departments(call: Call) -> Response:
    context = call.context.for_cluster(check_cluster(call))
    usages = await inventory.load_usage(context)
    cluster, unit = context.directory.cluster, _unit(call)
    by_department: dict[str, list[DeprecatedProject]] = {}
    for project in inventory.find_projects(context, call.caller, _ALL, usages).items:
        view = bodies.render_project(project, cluster, usages, unit)
        by_department.setdefault(project.department_id, []).append(view)
    departments = inventory.find_departments(context, call.caller, _ALL, usages).items
    return as_json(
        [bodies.render_department(each, cluster, by_department.get(each.id, []), unit) for each in departments]
    )


async def refuse_department_admins(call: Call) -> Response:
    check_cluster(call)
    raise Refused(
        "Administrators of a department are set by access rules: send POST /api/v1/authorization/access-rules with "
        f"the role of the department administrator and the scope of department {call.path['department-id'][:60]}"
    )


def _show_pool(call: Call, pool: NodePool) -> DeprecatedNodePool:
    nodes = sorted(
        node.name for node in inventory.nodes_by_pool(call.context.for_cluster(pool.cluster_id)).get(pool.name, [])
    )
    label = (pool.label_key or POOL_LABEL, pool.label_value or pool.name)
    return bodies.render_node_pool(pool, label, nodes, pool.name == DEFAULT_NODE_POOL)


async def get_node_pools(call: Call) -> Response:
    check_cluster(call)
    pools = inventory.find_node_pools(call.context, call.caller, _ALL).items
    return as_json([_show_pool(call, pool) for pool in pools])


async def create_node_pool(call: Call) -> Response:
    cluster_id = check_cluster(call)
    given = bodies.node_pool_input(await receive_json(call, DeprecatedNodePoolCreation), cluster_id)
    await node_pools.create_node_pool(call.context, call.caller, given, call.request_id)
    return Response(status_code=201)


def _node_pool_updater(shape: type[DeprecatedNodePoolLabels]) -> Handler:
    async def update(call: Call) -> Response:
        cluster_id = check_cluster(call)
        given = bodies.node_pool_input(await receive_json(call, shape), cluster_id)
        await node_pools.update_node_pool(call.context, call.caller, call.path["id"], given, call.request_id)
        return Response(status_code=202)

    return update


async def delete_node_pool(call: Call) -> Response:
    check_cluster(call)
    await node_pools.delete_node_pool(call.context, call.caller, call.path["id"], call.request_id)
    return Response(status_code=202)


_LIST = path_parameters("clusterId")
_ONE = path_parameters("clusterId", "id")
_PROJECTS = f"{BASE}/{{clusterId}}/projects"
_POOLS = f"{BASE}/{{clusterId}}/node-pools"

DEPRECATED_OWNER_OPERATIONS: tuple[Operation, ...] = (
    deprecated(
        method="GET",
        path=_PROJECTS,
        id="getProjects",
        summary="List projects; the answer is an array",
        run=get_projects,
        parameters=(*_LIST, _SHOWN_AS_BEFORE, _MEMORY_UNIT),
        answers={**FAILURES, 200: list[DeprecatedProject]},
    ),
    deprecated(
        method="POST",
        path=_PROJECTS,
        id="createProject",
        summary="Create a project",
        run=create_project,
        parameters=(*_LIST, _SHOWN_AS_BEFORE),
        body=RequestBody(schema=DeprecatedProjectCreation),
        answers={**FAILURES, 200: DeprecatedProject},
    ),
    deprecated(
        method="GET",
        path=f"{_PROJECTS}/{{id}}",
        id="getProject",
        summary="Get a project",
        run=get_project,
        parameters=(*_ONE, _SHOWN_AS_BEFORE),
        answers={**FAILURES, 200: DeprecatedProject},
    ),
    deprecated(
        method="PUT",
        path=f"{_PROJECTS}/{{id}}",
        id="updateProject",
        summary="Change a project",
        run=update_project,
        parameters=(*_ONE, _SHOWN_AS_BEFORE),
        body=RequestBody(schema=DeprecatedProjectUpdate),
        answers={**FAILURES, 200: DeprecatedProject},
    ),
    deprecated(
        method="DELETE",
        path=f"{_PROJECTS}/{{id}}",
        id="deleteProject",
        summary="Delete a project; its workloads are stopped and deleted first",
        run=delete_project,
        parameters=_ONE,
        answers={**FAILURES, 200: DeprecatedProject},
    ),
    deprecated(
        method="GET",
        path=f"{BASE}/{{clusterId}}/departments",
        id="getDepartments",
        summary="List departments with their projects; the answer is an array",
        run=get_departments,
        parameters=(*_LIST, _SHOWN_AS_BEFORE, _MEMORY_UNIT),
        answers={**FAILURES, 200: list[DeprecatedDepartment]},
    ),
    deprecated(
        method="PUT",
        path=f"{BASE}/{{clusterId}}/departments/{{department-id}}/access-control",
        id="updateDepartmentAdmins",
        summary="Refused: administrators of a department are set by access rules",
        run=refuse_department_admins,
        parameters=path_parameters("clusterId", "department-id"),
        body=RequestBody(schema={"type": "object"}),
        answers={**FAILURES, 201: {"type": "object"}},
    ),
    deprecated(
        method="GET",
        path=_POOLS,
        id="getNodePools",
        summary="List node pools; the answer is an array",
        run=get_node_pools,
        parameters=_LIST,
        answers={**FAILURES, 200: list[DeprecatedNodePool]},
    ),
    deprecated(
        method="POST",
        path=_POOLS,
        id="createNodePool",
        summary="Create a node pool",
        run=create_node_pool,
        parameters=_LIST,
        body=RequestBody(schema=DeprecatedNodePoolCreation),
        answers={**FAILURES, 201: None},
    ),
    deprecated(
        method="PUT",
        path=f"{_POOLS}/{{id}}",
        id="updateNodePool",
        summary="Change a node pool",
        run=_node_pool_updater(DeprecatedNodePoolUpdate),
        parameters=_ONE,
        body=RequestBody(schema=DeprecatedNodePoolUpdate),
        answers={**FAILURES, 202: None},
    ),
    deprecated(
        method="PUT",
        path=f"{_POOLS}/{{id}}/labels",
        id="updateNodePoolLabels",
        summary="Change the label of a node pool",
        run=_node_pool_updater(DeprecatedNodePoolLabels),
        parameters=_ONE,
        body=RequestBody(schema=DeprecatedNodePoolLabels),
        answers={**FAILURES, 202: None},
    ),
    deprecated(
        method="DELETE",
        path=f"{_POOLS}/{{id}}",
        id="deleteNodePool",
        summary="Delete a node pool; its nodes move to another pool with their label, or to the default pool",
        run=delete_node_pool,
        parameters=_ONE,
        answers={**FAILURES, 202: None},
    ),
)
