"""The Kubernetes engine on a cluster with an autoscaler of nodes: what pods carry, and what is reported."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.base import ApplyOrganization, DesiredOrganization
from fairlead.engines.kubernetes.client.resources import EVENT, JOB, KARPENTER_POOL, NAMESPACE, POD, POD_GROUP
from fairlead.engines.kubernetes.engine import EngineSettings
from fairlead.model.pods.podset import RestartScope
from tests import builders
from tests.contract.fake_cluster import NAMESPACE_NAME, Cluster, ClusterHarness, pod, run, told
from tests.contract.test_kubernetes_api import scenario
from tests.memory_api.objects import Body

POOL = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}]
GANG = builders.podset(
    role="worker",
    count=2,
    gang=True,
    completions=2,
    restart_scope=RestartScope.GROUP,
    naming="{workload}-{role}-{ordinal}",
)


def organization() -> DesiredOrganization:
    """With a pool whose nodes have a label."""
    given = told()
    default, pool = given.node_pools
    labelled = msgspec.structs.replace(pool, label_key="gpu", label_value="h100")
    return msgspec.structs.replace(given, node_pools=(default, labelled))


def event(namespace: str, name: str, uid: str = "") -> Body:
    told = {"kind": "Pod", "namespace": namespace, "name": name, "uid": uid}
    return {
        "metadata": {"name": f"{name}.1", "namespace": namespace},
        "involvedObject": told,
        "reason": "TriggeredScaleUp",
        "message": "pod triggered scale-up: [{gpu 0->1 (max: 4)}]",
        "lastTimestamp": "2026-01-01T00:00:09Z",
    }


def waiting(job: Body) -> Body:
    body = pod(job, "train-x", "Pending")
    del body["spec"]["nodeName"]
    body["metadata"]["annotations"] = {"pod-group-name": "g"}
    return body


def group() -> Body:
    """As KAI's pod grouper and scheduler write it."""
    labels = {"fairlead/workload-id": "w", "fairlead/cluster": "c"}
    refusal = {"type": "UnschedulableOnNodePool", "status": "True", "nodePool": "default", "transitionID": "1"}
    reasons = [{"reason": "PodSchedulingErrors", "message": "no node has 8 GPUs"}]
    return {
        "metadata": {"name": "g", "namespace": NAMESPACE_NAME, "labels": labels},
        "status": {"schedulingConditions": [{**refusal, "reasons": reasons}]},
    }


def terms(template: Body) -> Any:
    affinity = template["spec"].get("affinity", {}).get("nodeAffinity", {})
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")


@pytest.mark.parametrize("is_stand_in", [False, True], ids=["its own pod", "pod of KAI's node scale adjuster"])
def test_a_scale_up_is_what_a_workload_waits_for(is_stand_in: bool) -> None:
    async def scale_up() -> None:
        cluster = Cluster()
        async with ClusterHarness(cluster).open() as harness:
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            made = cluster.put(POD, waiting(cluster.all(JOB)[0]))
            cluster.put(POD_GROUP, group())
            await harness.until(lambda: harness.report.waits)
            assert [one.message for one in harness.report.waits] == ["no node has 8 GPUs"]
            assert not harness.engine.autoscaling.may_add_nodes()
            if is_stand_in:
                cluster.put(NAMESPACE, {"metadata": {"name": "kai-scale-adjust"}})
                cluster.put(EVENT, event("kai-scale-adjust", f"{NAMESPACE_NAME}-train-x", "another"))
            else:
                cluster.put(EVENT, event(NAMESPACE_NAME, "train-x", made["metadata"]["uid"]))
            await harness.until(lambda: len(harness.report.waits) == 2)
            assert harness.report.waits[0].message.startswith(
                "Waiting for a new node: the Cluster Autoscaler is adding"
            )
            assert harness.engine.autoscaling.may_add_nodes()
            cluster.change(POD, "train-x", {"spec": {"nodeName": "n9"}})
            await harness.until(lambda: not harness.report.waits)

    scenario(scale_up)()


@pytest.mark.parametrize("setting", ["auto", "on", "off"])
def test_pods_ask_for_nodes_of_their_pool_if_nodes_are_added(setting: str) -> None:
    async def ask_for_nodes() -> None:
        cluster = Cluster(*((KARPENTER_POOL,) if setting != "on" else ()))
        async with ClusterHarness(cluster, EngineSettings(node_autoscaler=setting)).open() as harness:
            await harness.engine.apply([ApplyOrganization(organization())])
            await harness.set_desired(run(node_pools=("h100",)))
            await harness.until(lambda: cluster.all(JOB))
            assert terms(cluster.all(JOB)[0]["spec"]["template"]) == (None if setting == "off" else POOL)
            assert harness.engine.autoscaling.may_add_nodes() is (setting != "off")

    scenario(ask_for_nodes)()


@scenario
async def test_pods_of_our_own_groups_carry_it_too() -> None:
    cluster = Cluster(KARPENTER_POOL)
    async with ClusterHarness(cluster).open() as harness:
        await harness.engine.apply([ApplyOrganization(organization())])
        await harness.set_desired(run(GANG, node_pools=("h100",)))
        await harness.until(lambda: len(cluster.all(POD)) == 2)
        for member in cluster.all(POD):
            assert terms(member) == POOL
            assert member["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"


@scenario
async def test_objects_of_an_earlier_version_are_not_changed() -> None:
    """The template of a Job cannot be changed, and that of a Deployment would restart its pods."""
    cluster = Cluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.until(lambda: cluster.all(JOB))
        await harness.settle()
    for body in cluster.all(JOB):
        del body["metadata"]["annotations"]["fairlead/node-scaling"]
        body["metadata"]["annotations"]["fairlead/applied"] = "the digest of another version"
        body["spec"]["template"]["metadata"].pop("annotations", None)
    before = msgspec.json.encode([body["spec"] for body in cluster.all(JOB)])
    async with ClusterHarness(cluster).open() as harness:
        await harness.set_desired(run())
        await harness.settle()
    assert msgspec.json.encode([body["spec"] for body in cluster.all(JOB)]) == before
