"""Policies in the older form as objects of a cluster: applied, changed and deleted, beside the policies of others."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.policies.policies import PolicyInput, delete_policy, write_policy
from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.records.assets import Scope
from fairlead.model.records.policies import PolicyRecord
from fairlead.store.base import Query
from fairlead.store.collections import POLICIES
from tests.contract.custom_resource_harness import Cluster, Harness, restarted, run_with
from tests.contract.test_control_over_time import in_store
from tests.contract.test_custom_resource_templates import ask

KIND = Resource("run.ai/v2alpha1", "TrainingPolicy", "trainingpolicies")
TYPE = POLICY_TYPE_OF_KIND["training"]
PROJECT = Scope("project", "1")
CPU = {"cpu": {"rules": {"max": 4}}}
GPU = {"gpu": {"rules": {"max": "4"}}}


def cluster_with(spec: dict[str, Any], namespace: str = "runai-default") -> Cluster:
    cluster = Cluster(KIND)
    cluster.path = KIND.path(namespace, "old")
    cluster.object = {"metadata": {"name": "old", "namespace": namespace, "uid": "u-1", "generation": 0}}
    edit(cluster, spec)
    return cluster


def edit(cluster: Cluster, spec: dict[str, Any]) -> None:
    assert cluster.object is not None
    cluster.object["spec"] = spec
    cluster.object["metadata"]["generation"] += 1
    cluster._count()


async def delete(harness: Harness) -> None:
    """As `kubectl delete` does: the object stays until its finalizers are gone."""
    assert harness.cluster.object is not None
    harness.cluster.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await look(harness)
    assert harness.cluster.object["metadata"]["finalizers"] == []


async def look(harness: Harness) -> None:
    """Until nothing is new: the loop writes, and the watch brings what it wrote."""
    for _ in range(3):
        await harness.bring()
        await harness.look()


async def policies(harness: Harness) -> list[PolicyRecord]:
    return list(await harness.context.store.find(Query(collection=POLICIES)))


async def write(context: Context, **content: Any) -> None:
    await write_policy(context, CALLER, TYPE, PolicyInput(name="other", scope=PROJECT, **content))


def status(harness: Harness) -> dict[str, Any]:
    found: dict[str, Any] = harness.cluster.statuses[-1]
    return found


@pytest.mark.parametrize(
    ("namespace", "scope"), [("runai-default", "project"), ("runai", "cluster")], ids=["of a project", "global"]
)
def test_an_object_is_a_policy_until_it_is_deleted(tmp_path: Path, namespace: str, scope: str) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        (made,) = await policies(harness)
        assert (made.name, made.scope.type) == ("old", scope)
        assert made.rules == {"compute": {"cpuCoreRequest": {"max": 4}}}
        assert (status(harness)["phase"], status(harness)["policyId"]) == ("Applied", made.id)
        edit(harness.cluster, {"cpu": {"rules": {"max": 2}}})
        await look(harness)
        (changed,) = await policies(harness)
        assert changed.rules == {"compute": {"cpuCoreRequest": {"max": 2}}}
        await delete(harness)
        assert await policies(harness) == []

    run_with(tmp_path, cluster_with(CPU, namespace), act)


def test_what_is_lost_is_in_its_status(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        (loss,) = status(harness)["losses"]
        assert loss.startswith("spec.gpu.rules: applies to whole GPUs only")
        condition = status(harness)["conditions"][1]
        assert (condition["type"], condition["message"]) == ("ConvertedWithLosses", loss)
        assert loss in status(harness)["message"]

    run_with(tmp_path, cluster_with(GPU), act)


def test_a_mistake_leaves_the_policy_as_it_was(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        edit(harness.cluster, {"cpuu": {"rules": {"max": 2}}})
        await look(harness)
        assert status(harness)["phase"] == "Failed"
        assert status(harness)["message"].startswith("spec.cpuu: is not a field of workload YAML; did you mean cpu?")
        assert "stays in force" in status(harness)["message"]
        (kept,) = await policies(harness)
        assert kept.rules == {"compute": {"cpuCoreRequest": {"max": 4}}}
        await delete(harness)
        assert await policies(harness) == []

    run_with(tmp_path, cluster_with(CPU), act)


def test_an_object_never_overwrites_or_deletes_the_policy_of_somebody_else(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        await write(harness.context, rules={"workingDir": {"required": True}})
        await look(harness)
        assert "the scope project has the policy other already" in status(harness)["message"]
        edit(harness.cluster, {"cpu": {"rules": {"max": 2}}})
        await look(harness)
        await delete(harness)
        (kept,) = await policies(harness)
        assert (kept.name, kept.rules) == ("other", {"workingDir": {"required": True}})

    run_with(tmp_path, cluster_with(CPU), act)


def test_it_is_applied_once_the_policy_of_somebody_else_is_deleted(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await write(harness.context, rules={"workingDir": {"required": True}})
        edit(harness.cluster, CPU)
        await look(harness)
        assert status(harness)["phase"] == "Failed"
        async with harness.looking():
            await delete_policy(harness.context, CALLER, TYPE, PROJECT)
            while status(harness)["phase"] != "Applied":
                await harness.cluster.written.wait()
        assert [one.name for one in await policies(harness)] == ["old"]

    run_with(tmp_path, cluster_with({"cpuu": {}}), act)


def test_a_policy_that_somebody_deletes_stays_deleted_until_the_object_changes(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        await delete_policy(harness.context, CALLER, TYPE, PROJECT)
        await look(harness)
        assert "was deleted by somebody else" in status(harness)["message"]
        assert await policies(harness) == []
        edit(harness.cluster, {"cpu": {"rules": {"max": 2}}})
        await look(harness)
        assert status(harness)["phase"] == "Applied"

    run_with(tmp_path, cluster_with(CPU), act)


def test_the_next_server_knows_its_policy_also_if_the_status_was_not_written(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await look(harness)
        assert harness.cluster.object is not None
        del harness.cluster.object["status"]
        async with restarted(harness) as later:
            (made,) = await policies(later)
            assert made.version == 1
            assert (status(later)["phase"], status(later)["policyId"]) == ("Applied", made.id)

    run_with(tmp_path, cluster_with(CPU), act)


def test_a_copied_status_gives_no_right_to_the_policy_of_another_scope(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        given = PolicyInput(name="tenant", scope=Scope("tenant", ""), rules={"image": {"required": True}})
        tenant = await write_policy(harness.context, CALLER, TYPE, given)
        await look(harness)
        assert harness.cluster.object is not None
        harness.cluster.object["status"] |= {"policyId": tenant.id, "policyVersion": tenant.version}
        await delete(harness)
        assert "tenant" in [one.name for one in await policies(harness)]

    run_with(tmp_path, cluster_with(CPU), act)


@pytest.mark.parametrize(
    ("spec", "namespace", "refusal", "warnings"),
    [
        (CPU, "runai-default", "", []),
        (GPU, "runai-default", "", ["lost: spec.gpu.rules: applies to whole GPUs only"]),
        ({"cpuu": {}}, "runai-default", "spec.cpuu: is not a field of workload YAML", []),
        (CPU, "elsewhere", "metadata.namespace: is elsewhere, which belongs to no project", []),
    ],
    ids=["right", "with losses", "with a mistake", "in no project"],
)
def test_what_the_webhook_says_of_it(
    tmp_path: Path, spec: dict[str, Any], namespace: str, refusal: str, warnings: list[str]
) -> None:
    async def test(context: Context) -> None:
        body = {"apiVersion": KIND.api, "kind": KIND.kind, "metadata": {"name": "old"}, "spec": spec}
        question = {"uid": "q", "operation": "CREATE", "namespace": namespace, "object": body}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": question}
        told = (await ask(context, msgspec.json.encode(review)))["response"]
        assert told["allowed"] is (refusal == "")
        assert refusal in told.get("status", {}).get("message", "")
        assert len(told.get("warnings", [])) == len(warnings)
        assert all(got.startswith(want) for got, want in zip(told.get("warnings", []), warnings, strict=True))
        assert list(await context.store.find(Query(collection=POLICIES))) == []

    in_store(tmp_path, test)
