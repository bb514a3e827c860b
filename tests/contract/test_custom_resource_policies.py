"""Objects applied with kubectl under a policy, with and without the webhook: refused and resumed as over REST."""

from pathlib import Path
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.policies.policies import PolicyInput, write_policy
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.records.assets import Scope
from fairlead.model.records.phase import DesiredPhase
from fairlead.store.collections import WORKLOADS
from tests.contract.custom_resource_harness import Harness, run
from tests.contract.test_control_over_time import in_store
from tests.contract.test_custom_resource_templates import ask


async def write(context: Context, **content: Any) -> None:
    given = PolicyInput(name="p", scope=Scope("project", "1"), **content)
    await write_policy(context, CALLER, POLICY_TYPE_OF_KIND["training"], given)
    await context.directory.load()


def conditions(harness: Harness) -> list[str]:
    return [each.get("message", "") for each in harness.cluster.statuses[-1].get("conditions", ())]


def test_an_object_is_refused_by_rule_and_scope(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await write(harness.context, rules={"compute": {"cpuCoreRequest": {"max": 1}}})
        harness.cluster.apply(uid="u-2", cpu="2")
        await harness.bring("ADDED")
        await harness.look()
        assert await harness.context.store.get(WORKLOADS, "u-2") is None
        status = harness.cluster.statuses[-1]
        assert "value must be no greater than 1 (policy of project 1)" in str(status)

    run(tmp_path, act)


def test_a_resume_that_the_policy_refuses_says_so_and_works_once_it_is_allowed(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        await harness.rest("suspend")
        await harness.bring()
        await harness.look()
        await write(harness.context, rules={"workingDir": {"required": True}})
        harness.cluster.edit(active=True)
        await harness.bring()
        await harness.look()
        assert await harness.wanted() is DesiredPhase.STOPPED
        assert any("workingDir: must be given (policy of project 1)" in message for message in conditions(harness))
        await write(harness.context)
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)

    run(tmp_path, act)


def test_the_webhook_refuses_it_before_it_is_stored(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await write(context, rules={"compute": {"cpuCoreRequest": {"max": 1}}})
        spec = {"name": {"value": "small"}, "image": {"value": "a"}, "cpu": {"value": "2"}}
        head = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload"}
        body = {**head, "metadata": {"name": "small", "namespace": "runai-default"}, "spec": spec}
        question = {"uid": "q", "operation": "CREATE", "namespace": "runai-default", "object": body}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": question}
        told = (await ask(context, msgspec.json.encode(review)))["response"]
        assert not told["allowed"]
        assert "value must be no greater than 1 (policy of project 1)" in told["status"]["message"]

    in_store(tmp_path, test)
