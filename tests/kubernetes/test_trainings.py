"""Trainings on a real API server with KAI: a Job each, its phases, its end, preemption, and nothing left behind."""

from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
OURS = "jobs,pods,services,podgroups"


def test_a_training_runs_to_its_end(harness: ClusterHarness) -> None:
    workload = harness.train("hello", seconds=1)
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    assert "1 pod succeeded" in done["phaseMessage"]
    history = harness.server.history(workload)
    assert history[0] == "Creating"
    assert [phase for phase in history if phase in ("Pending", "Running", "Completed")] == [
        "Pending",
        "Running",
        "Completed",
    ]
    [pod] = harness.pods(workload)
    assert pod["nodeName"] in ("node-1", "node-2")
    [job] = harness.objects("jobs")
    assert job["metadata"]["labels"]["kai.scheduler/queue"] == harness.project


def test_a_failing_pod_is_retried_and_then_given_up(harness: ClusterHarness) -> None:
    workload = harness.train("fails", seconds=1, code=3, backoffLimit=0)
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Failed"
    assert "1 pod failed, more than the backoff limit of 0" in done["phaseMessage"]


def test_several_pods_each_on_its_own(harness: ClusterHarness) -> None:
    workload = harness.train("sweep", gpus=4, seconds=2, completions=3, parallelism=3)
    harness.until_phase(workload, "Running")
    groups = harness.objects("podgroups")
    assert [group["spec"]["minMember"] for group in groups] == [1, 1, 1]
    assert "3 pods succeeded" in harness.until_phase(workload, "Completed")["phaseMessage"]


def test_suspend_and_resume_start_from_the_beginning(harness: ClusterHarness) -> None:
    workload = harness.train("pausing")
    harness.until_phase(workload, "Running")
    [before] = harness.objects("jobs")
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert harness.names(OURS) == []
    harness.act("resume", workload)
    harness.until_phase(workload, "Running")
    [after] = harness.objects("jobs")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_deleting_leaves_nothing(harness: ClusterHarness) -> None:
    workload = harness.train("passing", ports=[{"container": 8080, "serviceType": "ClusterIP"}])
    harness.until_phase(workload, "Running")
    assert "Service/passing-clusterip" in harness.names(OURS)
    harness.act("delete", workload)
    until(lambda: harness.names(OURS) == [], "an empty namespace", PATIENCE)


def test_what_does_not_fit_says_why(harness: ClusterHarness) -> None:
    workload = harness.train("huge", gpus=9)
    waiting = until(
        lambda: (
            (seen := harness.server.workload(workload)).get("phaseMessage", "") not in ("", "Waiting to be scheduled")
            and seen
        ),
        "a reason",
        PATIENCE,
    )
    assert waiting["phase"] == "Pending"
    assert "node" in waiting["phaseMessage"].lower(), waiting["phaseMessage"]


def test_over_the_limit(harness: ClusterHarness) -> None:
    project = harness.make_project(f"{harness.project}-limited", gpus=1, limit=1)
    harness.train("first", gpus=1)
    body = harness.spec(gpus=2)
    workload = harness.submit("training", "second", body, project=project)
    waiting = until(
        lambda: (seen := harness.server.workload(workload)).get("phaseReason") and seen,
        "a reason of the contract",
        PATIENCE,
    )
    assert waiting["phaseReason"] == "OverLimit"
    [message] = waiting["pendingSchedulingMessages"]
    assert (message["phaseReason"], message["orgType"]) == ("OverLimit", "PROJECT")


def test_an_object_of_somebody_else_is_left_alone(harness: ClusterHarness) -> None:
    made = harness.kubectl("create", "job", "taken", "-n", harness.namespace, "--image=busybox", "--", "true")
    assert made.returncode == 0, made.stderr
    workload = harness.train("taken")
    failed = harness.until_phase(workload, "Failed")
    assert "does not belong to Fairlead" in failed["phaseMessage"]
    assert harness.kubectl("delete", "job", "taken", "-n", harness.namespace).returncode == 0


def test_a_job_that_somebody_removed_is_made_again(harness: ClusterHarness) -> None:
    workload = harness.train("removed")
    harness.until_phase(workload, "Running")
    [before] = harness.objects("jobs")
    [pod] = harness.objects("pods")
    assert harness.kubectl("delete", "job", "removed", "-n", harness.namespace, "--wait=false").returncode == 0
    until(
        lambda: uid_of(pod) not in map(uid_of, harness.objects("pods")) or harness.objects("jobs") == [],
        "loss",
        PATIENCE,
    )
    while uid_of(pod) in (there := [uid_of(one) for one in harness.objects("pods")]):
        assert there == [uid_of(pod)], "nothing runs beside what still ends"
    until(
        lambda: (
            harness.server.phase(workload) == "Running"
            and [job["metadata"]["uid"] for job in harness.objects("jobs")] not in ([], [before["metadata"]["uid"]])
        ),
        "another job",
        PATIENCE,
    )


def test_why_has_the_message_of_the_scheduler_and_no_false_hope(harness: ClusterHarness) -> None:
    workload = harness.train("huge", gpus=16)
    waiting = until(
        lambda: (
            (found := harness.server.workload(workload))["phase"] == "Pending"
            and "16" in found["phaseMessage"]
            and found
        ),
        "the scheduler's word",
        PATIENCE,
    )
    assert harness.kubectl("cordon", "node-1").returncode == 0
    try:
        path = f"/api/v1/workloads/{workload}/explanation"
        told = until(
            lambda: "cordoned" in (found := harness.server.call("GET", path).json["waiting"])["counted"] and found,
            "a cordoned node",
            PATIENCE,
        )
    finally:
        harness.kubectl("uncordon", "node-1")
    assert told["message"] == waiting["phaseMessage"]
    assert told["reason"]["code"] == "NeverFits"
    assert told["remedies"][0].startswith("Request at most 8 GPUs per pod")


def uid_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["uid"])


def preempt(harness: ClusterHarness, times: int, **low: Any) -> tuple[str, str]:
    """Somebody with more priority takes the place of a training again and again; its id, and its namespace."""
    name = f"{harness.project}-{low.get('restartPolicy', 'never').lower()}-{times}"
    project = harness.make_project(name, gpus=16)
    workload = harness.submit("training", "low", harness.spec(gpus=8, priorityClass="very-low", **low), project=project)
    fill = harness.submit("training", "fill", harness.spec(gpus=8, priorityClass="medium"), project=project)
    for each in (workload, fill):
        harness.until_phase(each, "Running")
    for number in range(times):
        spec = harness.spec(gpus=8, seconds=1, priorityClass="medium-high")
        high = harness.submit("training", f"high-{number}", spec, project=project)
        harness.until_phase(high, "Completed")
        harness.until_phase(workload, "Running", "Failed")
    return workload, f"runai-{name}"


def test_a_place_that_others_still_have_to_leave_is_reported(harness: ClusterHarness) -> None:
    """What is taken away has its grace first; KAI says of who waits for it that a place is kept, and no more."""
    whole = {"compute": {"gpuDevicesRequest": 8}}
    deaf = harness.real("trap '' TERM; while :; do sleep 1; done") | whole
    grace = {"terminationGracePeriodSeconds": 120, "priorityClass": "very-low"}
    harness.until_phase(harness.submit("training", "deaf", deaf | grace), "Running")
    waiting = harness.submit("training", "next", harness.real("true") | whole | {"priorityClass": "medium-high"})
    kept = "KAI reserved a place for it, and waits until other pods have left"
    until(lambda: kept in harness.server.message(waiting), kept, PATIENCE)
    assert harness.server.phase(waiting) == "Pending"


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.operators)])
def test_preemption_never_counts_as_failure(harness: ClusterHarness, times: int) -> None:
    """More often than it may fail, which is once; nor does it wait longer from time to time."""
    workload, namespace = preempt(harness, times, backoffLimit=1)
    assert harness.server.workload(workload)["phase"] == "Running"
    [job] = [one for one in harness.objects("jobs", namespace=namespace) if one["metadata"]["name"] == "low"]
    assert job["status"].get("failed", 0) == 0
    history = harness.server.history(workload)
    assert history.count("Terminating") == times, history


def test_what_leaves_with_0_when_it_is_evicted_runs_again(harness: ClusterHarness) -> None:
    """Its Job counts a success and completes."""
    whole = {"compute": {"gpuDevicesRequest": 8}}
    leaves = harness.real("trap 'exit 0' TERM; while :; do sleep 0.2; done") | whole | {"priorityClass": "very-low"}
    workload = harness.submit("training", "leaves", leaves)
    harness.until_phase(workload, "Running")
    high = harness.submit("training", "next", harness.real("true") | whole | {"priorityClass": "medium-high"})
    harness.until_phase(high, "Completed")
    assert harness.until_phase(workload, "Running", "Completed")["phase"] == "Running"
    assert "Terminating" in harness.server.history(workload)


@pytest.mark.parametrize(("program", "want"), [("nonexist", 127), ("/no/such-program", 127), ("/etc/passwd", 126)])
def test_a_program_that_cannot_run_has_the_exit_code_of_a_shell(
    harness: ClusterHarness, program: str, want: int
) -> None:
    spec = harness.real("true") | {"command": program, "args": "once", "backoffLimit": 0}
    workload = harness.submit("training", f"missing-{want}-{len(program)}", spec)
    harness.until_phase(workload, "Failed")
    assert [pod["exitCode"] for pod in harness.pods(workload)] == [want]


def test_a_job_that_failed_because_of_preemptions_alone_is_created_again(harness: ClusterHarness) -> None:
    """With OnFailure Kubernetes knows no policy against counting them (docs/kubernetes.md)."""
    workload, _ = preempt(harness, 1, backoffLimit=0, restartPolicy="OnFailure")
    assert harness.server.phase(workload) == "Running"
    assert "Failed" not in harness.server.history(workload)
