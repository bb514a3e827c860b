"""The Kubernetes engine deletes a workload: with few requests, and it is gone only when the API server says so."""

from typing import Any

import msgspec

from fairlead.engines.base import DeleteWorkload, Retain
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.resources import JOB, POD, POD_GROUP, SERVICE
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import build
from tests.contract.fake_cluster import NAMESPACE_NAME, Cluster, ClusterHarness, run
from tests.contract.test_kubernetes_api import scenario
from tests.contract.test_kubernetes_races import GANG

WORKSPACE = KINDS["workspace"]
SERVING = WORKSPACE.podsets(
    build(WORKSPACE.spec, {"image": "i", "ports": [{"container": 80, "serviceType": "ClusterIP", "external": 80}]})
)
DELETE = DeleteWorkload("w", NAMESPACE_NAME)
PODS, SERVICES = POD.path(NAMESPACE_NAME), SERVICE.path(NAMESPACE_NAME)


async def settle_as_new(harness: ClusterHarness) -> None:
    """No workload is from an earlier server."""
    await harness.engine.apply([Retain(workload_ids=frozenset(), claim_ids=frozenset())])
    await harness.settle()


async def delete(harness: ClusterHarness) -> list[str]:
    """The requests until it is gone."""
    await harness.settle()
    harness.cluster.asked.clear()
    await harness.set_desired(DELETE)
    await harness.until(lambda: harness.report.is_removed)
    return harness.cluster.asked


@scenario
async def test_the_pods_of_a_group_are_deleted_in_one_request_and_not_listed() -> None:
    async with ClusterHarness(Cluster()).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(harness.cluster.all(POD)) == 2)
        asked = await delete(harness)
        assert [each for each in asked if PODS in each] == [f"DELETE {PODS}"]
        assert [harness.cluster.all(kind) for kind in (POD, POD_GROUP, SERVICE)] == [[], [], []]


class Earlier(Cluster):
    """Has a role of an earlier version, without the verb for several objects."""

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        if (method, path) == ("DELETE", PODS):
            self.asked.append(f"{method} {path}")
            raise ApiError(403, "Forbidden", "cannot deletecollection")
        return await super().request(method, path, body, **asked)


@scenario
async def test_without_the_right_to_that_they_are_deleted_one_by_one() -> None:
    async with ClusterHarness(Earlier()).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(harness.cluster.all(POD)) == 2)
        asked = await delete(harness)
        assert len([each for each in asked if each.startswith(f"DELETE {PODS}/")]) == 2
        assert harness.cluster.all(POD) == []


@scenario
async def test_a_pod_that_the_watch_has_not_shown_is_asked_for() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(cluster.all(POD)) == 2)
        await harness.settle()
        cluster.hold(POD)
        first = cluster.all(POD)[0]
        metadata = {name: value for name, value in first["metadata"].items() if name not in ("uid", "resourceVersion")}
        cluster.put(POD, {**first, "metadata": {**metadata, "name": "unseen"}})
        cluster.asked.clear()
        await harness.set_desired(DELETE)
        await harness.until(lambda: f"DELETE {PODS}" in cluster.asked)
        cluster.release(POD)
        await harness.until(lambda: harness.report.is_removed)
        assert f"GET {PODS}" in cluster.asked


@scenario
async def test_a_service_that_this_server_wrote_is_deleted_without_a_list() -> None:
    async with ClusterHarness(Cluster()).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(*SERVING))
        await harness.until(lambda: harness.cluster.all(SERVICE))
        asked = await delete(harness)
        assert [each for each in asked if SERVICES in each] == [f"DELETE {SERVICES}/train-clusterip"]
        assert [harness.cluster.all(kind) for kind in (JOB, SERVICE)] == [[], []]


class Holding(Cluster):
    """Somebody's finalizer keeps Services."""

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        if method == "DELETE" and path.startswith(f"{SERVICES}/"):
            self.asked.append(f"{method} {path}")
            name = path.rpartition("/")[2]
            held = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["load-balancer"]}
            return msgspec.json.encode(self.change(SERVICE, name, {"metadata": held}))
        return await super().request(method, path, body, **asked)


class Conflicting(Cluster):
    """Refuses the first deletion of a Service for a reason that passes."""

    has_refused = False

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        if method == "DELETE" and path.startswith(f"{SERVICES}/") and not self.has_refused:
            self.has_refused = True
            raise ApiError(409, "Conflict", "try again")
        return await super().request(method, path, body, **asked)


@scenario
async def test_a_service_that_is_held_is_waited_for() -> None:
    async with ClusterHarness(Holding()).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(*SERVING))
        await harness.until(lambda: harness.cluster.all(SERVICE))
        await harness.settle()
        await harness.set_desired(DELETE)
        await harness.until(lambda: f"GET {SERVICES}" in harness.cluster.asked)
        await harness.settle()
        assert not harness.report.is_removed
        harness.cluster.drop(SERVICE, "train-clusterip")
        await harness.until(lambda: harness.report.is_removed)


@scenario
async def test_a_refused_deletion_is_asked_for_again() -> None:
    async with ClusterHarness(Conflicting()).open() as harness:
        await settle_as_new(harness)
        await harness.set_desired(run(*SERVING))
        await harness.until(lambda: harness.cluster.all(SERVICE))
        await delete(harness)
        assert harness.cluster.all(SERVICE) == []
