"""Creating, changing and deleting departments, projects and node pools: each parses, calls one use case and formats."""

from typing import Any

from starlette.responses import Response

from fairlead.api.http.body import read_body, receive_json
from fairlead.api.http.errors import ACCEPTED, Error
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
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
from fairlead.api.organization.nodes import NodePoolView, render_node_pool
from fairlead.api.organization.reads import (
    DepartmentView,
    PoolQuotaView,
    ProjectView,
    render_department,
    render_pool_quota,
    render_project,
)
from fairlead.control.organization import inventory, node_pools, owners, removal


async def create_department(call: Call) -> Response:
    input = owner_input(await receive_json(call, DepartmentCreation))
    made = await owners.create_department(call.context, call.caller, input, call.request_id)
    return as_json(render_department(made, {}), 201)


async def update_department(call: Call) -> Response:
    input = owner_input(await receive_json(call, OwnerUpdate))
    id = call.path["departmentId"]
    changed = await owners.update_department(call.context, call.caller, id, input, call.request_id)
    return as_json(render_department(changed, await inventory.load_usage(call.context)))


async def put_department_resources(call: Call) -> Response:
    return await _department_resources(call, is_merge=False)


async def patch_department_resources(call: Call) -> Response:
    return await _department_resources(call, is_merge=True)


async def _department_resources(call: Call, *, is_merge: bool) -> Response:
    input = resources_input(read_resources(await read_body(call.request, "application/json")), is_merge=is_merge)
    id = call.path["departmentId"]
    changed = await owners.update_department(call.context, call.caller, id, input, call.request_id)
    return as_json([render_pool_quota(quota) for quota in changed.resources])


async def delete_department(call: Call) -> Response:
    id = call.path["departmentId"]
    await removal.delete_department(call.context, call.caller, id, call.request_id)
    # The contract has no 202 here: what still runs in it ends behind this answer.
    return Response(status_code=204)


async def create_project(call: Call) -> Response:
    input = owner_input(await receive_json(call, ProjectCreation))
    made = await owners.create_project(call.context, call.caller, input, call.request_id)
    return as_json(render_project(made, call.context.directory.departments.get(made.department_id), {}), 201)


async def update_project(call: Call) -> Response:
    input = owner_input(await receive_json(call, ProjectUpdate))
    changed = await owners.update_project(call.context, call.caller, call.path["projectId"], input, call.request_id)
    usages = await inventory.load_usage(call.context)
    return as_json(render_project(changed, call.context.directory.departments.get(changed.department_id), usages))


async def put_project_resources(call: Call) -> Response:
    return await _project_resources(call, is_merge=False)


async def patch_project_resources(call: Call) -> Response:
    return await _project_resources(call, is_merge=True)


async def _project_resources(call: Call, *, is_merge: bool) -> Response:
    input = resources_input(read_resources(await read_body(call.request, "application/json")), is_merge=is_merge)
    changed = await owners.update_project(call.context, call.caller, call.path["projectId"], input, call.request_id)
    return as_json([render_pool_quota(quota) for quota in changed.resources])


async def delete_project(call: Call) -> Response:
    id = call.path["projectId"]
    is_gone = await removal.delete_project(call.context, call.caller, id, call.request_id)
    return Response(status_code=204) if is_gone else as_json(Accepted(202, ACCEPTED), 202)


async def create_node_pool(call: Call) -> Response:
    input = node_pool_input(await receive_json(call, NodePoolCreation))
    made = await node_pools.create_node_pool(call.context, call.caller, input, call.request_id)
    return as_json(render_node_pool(call, made), 201)


async def update_node_pool(call: Call) -> Response:
    input = node_pool_input(await receive_json(call, NodePoolUpdate))
    id = call.path["nodepoolId"]
    changed = await node_pools.update_node_pool(call.context, call.caller, id, input, call.request_id)
    return as_json(render_node_pool(call, changed))


async def delete_node_pool(call: Call) -> Response:
    await node_pools.delete_node_pool(call.context, call.caller, call.path["nodepoolId"], call.request_id)
    return Response(status_code=204)


_FAILURES = {400: Error, 401: Error, 403: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error}
_DEPARTMENT = "/org-unit/departments"
_PROJECT = "/org-unit/projects"
_POOL = "/node-pools"


def _id(name: str) -> tuple[Parameter, ...]:
    return (Parameter(name=name, place="path", schema={"type": "string"}),)


def _change(method: str, path: str, id: str, summary: str, run: Any, **members: Any) -> Operation:
    members.setdefault("tag", "Nodes" if path.startswith(_POOL) else "Organization")
    return Operation(method=method, path=f"/api/v1{path}", id=id, summary=summary, run=run, **members)


def _resources(word: str, runs: dict[str, Any]) -> list[Operation]:
    words = {"PUT": "Set the quotas of a {}; a pool that is left out is open for borrowing only"}
    words["PATCH"] = "Change some quotas of a {}"
    return [
        _change(
            method,
            f"/org-unit/{word}s/{{{word}Id}}/resources",
            f"{'update' if method == 'PUT' else 'patch'}_{word}_resources",
            words[method].format(word),
            run,
            parameters=_id(f"{word}Id"),
            body=RequestBody(schema=list[PoolQuotaBody]),
            answers={200: list[PoolQuotaView], **_ONE, 500: Error},
        )
        for method, run in runs.items()
    ]


ORGANIZATION_CHANGES: tuple[Operation, ...] = (
    _change(
        "POST",
        _DEPARTMENT,
        "create_department",
        "Create a department",
        create_department,
        body=RequestBody(schema=DepartmentCreation),
        answers={201: DepartmentView, **_FAILURES, 409: Error},
    ),
    _change(
        "PUT",
        f"{_DEPARTMENT}/{{departmentId}}",
        "update_department",
        "Change a department",
        update_department,
        parameters=_id("departmentId"),
        body=RequestBody(schema=OwnerUpdate),
        answers={200: DepartmentView, **_ONE},
    ),
    _change(
        "DELETE",
        f"{_DEPARTMENT}/{{departmentId}}",
        "delete_department",
        "Delete a department with its projects and their workloads",
        delete_department,
        parameters=_id("departmentId"),
        answers={204: None, **_ONE},
    ),
    *_resources("department", {"PUT": put_department_resources, "PATCH": patch_department_resources}),
    _change(
        "POST",
        _PROJECT,
        "create_project",
        "Create a project",
        create_project,
        body=RequestBody(schema=ProjectCreation),
        answers={201: ProjectView, **_FAILURES, 409: Error},
    ),
    _change(
        "PUT",
        f"{_PROJECT}/{{projectId}}",
        "update_project",
        "Change a project",
        update_project,
        parameters=_id("projectId"),
        body=RequestBody(schema=ProjectUpdate),
        answers={200: ProjectView, **_ONE},
    ),
    _change(
        "DELETE",
        f"{_PROJECT}/{{projectId}}",
        "delete_project",
        "Delete a project; its workloads are stopped and deleted first",
        delete_project,
        parameters=_id("projectId"),
        answers={202: Accepted, 204: None, **_ONE, 500: Error},
    ),
    *_resources("project", {"PUT": put_project_resources, "PATCH": patch_project_resources}),
    _change(
        "POST",
        _POOL,
        "create_nodepool",
        "Create a node pool",
        create_node_pool,
        body=RequestBody(schema=NodePoolCreation),
        answers={201: NodePoolView, **_FAILURES},
    ),
    _change(
        "PUT",
        f"{_POOL}/{{nodepoolId}}",
        "update_nodepool",
        "Change a node pool",
        update_node_pool,
        parameters=_id("nodepoolId"),
        body=RequestBody(schema=NodePoolUpdate),
        answers={200: NodePoolView, **_ONE, 500: Error},
    ),
    _change(
        "PATCH",
        f"{_POOL}/{{nodepoolId}}",
        "patch_nodepool",
        "Change some of a node pool",
        update_node_pool,
        parameters=_id("nodepoolId"),
        body=RequestBody(schema=NodePoolUpdate),
        answers={200: NodePoolView, **_ONE, 500: Error},
    ),
    _change(
        "DELETE",
        f"{_POOL}/{{nodepoolId}}",
        "delete_nodepool",
        "Delete a node pool; its nodes go to another pool that names their label, or to the default one",
        delete_node_pool,
        parameters=_id("nodepoolId"),
        answers={202: Accepted, 204: None, **_ONE, 500: Error},
    ),
)
