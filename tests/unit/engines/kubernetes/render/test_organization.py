"""Departments, projects and pools as queues and namespaces."""

from typing import Any

import msgspec

from fairlead.engines.base import DesiredOrganization
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.organization import pool_of, render_namespaces, render_queues, render_shards
from fairlead.model.records.organization import Department, NodePool, PoolQuota, Project, Quota

OWNER: dict[str, Any] = {
    "version": 1,
    "cluster_id": "c",
    "created_at": 0,
    "updated_at": 0,
    "created_by": "",
    "updated_by": "",
}


def pool(name: str, **members: Any) -> NodePool:
    return NodePool(id=name, version=1, name=name, cluster_id="c", created_at=0, updated_at=0, **members)


TOLD = DesiredOrganization(
    departments=(Department(id="1", name="science", **OWNER),),
    projects=(
        Project(
            id="7",
            name="team-a",
            department_id="1",
            department_name="science",
            resources=(
                PoolQuota(
                    node_pool_id="1",
                    node_pool_name="default",
                    gpu=Quota(deserved=2.5, limit=4, over_quota_weight=1),
                    memory=Quota(deserved=3_000_000_000),
                    priority="High",
                ),
            ),
            **OWNER,
        ),
    ),
    node_pools=(pool("default"), pool("h100", label_key="gpu", label_value="h100")),
)


def test_a_queue_per_owner_and_pool() -> None:
    queues = {body["metadata"]["name"]: body for body in render_queues(TOLD, "c")}
    assert list(queues) == ["department-science", "department-science-h100", "team-a", "team-a-h100"]
    assert queues["team-a"]["spec"] == {
        "displayName": "team-a",
        "priority": 175,
        "parentQueue": "department-science",
        "resources": {
            "gpu": {"quota": 2.5, "limit": 4.0, "overQuotaWeight": 1},
            "cpu": {"quota": -1, "limit": -1, "overQuotaWeight": 2.0},
            "memory": {"quota": 3000.0, "limit": -1, "overQuotaWeight": 2.0},
        },
    }
    assert queues["team-a-h100"]["metadata"]["labels"]["kai.scheduler/node-pool"] == "h100"
    assert queues["team-a-h100"]["metadata"]["labels"]["runai/node-pool"] == "h100"
    assert not {"kai.scheduler/node-pool", "runai/node-pool"} & queues["team-a"]["metadata"]["labels"].keys()
    assert {body["metadata"]["labels"]["runai/department-name"] for body in queues.values()} == {"science"}


def test_a_queue_without_quotas_has_no_quota_and_no_limit() -> None:
    queues = {body["metadata"]["name"]: body for body in render_queues(TOLD, "c")}
    assert queues["team-a-h100"]["spec"]["resources"]["gpu"] == {"quota": 0.0, "limit": -1, "overQuotaWeight": 2.0}


def test_namespaces() -> None:
    [namespace] = render_namespaces(TOLD.projects, "c")
    assert namespace["metadata"]["name"] == "runai-team-a"
    assert namespace["metadata"]["labels"]["runai/queue"] == "team-a"
    assert namespace["metadata"]["annotations"] == {"runai/enforce-scheduler-name": "true"}
    [free] = render_namespaces([msgspec.structs.replace(TOLD.projects[0], enforce_scheduler=False)], "c")
    assert free["metadata"]["annotations"] == {}


def test_pools_of_nodes() -> None:
    node = objects.Node(metadata=objects.Metadata(name="n", labels={"gpu": "h100"}))
    assert pool_of(node, TOLD.node_pools) == "h100"
    assert pool_of(objects.Node(metadata=objects.Metadata(name="n")), TOLD.node_pools) == ""


def test_a_shard_for_each_pool_but_the_default_one() -> None:
    pools = (pool("default"), pool("h100", placement_gpu="spread", min_guaranteed_runtime_seconds=90))
    [shard] = render_shards(pools, "c")
    assert shard["metadata"]["name"] == "h100"
    assert shard["spec"] == {
        "partitionLabelValue": "h100",
        "placementStrategy": {"gpu": "spread", "cpu": "binpack"},
        "args": {"update-pod-eviction-condition": "true"},
        "minRuntime": {"preemptMinRuntime": "90s", "reclaimMinRuntime": "90s"},
    }
