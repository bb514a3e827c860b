"""Every workload has one custom resource, and is adopted from it if the database does not know it; on a real store."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.control.context import Context
from fairlead.control.workloads import lifecycle
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.update import update
from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.formats.custom_resource import CREATED_FOR
from fairlead.kinds import KINDS
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import build
from fairlead.model.submission import Submission
from fairlead.store.base import Query
from fairlead.store.collections import WORKLOADS
from tests.contract.custom_resource_harness import TRAININGS, Body, Cluster, Harness, copy_of, restarted, run_with
from tests.contract.test_control_over_time import in_store

ADA = Caller("ada@example.com", "", is_administrator=True)
INFERENCES = Resource("run.ai/v2alpha1", "InferenceWorkload", "inferenceworkloads")
DISTRIBUTED = Resource(
    "workloads.fairlead.dev/v1alpha1", "DistributedInferenceWorkload", "distributedinferenceworkloads"
)
#: `exposeExternally` and others have no name in workload YAML.
SPEC: Body = {"image": "python:3.12", "command": "sleep 9", "completions": 2, "parallelism": 2}


async def send(harness: Harness, kind: str = "training", spec: Body | None = None) -> Workload:
    """Submit it over REST, and look until its object is bound."""
    context = harness.context
    project = context.directory.projects["1"]
    workload = await submit(
        context,
        ADA,
        Submission(
            kind=kind,
            name="train",
            project_id=project.id,
            cluster_id=project.cluster_id,
            spec=build(KINDS[kind].spec, SPEC if spec is None else spec),
        ),
    )
    await harness.loop._reconcile(workload.id)
    for type in ("ADDED", "MODIFIED"):
        await harness.bring(type)
        await harness.look()
    return await load(harness, workload.id)


async def load(harness: Harness, id: str) -> Workload:
    workload: Workload | None = await harness.context.store.get(WORKLOADS, id)
    assert workload is not None
    return workload


async def load_all(harness: Harness) -> list[Workload]:
    return await harness.context.store.find(Query(collection=WORKLOADS))


def accepted(cluster: Cluster) -> Body:
    assert cluster.object is not None
    return cluster.object


def test_a_workload_that_came_over_rest_gets_one_object(tmp_path: Path) -> None:
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        workload = await send(harness)
        body = accepted(cluster)
        assert (body["kind"], body["metadata"]["name"]) == ("TrainingWorkload", "train")
        assert body["spec"]["completions"] == {"value": 2}
        assert body["spec"]["autoDeletionTimeAfterCompletionSeconds"] == {"value": 2_592_000}
        assert body["spec"]["userId"] == {"value": "ada@example.com"}
        assert body["metadata"]["finalizers"] == ["run.ai/fairlead"]
        assert body["status"]["workloadId"] == workload.id
        assert body["status"]["createdBy"] == "ada@example.com"
        assert workload.applied
        assert await load_all(harness) == [workload]

    run_with(tmp_path, cluster, act)


@pytest.mark.parametrize("kind", [TRAININGS, INFERENCES, DISTRIBUTED], ids=lambda kind: str(kind.kind))
def test_after_the_database_is_lost_it_is_adopted_as_it_was(tmp_path: Path, kind: Resource) -> None:
    cluster = Cluster(kind)
    key = next(key for key, one in KINDS.items() if one.resource == kind.kind)
    spec: Body = {"image": "python:3.12"}
    if key == "distributed-inference":
        spec = {"leader": {"image": "python:3.12"}, "workers": 0, "replicas": 2}
    elif key == "inference-service":
        spec |= {"servingPort": {"container": 80, "protocol": "http"}}
    else:
        # `imagePullSecrets` in a list and `exposedUrls` without a name are fields of REST only.
        spec |= {"ports": [{"container": 80, "serviceType": "ClusterIP", "toolName": "board", "toolType": "board"}]}
    before: list[Workload] = []

    async def first(harness: Harness) -> None:
        before.append(await send(harness, key, spec))

    async def second(harness: Harness) -> None:
        [workload] = await load_all(harness)
        was = before[0]
        assert (workload.id, workload.name, workload.created_by) == (was.id, "train", "ada@example.com")
        assert (workload.dialect, workload.created_at, workload.kind) == ("rest", was.created_at, key)
        kept = msgspec.json.decode(workload.spec)
        for name, value in spec.items():
            assert kept[name] == value
        assert accepted(cluster)["status"]["workloadId"] == was.id

    for name, act in (("before", first), ("after", second)):
        (tmp_path / name).mkdir()
        run_with(tmp_path / name, cluster, act)


def test_running_objects_are_adopted_in_their_run(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.apply()
    status = {"workloadId": "u-1", "phase": "Running", "observedGeneration": 1, "workloadName": "train"}
    accepted(cluster)["status"] = status

    async def act(harness: Harness) -> None:
        workload = await load(harness, "u-1")
        assert (workload.run, workload.desired_phase) == (3, DesiredPhase.RUNNING)

    async def test(context: Context) -> None:
        harness = Harness(context, cluster)
        harness.resources._find_run = lambda id: 3
        await harness.start()
        try:
            await act(harness)
        finally:
            await harness.close()

    in_store(tmp_path, test)


@pytest.mark.parametrize("phase", [Phase.COMPLETED, Phase.FAILED])
def test_what_has_ended_is_not_run_again(tmp_path: Path, phase: Phase) -> None:
    cluster = Cluster()
    cluster.apply()
    ended = {"completedAt": "2026-01-01T00:00:00Z", "message": "exit code 3"}
    accepted(cluster)["status"] = {"workloadId": "u-1", "phase": phase.value, "observedGeneration": 1, **ended}

    async def act(harness: Harness) -> None:
        workload = await load(harness, "u-1")
        assert (workload.phase, workload.phase_message) == (phase, "exit code 3")
        assert workload.completed_at == 1_767_225_600_000

    run_with(tmp_path, cluster, act)


def test_what_was_refused_before_is_not_submitted_again(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.apply()
    accepted(cluster)["status"] = {"phase": "Failed", "message": "spec.gpu: …", "observedGeneration": 1}

    async def act(harness: Harness) -> None:
        assert await load_all(harness) == []

    run_with(tmp_path, cluster, act)


def test_an_object_that_cannot_be_adopted_keeps_its_status(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.apply(image=None)
    accepted(cluster)["status"] = {"workloadId": "u-1", "phase": "Running", "observedGeneration": 1, "message": ""}

    async def act(harness: Harness) -> None:
        status = accepted(cluster)["status"]
        assert (status["workloadId"], status["phase"]) == ("u-1", "Running")
        assert status["conditions"][0]["type"] == "NotAdopted"
        assert await load_all(harness) == []

    run_with(tmp_path, cluster, act)


def test_an_object_that_the_watch_shows_late_is_not_missing(tmp_path: Path) -> None:
    """Between the write of its status and the watch that shows it, the workload has no object of its id."""
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        context = harness.context
        submission = Submission(
            kind="training",
            name="train",
            spec=build(KINDS["training"].spec, SPEC),
            project_id="1",
            cluster_id=context.directory.cluster.id,
        )
        workload = await submit(context, ADA, submission)
        await harness.loop._reconcile(workload.id)
        await harness.bring("ADDED")
        await harness.look()
        assert accepted(cluster)["status"]["workloadId"] == workload.id
        await harness.loop._reconcile(workload.id)
        assert (await load(harness, workload.id)).desired_phase is DesiredPhase.RUNNING
        await harness.bring()
        await harness.look()
        assert (await load(harness, workload.id)).applied

    run_with(tmp_path, cluster, act)


def test_a_workload_whose_object_is_not_accepted_runs_without_one(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.refuses = True

    async def act(harness: Harness) -> None:
        context = harness.context
        submission = Submission(
            kind="training",
            name="train",
            spec=build(KINDS["training"].spec, SPEC),
            project_id="1",
            cluster_id=context.directory.cluster.id,
        )
        workload = await submit(context, ADA, submission)
        for _ in range(2):
            await harness.loop._reconcile(workload.id)
        assert cluster.object is None
        assert (await load(harness, workload.id)).desired_phase is DesiredPhase.RUNNING

    run_with(tmp_path, cluster, act)


def test_deleting_the_object_of_a_rest_workload_ends_it(tmp_path: Path) -> None:
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        workload = await send(harness)
        await harness.bring("DELETED")
        cluster.object = None
        await harness.look()
        assert (await load(harness, workload.id)).desired_phase is DesiredPhase.DELETED

    run_with(tmp_path, cluster, act)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["the same server", "the next server"])
def test_deleting_it_over_rest_before_its_object_is_seen_leaves_no_object(tmp_path: Path, is_restarted: bool) -> None:
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        context = harness.context
        project = context.directory.projects["1"]
        spec = build(KINDS["training"].spec, SPEC)
        submission = Submission(
            kind="training", name="train", spec=spec, project_id=project.id, cluster_id=project.cluster_id
        )
        workload = await submit(context, ADA, submission)
        await harness.loop._reconcile(workload.id)
        await lifecycle.delete(context, ADA, "training", workload.id)
        if is_restarted:
            async with restarted(harness):
                pass
        else:
            await harness.bring("ADDED")
            await harness.look()
        assert cluster.object is None
        assert len(await load_all(harness)) == 1

    run_with(tmp_path, cluster, act)


def test_a_workload_gets_its_object_when_the_previous_one_of_its_name_is_gone(tmp_path: Path) -> None:
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        cluster.apply(uid="previous")
        submission = Submission(
            kind="training",
            name="train",
            spec=build(KINDS["training"].spec, SPEC),
            project_id="1",
            cluster_id=harness.context.directory.cluster.id,
        )
        async with harness.looking():
            workload = await submit(harness.context, ADA, submission)
            await cluster.taken.wait()
            cluster.object = None
            await cluster.created.wait()
        assert accepted(cluster)["metadata"]["annotations"][CREATED_FOR] == workload.id

    run_with(tmp_path, cluster, act)


def training(context: Context) -> Submission:
    project = context.directory.projects["1"]
    spec = build(KINDS["training"].spec, SPEC)
    return Submission(kind="training", name="train", spec=spec, project_id=project.id, cluster_id=project.cluster_id)


def test_an_object_that_was_deleted_before_anybody_saw_it_is_created_again(tmp_path: Path) -> None:
    """The watch brings nothing of it: neither its creation nor its end."""
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        async with harness.looking():
            workload = await submit(harness.context, ADA, training(harness.context))
            await cluster.created.wait()
            cluster.created.clear()
            cluster.object, cluster.next_uid = None, "u-2"
            await cluster.created.wait()
        assert accepted(cluster)["metadata"]["annotations"][CREATED_FOR] == workload.id
        assert (await load(harness, workload.id)).desired_phase is DesiredPhase.RUNNING

    run_with(tmp_path, cluster, act)


@pytest.mark.parametrize("is_copy", [False, True], ids=["its object", "a copy of its object"])
def test_deleting_the_object_of_a_rest_workload_before_it_is_bound_ends_it(tmp_path: Path, is_copy: bool) -> None:
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        if is_copy:
            workload = await send(harness)
        else:
            workload = await submit(harness.context, ADA, training(harness.context))
            await harness.loop._reconcile(workload.id)
        leaving = copy_of(accepted(cluster))
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if is_copy:
            leaving["metadata"]["uid"] = "u-2"
            del leaving["status"]
            # Of another name in truth: the watch knows objects by their names.
            leaving["metadata"]["name"] = "copy"
        await harness.bring("ADDED", leaving)
        await harness.look()
        wanted = DesiredPhase.RUNNING if is_copy else DesiredPhase.DELETED
        assert (await load(harness, workload.id)).desired_phase is wanted

    run_with(tmp_path, cluster, act)


def test_a_copied_object_with_the_note_of_a_deleted_workload_is_a_new_one(tmp_path: Path) -> None:
    """As after `kubectl get -o yaml`, `kubectl delete`, `kubectl apply`."""
    cluster = Cluster()

    async def act(harness: Harness) -> None:
        workload = await send(harness)
        copy = dict(accepted(cluster))
        await lifecycle.delete(harness.context, ADA, "training", workload.id)
        await harness.bring("DELETED")
        await harness.look()
        cluster.object, cluster.next_uid = None, "u-2"
        del copy["status"]
        copy["metadata"]["managedFields"] = [{"manager": "kubectl-client-side-apply"}]
        cluster.create("", copy)
        await harness.bring("ADDED")
        await harness.look()
        assert (await load(harness, "u-2")).name == "train"

    run_with(tmp_path, cluster, act)


def test_the_last_accepted_change_of_a_spec_wins_in_both_directions(tmp_path: Path) -> None:
    cluster = Cluster(INFERENCES)

    async def act(harness: Harness) -> None:
        spec = {"image": "a:1", "servingPort": {"container": 80, "protocol": "http"}}
        workload = await send(harness, "inference-service", spec)
        await update(harness.context, ADA, "inference-service", workload.id, {"image": "a:2"})
        await harness.loop._reconcile(workload.id)
        assert accepted(cluster)["spec"]["image"] == {"value": "a:2"}
        await harness.bring()
        await harness.look()
        assert (await load(harness, workload.id)).resource_changes == ()
        cluster.edit(image="a:3")
        await harness.bring()
        await harness.look()
        assert msgspec.json.decode((await load(harness, workload.id)).spec)["image"] == "a:3"
        assert accepted(cluster)["spec"]["image"] == {"value": "a:3"}
        types = [one["type"] for one in accepted(cluster)["status"]["conditions"]]
        assert "EditRejected" not in types

    run_with(tmp_path, cluster, act)


def test_phases_become_events_of_the_object(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.apply(gpu="many")

    async def act(harness: Harness) -> None:
        status: dict[str, Any] = accepted(cluster)["status"]
        assert status["phase"] == "Failed"
        [event] = cluster.events
        assert (event["type"], event["reason"], event["involvedObject"]["uid"]) == ("Warning", "Failed", "u-1")
        assert event["message"] == status["message"]

    run_with(tmp_path, cluster, act)
