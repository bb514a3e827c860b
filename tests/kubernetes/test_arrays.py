"""Arrays of tasks on a real API server: each pod finds its index, and a task that was stopped runs again."""

from typing import Any

import pytest

from fairlead.cli.workloads.additions import apply_additions
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
INDEX = "batch.kubernetes.io/job-completion-index"


def submit(harness: ClusterHarness, name: str, array: str, script: str) -> str:
    spec = harness.real(script)
    apply_additions({"array": array}, spec)
    return harness.submit("training", name, spec)


def environment_of(job: dict[str, Any]) -> dict[str, Any]:
    [container] = job["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


@pytest.mark.parametrize(("array", "want"), [("1-3%2", ["1", "2", "3"]), ("0-1", ["0", "1"])], ids=["from 1", "from 0"])
def test_each_pod_finds_its_index(harness: ClusterHarness, array: str, want: list[str]) -> None:
    name = f"tasks-{len(want)}"
    workload = submit(harness, name, array, "echo $FAIRLEAD_ARRAY_INDEX ${FAIRLEAD_ARRAY_INDEX}")
    done = harness.until_phase(workload, "Completed", "Failed")
    assert f"{len(want)} pods succeeded" in done["phaseMessage"]
    printed = [harness.server.logs(workload, f"?pod={pod['name']}") for pod in harness.pods(workload)]
    assert sorted(printed) == [f"{index} {index}\n" for index in want]
    [job] = [one for one in harness.objects("jobs") if one["metadata"]["name"] == name]
    assert (job["spec"]["completionMode"], job["status"]["succeeded"]) == ("Indexed", len(want))


def test_a_task_that_was_stopped_runs_again_and_the_others_do_not(harness: ClusterHarness) -> None:
    script = "trap 'exit 0' TERM; [ $FAIRLEAD_ARRAY_INDEX != 6 ] && exit 0; while :; do sleep 0.1; done"
    workload = submit(harness, "stopped", "5-7", script)

    def find_job() -> dict[str, Any] | None:
        return next((one for one in harness.objects("jobs") if one["metadata"]["name"] == "stopped"), None)

    until(
        lambda: (job := find_job()) is not None and job["status"].get("completedIndexes") == "0,2",
        "the others' success",
        PATIENCE,
    )
    [pod] = [
        one
        for one in harness.objects("pods")
        if one["metadata"]["annotations"].get(INDEX) == "1"
        and one["metadata"]["labels"].get("batch.kubernetes.io/job-name") == "stopped"
    ]
    until(lambda: harness.server.phase(workload) == "Running", "a running workload", PATIENCE)
    assert harness.kubectl("delete", "pod", pod["metadata"]["name"], "-n", harness.namespace).returncode == 0
    again = until(
        lambda: (job := find_job()) is not None and job["spec"]["completions"] == 1 and job,
        "a Job of the task that is left",
        PATIENCE,
    )
    assert environment_of(again)["FAIRLEAD_ARRAY_INDEX"] == "6"
    assert again["metadata"]["annotations"]["fairlead/array-done"] == "0,2"
