"""Departments, projects and node pools with NVIDIA's own client for Run:ai 2.24, unchanged."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.server import Server
from tests.e2e.test_runapy import connect

with warnings.catch_warnings():
    # Its sources have escape sequences that Python warns of when it compiles them for the first time.
    warnings.simplefilter("ignore")
    from runai import models
    from runai.exceptions import BadRequestException, ConflictException, NotFoundException
    from runai.runai_client import RunaiClient


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[RunaiClient]:
    with connect(server) as connection:
        yield RunaiClient(connection)


def quota(gpu: float, pool: str = "1") -> Any:
    return models.ResourcesNullable(
        node_pool=models.ResourcesNodePool(id=pool, name="default" if pool == "1" else None),
        gpu=models.NonNullResource(deserved=gpu, over_quota_weight=2),
        cpu=models.Resource(deserved=4000, limit=None),
        memory=models.ResourcesMemory(deserved=16, units="GB"),
    )


def test_a_pool_a_department_and_a_project(client: RunaiClient, server: Server) -> None:
    cluster = server.credentials["clusterId"]
    pool = client.organizations.node_pools.create_nodepool(
        nodepool_create_fields=models.NodepoolCreateFields(
            name="gold", label_key="tier", label_value="gold", cluster_id=cluster
        )
    ).data
    department = client.organizations.departments.create_department(
        department_creation_request=models.DepartmentCreationRequest(
            name="research", cluster_id=cluster, description="", resources=[quota(8), quota(2, pool["id"])]
        )
    ).data
    body = models.ProjectCreationRequest(
        name="vision",
        cluster_id=cluster,
        parent_id=department["id"],
        resources=[quota(4)],
        scheduling_rules=models.SchedulingRules(training_job_time_limit_seconds=600),
    )
    project = client.organizations.projects.create_project(project_creation_request=body).data
    assert project["parentId"] == department["id"]
    assert project["effective"]["schedulingRules"] == {"trainingJobTimeLimitSeconds": 600}
    assert [found["gpu"]["deserved"] for found in project["resources"]] == [4, 0]
    with pytest.raises(ConflictException):
        client.organizations.projects.create_project(project_creation_request=body)
    changed = client.organizations.projects.patch_project_resources(
        project_id=project["id"], resources_nullable=[quota(1, pool["id"])]
    ).data
    assert [found["gpu"]["deserved"] for found in changed] == [4, 1]
    updated = client.organizations.projects.update_project(
        project_id=project["id"],
        project_update_request=models.ProjectUpdateRequest(description="seen", resources=[quota(2)]),
    ).data
    assert (updated["description"], updated["resources"][0]["gpu"]["deserved"]) == ("seen", 2)
    with pytest.raises(BadRequestException):
        client.organizations.node_pools.delete_nodepool(nodepool_id="1")
    client.organizations.departments.delete_department(department_id=department["id"])
    with pytest.raises(NotFoundException):
        client.organizations.projects.get_project(project_id=project["id"])
    client.organizations.node_pools.delete_nodepool(nodepool_id=pool["id"])
