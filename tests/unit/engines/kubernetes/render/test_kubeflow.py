"""Distributed trainings as jobs of Kubeflow's operators: the objects, and what is read from them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import WorkloadReport
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import (
    RecreationNote,
    final_failure_message,
    find_failed,
    read_note,
)
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.recreate import decide_recreation, find_recreated_jobs
from fairlead.engines.kubernetes.render.context import LaunchChoices, RenderContext
from fairlead.engines.kubernetes.render.kubeflow import OPERATORS, note_name, render_note
from fairlead.engines.kubernetes.render.workload import kinds_for, render_objects
from fairlead.formats.foreign.manifests import read_manifest
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.spec.fields import build
from tests.unit.engines.golden_place import GOLDEN_PLACE

FOLDER = Path(__file__).parents[4] / "golden" / "distributed-training"
REQUESTS = sorted(FOLDER.glob("*.request.json"))
KIND = KINDS["distributed-training"]
ALL = frozenset(operator.resource.kind for operator in OPERATORS.values())
PLACE = msgspec.structs.replace(GOLDEN_PLACE, launch=LaunchChoices(ALL))


def podsets(**spec: Any) -> tuple[PodSet, ...]:
    found: tuple[PodSet, ...] = KIND.podsets(build(KIND.spec, {"image": "x", "command": "run", **spec}))
    return found


def job_of(sets: tuple[PodSet, ...], place: RenderContext = PLACE) -> dict[str, Any]:
    [job] = render_objects(place, sets).runners
    return job


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name.split(".")[0])
def test_request_becomes_this_job(path: Path) -> None:
    sets = KIND.podsets(read_submission(KIND, path.read_bytes()).spec)
    rendered = render_objects(PLACE, sets)
    want = path.with_name(path.name.replace(".request.", ".kubeflow."))
    assert json.loads(msgspec.json.encode(rendered.objects)) == json.loads(want.read_bytes())
    assert rendered.members == []


def test_every_framework_has_a_golden_job() -> None:
    made = {json.loads(path.read_bytes())[-1]["kind"] for path in FOLDER.glob("*.kubeflow.json")}
    assert made == ALL


@pytest.mark.parametrize("framework", sorted(OPERATORS))
def test_a_submitted_job_becomes_a_job_of_the_same_kind(framework: str) -> None:
    operator = OPERATORS[framework]
    pod = {"containers": [{"name": "any", "image": "x", "command": ["run"], "args": ["a b"]}]}
    wanted = {
        type: {"replicas": 3 if type == "Worker" else 1, "restartPolicy": "OnFailure", "template": {"spec": pod}}
        for type in operator.types.values()
    }
    head = {"apiVersion": operator.resource.api, "kind": operator.resource.kind}
    policy = {"cleanPodPolicy": "All", "backoffLimit": 3}
    read = read_manifest({**head, "spec": {operator.member: wanted, "runPolicy": policy}})
    job = job_of(KIND.podsets(build(KIND.spec, read.spec)))
    assert ({name: job[name] for name in head}, job["spec"]["runPolicy"]) == (head, policy)
    for type, replicas in wanted.items():
        made = job["spec"][operator.member][type]
        assert {name: made[name] for name in ("replicas", "restartPolicy")} == {
            name: replicas[name] for name in ("replicas", "restartPolicy")
        }
        assert made["template"]["spec"]["schedulerName"] == "kai-scheduler"
        main = made["template"]["spec"]["containers"][0]
        assert (main["image"], main["command"], main["args"]) == ("x", ["run"], ["a b"])


@pytest.mark.parametrize("framework", sorted(OPERATORS))
def test_variables_are_the_operators_business(framework: str) -> None:
    job = job_of(podsets(distributedFramework=framework))
    for replicas in job["spec"][OPERATORS[framework].member].values():
        names = {one["name"] for one in replicas["template"]["spec"]["containers"][0]["env"]}
        assert {name for name in names if not name.startswith("RUNAI_")} == {"NODE_NAME"}


@pytest.mark.parametrize(
    ("spec", "member", "want"),
    [
        ({"distributedFramework": "TF", "masterSpecSameAsWorker": False}, "successPolicy", "AllWorkers"),
        ({"distributedFramework": "TF"}, "successPolicy", None),
        ({"distributedFramework": "MPI", "slotsPerWorker": 4}, "slotsPerWorker", 4),
        ({"distributedFramework": "MPI", "sshAuthMountPath": "/keys"}, "sshAuthMountPath", "/keys"),
        (
            {"distributedFramework": "MPI", "mpiLauncherCreationPolicy": "WaitForWorkersReady"},
            "launcherCreationPolicy",
            "WaitForWorkersReady",
        ),
        ({"cleanPodPolicy": "All"}, "runPolicy", {"cleanPodPolicy": "All"}),
        (
            {"restartPolicy": "OnFailure", "backoffLimit": 2},
            "runPolicy",
            {"cleanPodPolicy": "None", "backoffLimit": 2},
        ),
    ],
    ids=["no chief", "chief", "slots", "keys", "launcher waits", "clean", "restarts in place"],
)
def test_members_of_the_job(spec: dict[str, Any], member: str, want: Any) -> None:
    assert job_of(podsets(**spec))["spec"].get(member) == want


def test_idle_workers_leave_their_command_to_the_operator() -> None:
    workers = job_of(podsets(distributedFramework="MPI"))["spec"]["mpiReplicaSpecs"]["Worker"]
    assert "command" not in workers["template"]["spec"]["containers"][0]


def test_without_its_operator_it_is_a_group_of_our_own() -> None:
    sets = podsets(distributedFramework="PyTorch")
    rendered = render_objects(msgspec.structs.replace(PLACE, launch=LaunchChoices()), sets)
    assert [body["kind"] for body in rendered.runners] == ["PodGroup", "Service"]
    assert [one.kind for one in kinds_for(sets)] == ["PyTorchJob"]


def test_xgboost_without_a_master_is_a_group_of_our_own() -> None:
    sets = podsets(distributedFramework="XGBoost", masterSpecSameAsWorker=False)
    assert kinds_for(sets) == ()
    assert render_objects(PLACE, sets).members


def runner(
    *conditions: str, attempt: int = 0, failures: int = 0, counts: dict[str, Any] | None = None
) -> objects.Runner:
    labels = {"fairlead/run": "1", "fairlead/attempt": str(attempt), "fairlead/role": "master"}
    return objects.Runner(
        metadata=objects.Metadata(name="j", labels=labels, annotations={"fairlead/failures": str(failures)}),
        status=objects.RunnerStatus(
            conditions=tuple(objects.Condition(type=type, status="True", message="words") for type in conditions),
            replica_statuses=counts or {},
        ),
    )


@pytest.mark.parametrize(
    ("job", "spec", "is_disrupted", "want"),
    [
        (runner("Running"), {}, False, None),
        (runner("Failed"), {"backoffLimit": 1}, False, (1, 1)),
        (runner("Failed", attempt=1, failures=1), {"backoffLimit": 1}, False, None),
        (runner("Failed", attempt=1, failures=1), {"backoffLimit": 1}, True, (2, 1)),
        (runner("Failed"), {"backoffLimit": 0}, False, None),
        (runner("Failed"), {"backoffLimit": 0}, True, (1, 0)),
        (runner("Failed"), {"restartPolicy": "OnFailure"}, False, None),
    ],
    ids=["runs", "first", "last", "preempted", "no retry", "preempted, no retry", "its operator's affair"],
)
def test_a_failed_job_begins_again_as_a_whole(
    job: objects.Runner, spec: dict[str, Any], is_disrupted: bool, want: tuple[int, int] | None
) -> None:
    seen = ObservedWorkload(disrupted=frozenset({1, 0} if is_disrupted else ()))
    again = decide_recreation(podsets(**spec), job, seen)
    assert (again and (again.attempt, again.failures)) == want


@pytest.mark.parametrize(
    ("role", "attempt", "want"),
    [
        pytest.param("master", 1, 2, id="the-pod-that-decides-was-told-to-stop"),
        pytest.param("worker", 1, None, id="another-pod-was"),
        pytest.param("master", 0, None, id="in-the-attempt-before"),
    ],
)
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_success_after_the_signal_begins_again(role: str, attempt: int, want: int | None, policy: str) -> None:
    job, sets = runner("Succeeded", attempt=1), podsets(restartPolicy=policy)
    seen = ObservedWorkload(runners=(job,), signalled=(SignalledSuccess(role, "", attempt),))
    again = decide_recreation(sets, job, seen)
    assert (again and again.attempt) == want
    assert report(seen, sets).ended is (None if want else Phase.COMPLETED)


def ending(job: objects.Runner) -> objects.Runner:
    metadata = msgspec.structs.replace(job.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    return msgspec.structs.replace(job, metadata=metadata)


def worker(phase: str, attempt: int = 0, role: str = "worker", is_ending: bool = False) -> objects.Pod:
    labels = {"fairlead/run": "1", "fairlead/attempt": str(attempt), "fairlead/role": role}
    ending = datetime(2026, 1, 1, tzinfo=UTC) if is_ending else None
    return objects.Pod(
        metadata=objects.Metadata(name=f"j-{role}-0", labels=labels, deletion_timestamp=ending),
        status=objects.PodStatus(phase=phase),
    )


@pytest.mark.parametrize(
    ("job", "pod", "spec", "want"),
    [
        (runner("Running"), worker("Failed"), {}, True),
        (runner("Running"), worker("Running"), {}, False),
        (runner("Running"), worker("Failed", is_ending=True), {}, False),
        (runner("Running", attempt=1), worker("Failed", attempt=0), {}, False),
        (runner("Running"), worker("Failed", role="launcher"), {}, False),
        (runner("Succeeded"), worker("Failed"), {}, False),
        (ending(runner("Running")), worker("Failed"), {}, False),
        (runner("Running"), worker("Failed"), {"restartPolicy": "OnFailure"}, False),
        (runner("Running"), worker("Failed"), {"distributedFramework": "PyTorch"}, False),
    ],
    ids=[
        "failed",
        "runs",
        "told to end",
        "earlier attempt",
        "launcher",
        "over",
        "made anew",
        "restarts",
        "another operator",
    ],
)
def test_a_worker_of_which_mpis_operator_takes_no_notice(
    job: objects.Runner, pod: objects.Pod, spec: dict[str, Any], want: bool
) -> None:
    sets = podsets(**{"distributedFramework": "MPI", "backoffLimit": 0, **spec})
    failed = find_failed(sets, job, [pod])
    assert (failed is pod) is want
    disrupted = ObservedWorkload(disrupted=frozenset({0, 1}))
    again = decide_recreation(sets, job, disrupted, has_failed=failed is not None)
    assert (again is not None) is want
    if failed is not None:
        assert decide_recreation(sets, job, ObservedWorkload(), has_failed=True) is None
        assert (
            final_failure_message(sets, job, failed)
            == "1 pod failed, more than the backoff limit of 0. The last one: j-worker-0"
        )


def test_an_operator_that_has_said_nothing_is_waited_for() -> None:
    words = "Waiting for the operator of MPIJob j, which has not reacted to it yet"
    for job, want in ((runner(), words), (runner("Created"), "")):
        held = ObservedWorkload(runners=(job,), kinds=frozenset({"MPIJob"}))
        assert render_report("w", held, podsets(distributedFramework="MPI")).retrying_because == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({}, "WaitForWorkersReady"),
        ({"restartPolicy": "OnFailure"}, "AtStartup"),
        ({"restartPolicy": "OnFailure", "mpiLauncherCreationPolicy": "WaitForWorkersReady"}, "WaitForWorkersReady"),
    ],
    ids=["one try", "restarts in place", "asked for"],
)
def test_when_mpis_launcher_is_made(spec: dict[str, Any], want: str) -> None:
    assert job_of(podsets(distributedFramework="MPI", **spec))["spec"]["launcherCreationPolicy"] == want


@pytest.mark.parametrize(
    ("marks", "data", "want"),
    [
        ({}, {}, (2, 1)),
        ({"fairlead/run": "2"}, {}, (0, 0)),
        ({"fairlead/workload-id": "another"}, {}, (0, 0)),
        ({}, {"failures": "many"}, (0, 0)),
    ],
    ids=["as it was written", "an earlier run", "another workload", "somebody wrote into it"],
)
def test_what_a_job_begins_again_with_is_written_down(
    marks: dict[str, str], data: dict[str, str], want: tuple[int, int]
) -> None:
    written = render_note(PLACE, LaunchChoices(attempt=2, failures=1))
    assert written["metadata"]["name"] == note_name(PLACE.name)
    note = msgspec.convert({**written, "data": written["data"] | data}, RecreationNote)
    read = read_note(note, PLACE.ownership_labels | marks)
    assert (read.attempt, read.failures) == want


def report(seen: ObservedWorkload, sets: tuple[PodSet, ...] = ()) -> WorkloadReport:
    """As the engine asks for it: it plans first which jobs restart."""
    return render_report("w", seen, sets, find_recreated_jobs(sets, seen))


def test_a_failure_is_the_end_only_when_it_does_not_begin_again() -> None:
    sets = podsets(backoffLimit=1)
    first = report(ObservedWorkload(runners=(runner("Failed"),)), sets)
    assert (first.ended, first.failed) == (None, {})
    job = runner("Failed", attempt=1, failures=1)
    last = report(ObservedWorkload(runners=(job,), settled=frozenset({job.metadata.uid})), sets)
    assert (last.ended, last.failed, last.message) == (Phase.FAILED, {"master": 2}, "words")
    unknown = report(ObservedWorkload(runners=(runner("Failed"),)))
    assert unknown.ended is None


@pytest.mark.parametrize(
    ("job", "disrupted", "spec", "want", "end"),
    [
        (runner("Failed"), (), {}, True, None),
        (runner("Failed"), (0,), {}, False, None),
        (runner("Failed", attempt=1), (0,), {}, True, None),
        (runner("Running"), (), {}, False, None),
        (runner("Failed"), (), {"restartPolicy": "OnFailure"}, False, Phase.FAILED),
    ],
    ids=["failed", "taken away", "the attempt before was taken away", "runs", "its operator's affair"],
)
def test_a_failure_is_believed_when_no_pod_may_have_been_taken_away_unseen(
    job: objects.Runner, disrupted: tuple[int, ...], spec: dict[str, Any], want: bool, end: Phase | None
) -> None:
    sets = podsets(**{"backoffLimit": 0, **spec})
    held = ObservedWorkload(runners=(job,), disrupted=frozenset(disrupted))
    assert (find_controller_ahead_of_pods(held, sets) is job.metadata) is want
    assert report(held, sets).ended is end
    settled = msgspec.structs.replace(held, settled=frozenset({job.metadata.uid}))
    assert find_controller_ahead_of_pods(settled, sets) is None


def test_pods_of_the_previous_attempt_are_reported_until_they_are_gone() -> None:
    report = render_report(
        "w", ObservedWorkload(runners=(runner("Created", attempt=1),), pods=(worker("Running"),)), podsets()
    )
    assert [pod.phase for pod in report.pods] == [PodPhase.RUNNING]


def test_counts_by_role() -> None:
    counts = {"Chief": {"succeeded": 1}, "Worker": {"active": 1, "failed": 2}}
    job = runner("Succeeded", counts=counts)
    pod = objects.Pod(
        metadata=objects.Metadata(name="p", labels={"fairlead/run": "1"}), spec=objects.PodSpec(node_name="n")
    )
    report = render_report("w", ObservedWorkload(runners=(job,), pods=(pod,)), podsets(restartPolicy="OnFailure"))
    assert (report.ended, report.succeeded, report.failed) == (Phase.COMPLETED, {"master": 1}, {"worker": 2})
    assert report.run == 1
