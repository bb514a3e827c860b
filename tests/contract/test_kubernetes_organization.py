"""Projects and queues in a cluster: what a change of one costs, what is mended, and which rights come back."""

from typing import Any

import msgspec

from fairlead.engines.base import ApplyOrganization, DesiredOrganization
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.resources import CLUSTER_ROLE, JOB, NAMESPACE, QUEUE, ROLE_BINDING
from fairlead.engines.kubernetes.render.labels import PROJECT_ROLE
from tests.contract.fake_cluster import NAMESPACE_NAME, Cluster, ClusterHarness, run, told
from tests.contract.test_kubernetes_api import scenario

MANY = 50


def organization(projects: int, **members: Any) -> DesiredOrganization:
    known = told()
    [first] = known.projects
    more = [msgspec.structs.replace(first, id=str(100 + number), name=f"more-{number}") for number in range(projects)]
    return msgspec.structs.replace(known, projects=(msgspec.structs.replace(first, **members), *more))


def writes(cluster: Cluster) -> list[str]:
    return [asked for asked in cluster.asked if not asked.startswith("GET ")]


async def ask_for(harness: ClusterHarness, desired: DesiredOrganization) -> list[str]:
    """The requests that it takes."""
    harness.cluster.asked.clear()
    await harness.engine.apply([ApplyOrganization(desired)])
    await harness.settle()
    return list(harness.cluster.asked)


@scenario
async def test_a_new_project_costs_its_own_requests_and_no_others() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await ask_for(harness, organization(MANY))
        asked = await ask_for(harness, organization(MANY + 1))
        # Its namespace and its queues in two pools; each is read before it is written.
        assert [one for one in asked if f"more-{MANY}" in one] == [
            f"{method} {path}"
            for path in (
                f"{NAMESPACE.path(name=f'runai-more-{MANY}')}",
                f"{QUEUE.path(name=f'more-{MANY}')}",
                f"{QUEUE.path(name=f'more-{MANY}-h100')}",
            )
            for method in ("GET", "PATCH")
        ]
        assert len(writes(cluster)) == 3
        assert len(asked) < 25


@scenario
async def test_the_next_server_writes_nothing_if_everything_is_there() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open():
        assert writes(cluster)
    cluster.asked.clear()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: cluster.all(JOB))
        assert [one for one in writes(cluster) if "/jobs/" not in one] == []


@scenario
async def test_what_somebody_edited_is_mended_by_the_next_change() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await ask_for(harness, organization(1))
        cluster.change(QUEUE, "team-a", {"spec": {"priority": 7}})
        cluster.change(NAMESPACE, NAMESPACE_NAME, {"metadata": {"labels": {"runai/queue": None}}})
        await ask_for(harness, organization(2))
        [queue] = [body for body in cluster.all(QUEUE) if body["metadata"]["name"] == "team-a"]
        [namespace] = [body for body in cluster.all(NAMESPACE) if body["metadata"]["name"] == NAMESPACE_NAME]
        assert (queue["spec"]["priority"], namespace["metadata"]["labels"]["runai/queue"]) == (100, "team-a")


@scenario
async def test_a_member_that_is_no_longer_wanted_is_taken_out() -> None:
    """The object of before has everything that is wanted now, and more."""
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await ask_for(harness, organization(0, enforce_scheduler=True))
        await ask_for(harness, organization(0, enforce_scheduler=False))
        assert f"PATCH {NAMESPACE.path(name=NAMESPACE_NAME)}" in cluster.asked


@scenario
async def test_a_queue_that_is_not_desired_is_deleted() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await ask_for(harness, organization(1))
        await ask_for(harness, organization(0))
        assert cluster.names(QUEUE) == ["department-science", "department-science-h100", "team-a", "team-a-h100"]


class Confined(Cluster):
    """The account has its rights in a namespace by a binding there."""

    def __init__(self) -> None:
        super().__init__(CLUSTER_ROLE, ROLE_BINDING)
        self.put(CLUSTER_ROLE, {"metadata": {"name": PROJECT_ROLE}})

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        if path.endswith("/selfsubjectreviews"):
            return msgspec.json.encode(
                {"status": {"userInfo": {"username": "system:serviceaccount:fairlead:fairlead"}}}
            )
        if "/jobs/" in path and not self.all(ROLE_BINDING):
            raise ApiError(403, "Forbidden", "jobs.batch is forbidden")
        return await super().request(method, path, body, **asked)


@scenario
async def test_rights_that_somebody_deleted_come_back_when_they_are_needed() -> None:
    cluster = Confined()
    async with ClusterHarness(cluster).open() as harness:
        [binding] = cluster.all(ROLE_BINDING)
        cluster.drop(ROLE_BINDING, binding["metadata"]["name"])
        await harness.set_desired(run())
        await harness.until(lambda: cluster.all(JOB))
        assert len(cluster.all(ROLE_BINDING)) == 1
