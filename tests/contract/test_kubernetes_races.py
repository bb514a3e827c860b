"""The Kubernetes engine beside watches that are behind and people who remove things: what it makes, keeps and says."""

import asyncio
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import ApplyOrganization, DeleteWorkload, DesiredOrganization, Retain
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.client.resources import (
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PYTORCH,
    Resource,
)
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, POOL_LABEL
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import RestartPolicy, RestartScope
from fairlead.model.records.organization import NodePool
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.spec.fields import build
from tests import builders
from tests.contract.fake_cluster import NAMESPACE_NAME, Cluster, ClusterHarness, pod, run, the_pods, told
from tests.contract.test_kubernetes_api import scenario

TRAINING, WORKSPACE = KINDS["distributed-training"], KINDS["workspace"]
SUSPEND = DeleteWorkload("w", NAMESPACE_NAME, keeps_claims=True)
#: A group of our own.
GANG = builders.podset(
    role="worker",
    count=2,
    gang=True,
    completions=2,
    backoff_limit=1,
    restart_scope=RestartScope.GROUP,
    naming="{workload}-{role}-{ordinal}",
)


def set_phase(cluster: Cluster, phase: str, **status: Any) -> None:
    for name in cluster.names(POD):
        cluster.change(POD, name, {"spec": {"nodeName": "n1"}, "status": {"phase": phase, **status}})


def attempts(cluster: Cluster) -> list[str]:
    return [body["metadata"]["labels"]["fairlead/attempt"] for body in cluster.all(POD)]


@scenario
async def test_what_is_resumed_is_not_bare_even_before_anything_of_it_is_seen() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: harness.report.run == 1)
        await harness.set_desired(SUSPEND)
        await harness.until(lambda: harness.report.has_no_pods)
        cluster.hold(JOB, POD)
        await harness.set_desired(run(number=2))
        await harness.look()
        assert not harness.report.has_no_pods
        await harness.set_desired(SUSPEND)
        await harness.until(lambda: harness.report.has_no_pods)
        assert not cluster.all(JOB)


@scenario
async def test_what_is_removed_by_hand_while_it_is_being_made_is_made_again() -> None:
    cluster = Cluster()
    ports = {"image": "i", "ports": [{"container": 80, "serviceType": "ClusterIP", "external": 80}]}
    async with ClusterHarness(cluster).open() as harness:
        cluster.gates["/services/"] = asyncio.Event()
        await harness.set_desired(run(*WORKSPACE.podsets(build(WORKSPACE.spec, ports))))
        await harness.until(lambda: harness.report.run == 1)
        [removed] = cluster.all(JOB)
        cluster.drop(JOB, "train")
        await harness.until(lambda: harness.report.run == 0)
        cluster.gates["/services/"].set()
        await harness.until(lambda: harness.report.run == 1)
        [made] = cluster.all(JOB)
        assert made["metadata"]["name"] == "train"
        assert made["metadata"]["uid"] != removed["metadata"]["uid"]


@scenario
async def test_nothing_is_made_again_beside_a_pod_that_is_not_seen_yet() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: harness.report.run == 1)
        cluster.hold(POD)
        cluster.put(POD, pod(cluster.all(JOB)[0], "old"))
        cluster.drop(JOB, "train")
        await harness.until(lambda: harness.report.retrying_because)
        await harness.settle()
        assert not cluster.all(JOB)
        cluster.drop(POD, "old")
        await harness.until(lambda: cluster.all(JOB))


@scenario
async def test_an_eviction_that_is_over_before_anybody_looks_is_reported() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: harness.report.run == 1)
        for name in ("evicted", "deleted"):
            cluster.put(POD, pod(cluster.all(JOB)[0], name))
        await harness.until(lambda: len(harness.report.pods) == 2)
        uid = the_pods(cluster)["evicted"]
        cluster.hold(POD)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "made room"}
        cluster.change(POD, "evicted", {"status": {"conditions": [condition]}})
        for name in ("evicted", "deleted"):
            cluster.drop(POD, name)
        cluster.release(POD)
        await harness.until(lambda: not harness.report.pods)
        [evicted] = harness.report.evicted
        assert (evicted.id, evicted.phase, evicted.eviction) == (uid, PodPhase.STOPPED, "made room")
        await harness.set_desired(SUSPEND)
        await harness.until(lambda: harness.report.has_no_pods)
        assert not harness.report.evicted


@scenario
async def test_a_namespace_that_is_removed_by_hand_is_made_again_with_what_runs_in_it() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: harness.report.run == 1)
        before = cluster.all(NAMESPACE)[0]
        cluster.drop(JOB, "train")
        cluster.drop(NAMESPACE, NAMESPACE_NAME)
        await harness.until(lambda: harness.report.run == 1 and cluster.all(JOB))
        assert f'namespaces "{NAMESPACE_NAME}" not found' in " ".join(
            report.retrying_because for report in harness.reports
        )
        [after] = cluster.all(NAMESPACE)
        assert after["metadata"]["labels"] == before["metadata"]["labels"]


OPERATED = TRAINING.podsets(
    build(TRAINING.spec, {"image": "i", "distributedFramework": "PyTorch", "numWorkers": 1, "backoffLimit": 0})
)
TAKEN = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def make_pods(cluster: Cluster) -> None:
    """As the operator does."""
    [job] = cluster.all(PYTORCH)
    for type, replicas in job["spec"]["pytorchReplicaSpecs"].items():
        made = pod(job | {"spec": replicas}, f"train-{type.lower()}-0")
        cluster.put(POD, made)


def fail(cluster: Cluster) -> None:
    failed = {"type": "Failed", "status": "True", "reason": "PodFailed", "message": "a Worker failed"}
    cluster.change(PYTORCH, "train", {"status": {"conditions": [failed]}})


async def start_operated(harness: ClusterHarness) -> None:
    """A job of an operator, and its two pods."""
    await harness.set_desired(run(*OPERATED))
    await harness.until(lambda: harness.cluster.all(PYTORCH))
    make_pods(harness.cluster)
    await harness.until(lambda: len(harness.report.pods) == 2)


def begun(cluster: Cluster) -> list[dict[str, str]]:
    """With what the next attempt is to begin."""
    return [body["data"] for body in cluster.all(CONFIG_MAP) if body["metadata"]["name"] == "train-attempts"]


@scenario
async def test_a_job_whose_failure_is_seen_before_its_preemption_begins_again() -> None:
    cluster = Cluster(PYTORCH)
    async with ClusterHarness(cluster).open() as harness:
        await start_operated(harness)
        cluster.hold(POD)
        cluster.change(POD, "train-worker-0", {"status": {"phase": "Failed", "conditions": [TAKEN]}})
        fail(cluster)
        await harness.settle()
        assert (harness.report.ended, begun(cluster)) == (None, [])
        cluster.release(POD)
        await harness.until(lambda: begun(cluster))
        assert begun(cluster) == [{"attempt": "1", "failures": "0"}]
        # Its removal is not seen yet, and its pods go one by one.
        cluster.hold(PYTORCH)
        for name in cluster.names(POD):
            cluster.drop(POD, name)
            await harness.settle()
        assert begun(cluster) == [{"attempt": "1", "failures": "0"}]


@scenario
async def test_an_end_does_not_wait_for_ever_for_a_watch_that_brings_nothing() -> None:
    cluster = Cluster(PYTORCH)
    async with ClusterHarness(cluster).open() as harness:
        harness.engine._cache.patience = 0.2
        await harness.set_desired(run(*OPERATED))
        await harness.until(lambda: cluster.all(PYTORCH))
        cluster.hold(POD)
        make_pods(cluster)
        fail(cluster)
        await harness.until(lambda: harness.report.ended is Phase.FAILED)


@scenario
async def test_a_job_that_failed_by_itself_has_failed_when_its_pods_are_all_seen() -> None:
    cluster = Cluster(PYTORCH)
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(*OPERATED))
        await harness.until(lambda: cluster.all(PYTORCH))
        make_pods(cluster)
        cluster.change(POD, "train-worker-0", {"status": {"phase": "Failed"}})
        fail(cluster)
        await harness.until(lambda: harness.report.ended is Phase.FAILED)


@scenario
async def test_a_group_that_has_ended_well_is_not_run_again_when_its_pods_are_gone() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(cluster.all(POD)) == 2)
        set_phase(cluster, "Succeeded")
        await harness.until(lambda: harness.report.ended is Phase.COMPLETED)
        # As the garbage collector does when their node is no more.
        for name in cluster.names(POD):
            cluster.drop(POD, name)
        await harness.until(lambda: not harness.report.pods)
        await harness.settle()
        assert not cluster.all(POD)
    async with ClusterHarness(cluster).open() as later:
        await later.set_desired(run(GANG))
        await later.until(lambda: later.report.ended is Phase.COMPLETED)
        await later.settle()
        assert not cluster.all(POD)


@scenario
async def test_a_group_of_an_earlier_run_says_nothing_of_this_one() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(cluster.all(POD)) == 2)
        cluster.change(POD_GROUP, "train", {"metadata": {"annotations": {"fairlead/failures": "1"}}})
        await harness.until(lambda: attempts(cluster) == ["1", "1"])
        cluster.hold(POD_GROUP)
        await harness.set_desired(SUSPEND)
        await harness.until(lambda: harness.report.has_no_pods)
        await harness.set_desired(run(GANG, number=2))
        await harness.settle()
        assert not cluster.all(POD)
        cluster.release(POD_GROUP)
        await harness.until(lambda: attempts(cluster) == ["0", "0"])


@scenario
async def test_pods_that_the_watch_does_not_show_yet_are_not_created_again() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        cluster.hold(POD)
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(cluster.all(POD)) == GANG.count)
        cluster.change(POD_GROUP, "train", {"status": {"phase": "Pending"}})
        await harness.settle()
        cluster.release(POD)
        set_phase(cluster, "Running")
        await harness.until(lambda: len(harness.report.pods) == GANG.count)
        assert len([line for line in cluster.asked if line.startswith("POST") and line.endswith("/pods")]) == GANG.count


@scenario
async def test_a_group_that_is_removed_by_hand_is_made_again_with_its_failures_around_its_pods() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(GANG))
        await harness.until(lambda: len(cluster.all(POD)) == 2)
        cluster.change(POD_GROUP, "train", {"metadata": {"annotations": {"fairlead/failures": "1"}}})
        await harness.until(lambda: attempts(cluster) == ["1", "1"])
        set_phase(cluster, "Running")
        before = the_pods(cluster)
        cluster.drop(POD_GROUP, "train")
        await harness.until(lambda: any("fairlead/failures" in one for one in notes(cluster)))
        await harness.settle()
        assert (the_pods(cluster), notes(cluster)[0]["fairlead/failures"]) == (before, "1")


def notes(cluster: Cluster) -> list[dict[str, str]]:
    return [body["metadata"].get("annotations", {}) for body in cluster.all(POD_GROUP)]


@scenario
async def test_a_group_whose_pod_got_its_place_unseen_stays_in_its_pool() -> None:
    cluster = Cluster()
    pools = ("default", "h100")
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(node_pools=pools))
        await harness.until(lambda: cluster.all(JOB))
        waiting = pod(cluster.all(JOB)[0], "waiting", "Pending")
        waiting["metadata"]["annotations"] = {"pod-group-name": "pg"}
        waiting["spec"]["nodeName"] = ""
        cluster.put(POD, waiting)
        await harness.until(lambda: harness.report.pods)
        cluster.hold(POD)
        cluster.change(POD, "waiting", {"spec": {"nodeName": "n1"}})
        marks = {"fairlead/workload-id": "w"}
        refusal = {"type": "UnschedulableOnNodePool", "status": "True", "nodePool": "default", "transitionID": "1"}
        metadata = {"name": "pg", "namespace": NAMESPACE_NAME, "labels": marks}
        cluster.put(POD_GROUP, {"metadata": metadata, "status": {"schedulingConditions": [refusal]}})
        await harness.settle()
        assert f"GET /api/v1/namespaces/{NAMESPACE_NAME}/pods" in cluster.asked
        assert cluster.all(POD_GROUP)[0]["metadata"]["labels"] == marks
        # Lost again, it is moved.
        cluster.change(POD, "waiting", {"spec": {"nodeName": ""}})
        cluster.release(POD)
        await harness.until(lambda: cluster.all(POD_GROUP)[0]["metadata"]["labels"] != marks)


@scenario
async def test_what_an_earlier_run_suffered_is_not_this_ones() -> None:
    """A pod of it may turn up late."""
    cluster = Cluster(PYTORCH)
    async with ClusterHarness(cluster).open() as harness:
        await start_operated(harness)
        cluster.hold(POD)
        cluster.change(POD, "train-worker-0", {"status": {"phase": "Failed", "conditions": [TAKEN]}})
        await harness.set_desired(SUSPEND)
        await harness.until(lambda: harness.report.has_no_pods)
        await harness.set_desired(run(*OPERATED, number=2))
        await harness.until(lambda: cluster.all(PYTORCH))
        cluster.release(POD)
        make_pods(cluster)
        await harness.until(lambda: len(harness.report.pods) == 2)
        fail(cluster)
        await harness.until(lambda: harness.report.ended is Phase.FAILED)


@scenario
async def test_an_unreachable_api_server_is_reported_while_a_request_waits() -> None:
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        cluster.gates["/jobs/"] = asyncio.Event()
        await harness.set_desired(run())
        cluster.unreachable_reason = "the API server does not answer"
        cluster.notify_away()
        await harness.look()
        assert harness.report.retrying_because == "Waiting for the cluster: the API server does not answer"
        cluster.unreachable_reason = ""
        cluster.gates["/jobs/"].set()
        await harness.until(lambda: harness.report.run == 1 and not harness.report.retrying_because)


@scenario
async def test_an_operators_own_use_of_kais_label_keeps_it_from_no_other_pool() -> None:
    cluster = Cluster()
    pools = [
        NodePool(
            id=name, version=1, name=name, cluster_id="c", created_at=0, updated_at=0, label_key=key, label_value=name
        )
        for name, key in (("a100", POOL_LABEL), ("h100", "gpu"))
    ]
    labels = {"n1": {POOL_LABEL: "a100"}, "n2": {"gpu": "h100"}}
    for name, pairs in labels.items():
        cluster.put(NODE, {"metadata": {"name": name, "labels": pairs}})
    organization = OrganizationSync(cluster, lambda: "c", InstalledKinds())
    nodes = [msgspec.convert(body, objects.Node) for body in cluster.all(NODE)]
    await organization.label_nodes(nodes, DesiredOrganization(departments=(), projects=(), node_pools=tuple(pools)))
    found = {body["metadata"]["name"]: body["metadata"]["labels"][POOL_LABEL] for body in cluster.all(NODE)}
    assert found == {"n1": "a100", "n2": "h100"}
    gone = DesiredOrganization(departments=(), projects=(), node_pools=(pools[0],))
    await organization.label_nodes([msgspec.convert(body, objects.Node) for body in cluster.all(NODE)], gone)
    left = {body["metadata"]["name"]: body["metadata"]["labels"].get(POOL_LABEL) for body in cluster.all(NODE)}
    assert left == {"n1": "a100", "n2": None}


@scenario
async def test_a_project_that_is_new_takes_no_namespace_of_another_fairlead_not_even_at_first() -> None:
    cluster = Cluster()
    cluster.put(NAMESPACE, {"metadata": {"name": "runai-team-b", "labels": {CLUSTER_LABEL: "other"}}})
    async with ClusterHarness(cluster).open() as harness:
        known = told()
        [project] = known.projects
        added = msgspec.structs.replace(project, id="8", name="team-b")
        # The round before has not ended when the project is told.
        gate = cluster.gates["/priorityclasses"] = asyncio.Event()
        await harness.engine.apply([ApplyOrganization(known)])
        await harness.engine.apply([ApplyOrganization(msgspec.structs.replace(known, projects=(project, added)))])
        await harness.set_desired(msgspec.structs.replace(run(), project="team-b", namespace="runai-team-b"))
        await harness.settle()
        gate.set()
        await harness.until(lambda: "belongs to another Fairlead installation" in harness.report.retrying_because)
        assert not cluster.all(JOB)
        # The project says so too.
        assert "belongs to another Fairlead installation, other" in harness.engine.find_namespace_problem(
            "runai-team-b"
        )
        assert harness.engine.find_namespace_problem(project.namespace) == ""


@scenario
async def test_a_job_that_counts_pods_lost_with_their_nodes_is_made_again() -> None:
    """With this restart policy Kubernetes counts them, and deletes them as soon as they are counted."""
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run(builders.podset(backoff_limit=1, restart=RestartPolicy.ON_FAILURE)))
        await harness.until(lambda: cluster.all(JOB))
        [first] = cluster.all(JOB)
        told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        for name, conditions in (("train-a", [told]), ("train-b", [])):
            body = pod(first, name, "Failed", conditions=conditions)
            body["spec"]["restartPolicy"] = "OnFailure"
            cluster.put(POD, body)
            await harness.until(lambda: cluster.names(POD)[-1] in {one.name for one in harness.report.pods})
            cluster.drop(POD, name)
        over = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        cluster.change(JOB, "train", {"status": {"failed": 2, "conditions": [over]}})
        await harness.until(
            lambda: cluster.all(JOB) and cluster.all(JOB)[0]["metadata"]["uid"] != first["metadata"]["uid"]
        )
        [second] = cluster.all(JOB)
        assert second["spec"]["backoffLimit"] == 0
        await harness.settle()
        assert harness.report.failed == {"main": 1}
        assert all(report.ended is None for report in harness.reports)
        # The next failure is one too many, whatever was lost before.
        cluster.change(JOB, "train", {"status": {"failed": 1, "conditions": [over]}})
        await harness.until(lambda: harness.report.ended is Phase.FAILED)
        assert harness.report.failed == {"main": 2}


class Refusing(Cluster):
    """Answers the first deletion with a conflict, as a proxy or an overloaded server may."""

    refusals = 1

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        if method == "DELETE" and self.refusals:
            self.refusals -= 1
            raise ApiError(409, "Conflict", "try again")
        return await super().request(method, path, body, **asked)


@scenario
async def test_a_deletion_that_had_no_effect_is_asked_for_again() -> None:
    async with ClusterHarness(Refusing()).open() as harness:
        await harness.engine.apply([Retain(workload_ids=frozenset(), claim_ids=frozenset())])
        await harness.settle()
        await harness.set_desired(run())
        await harness.until(lambda: harness.cluster.all(JOB))
        await harness.settle()
        await harness.set_desired(DeleteWorkload("w", NAMESPACE_NAME))
        await harness.until(lambda: harness.report.is_removed)
        assert harness.cluster.all(JOB) == []


JOBS = Resource("batch.volcano.sh/v1alpha1", "Job", "jobs")
MANIFEST = msgspec.json.encode(
    {
        "apiVersion": JOBS.api,
        "kind": JOBS.kind,
        "metadata": {"name": "any"},
        "spec": {"tasks": [{"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]},
    }
)


class Forbidding(Cluster):
    """Does not let our account watch or write the kind until it is granted."""

    def __init__(self, verb: str) -> None:
        super().__init__(JOBS)
        self.verb = verb
        self.is_granted = False

    async def request(self, method: str, path: str, *arguments: Any, **members: Any) -> bytes:
        if not self.is_granted and method == self.verb and path.startswith(f"{JOBS.base}/"):
            raise ApiError(403, "Forbidden", "jobs.batch.volcano.sh is forbidden")
        return await super().request(method, path, *arguments, **members)


@pytest.mark.parametrize(("verb", "want"), [("GET", "may not list"), ("PATCH", "may not create")])
def test_a_missing_right_for_a_users_kind_is_named_and_can_be_granted(verb: str, want: str) -> None:
    @scenario
    async def test() -> None:
        cluster = Forbidding(verb)
        async with ClusterHarness(cluster).open() as harness:
            desired = run(manifest=MANIFEST)
            await harness.set_desired(desired)
            await harness.until(lambda: want in harness.report.retrying_because)
            assert "jobs of batch.volcano.sh" in harness.report.retrying_because
            assert "workloadKinds" in harness.report.retrying_because
            cluster.is_granted = True
            await harness.until(lambda: cluster.all(JOBS))
            # It is not confused with Kubernetes' own Job.
            assert not cluster.all(JOB)
            await harness.set_desired(DeleteWorkload("w", NAMESPACE_NAME, manifest=MANIFEST))
            await harness.until(lambda: not cluster.all(JOBS))

    test()
