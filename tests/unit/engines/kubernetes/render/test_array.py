"""Arrays of tasks as Indexed Jobs: which tasks a Job runs, and which index each of its pods finds."""

import subprocess
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.review import review
from fairlead.engines.kubernetes.render.workload import render_objects, render_spec
from fairlead.kinds import KINDS
from fairlead.model.allowed import Allowed
from fairlead.model.array import read_array
from fairlead.model.pods.podset import PodSet, RestartPolicy
from tests.builders import array_podset, podset
from tests.unit.engines.golden_place import GOLDEN_PLACE

PLACE = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def job(podset: PodSet, done: str = "") -> dict[str, Any]:
    place = msgspec.structs.replace(GOLDEN_PLACE, launch=LaunchChoices(tasks_done=done))
    [found] = render_objects(place, (podset,)).runners
    return found


def container_of(found: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]
    return container


def environment_of(found: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container_of(found)["env"]}


def run_by_hand(found: dict[str, Any]) -> list[str]:
    """The output of each pod, with the words of its command filled in as Kubernetes does."""
    container = container_of(found)
    words = [word.replace("$$", "$") for word in (*container["command"], *container["args"])]
    outputs = []
    for place in range(found["spec"]["completions"]):
        done = subprocess.run(words, env={"JOB_COMPLETION_INDEX": str(place)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.strip())
    return outputs


def test_indices_from_0_are_those_of_the_job() -> None:
    found = job(array_podset("0-3", 4))
    assert (found["spec"]["completionMode"], found["spec"]["completions"], found["spec"]["parallelism"]) == (
        "Indexed",
        4,
        2,
    )
    assert environment_of(found)["FAIRLEAD_ARRAY_INDEX"] == PLACE
    assert container_of(found)["command"] == ["true"]


def test_a_training_without_an_array_has_a_job_without_indices() -> None:
    found = job(podset(completions=4))
    assert "completionMode" not in found["spec"]
    assert "FAIRLEAD_ARRAY_INDEX" not in environment_of(found)


@pytest.mark.parametrize(
    ("text", "done", "want"),
    [
        pytest.param("1-3", "", ["1", "2", "3"], id="from 1"),
        pytest.param("0-12:4", "", ["0", "4", "8", "12"], id="steps"),
        pytest.param("7,1,3-5,20-30:5", "", ["7", "1", "3", "4", "5", "20", "25", "30"], id="a list"),
        pytest.param("0-5", "0,2-3", ["1", "4", "5"], id="some are done"),
        pytest.param("10-15", "5", ["10", "11", "12", "13", "14"], id="the last is done"),
    ],
)
def test_a_shell_computes_other_indices(text: str, done: str, want: list[str]) -> None:
    tasks = array_podset(text, len(read_array(text)[0]), ("/bin/sh", "-c", "echo $FAIRLEAD_ARRAY_INDEX"))
    assert run_by_hand(job(tasks, done)) == want


def test_references_to_the_index_are_filled_in_by_the_shell() -> None:
    command = ("/bin/echo", "a b", "$(FAIRLEAD_ARRAY_INDEX)-${FAIRLEAD_ARRAY_INDEX}", "$$(FAIRLEAD_ARRAY_INDEX)", "'")
    assert run_by_hand(job(array_podset("5-6", 2, command))) == [
        "a b 5-5 $(FAIRLEAD_ARRAY_INDEX) ' x",
        "a b 6-6 $(FAIRLEAD_ARRAY_INDEX) ' x",
    ]


def test_a_place_of_the_users_own_does_not_count() -> None:
    spec = {
        "image": "i",
        "command": "true",
        "completions": 2,
        "annotations": [{"name": "fairlead/array", "value": "1-2"}],
        "environmentVariables": [
            {"name": "JOB_COMPLETION_INDEX", "value": "9"},
            {"name": "FAIRLEAD_ARRAY_INDEX", "value": "9"},
        ],
    }
    objects, losses = render_spec(KINDS["training"], "x", "team-a", spec)
    [found] = objects
    assert environment_of(found) == {"JOB_COMPLETION_INDEX": PLACE}
    assert losses == []


@pytest.mark.parametrize(
    ("podset", "done", "want_index", "want_left"),
    [
        pytest.param(array_podset("7", 1), "", "7", None, id="an array of one"),
        pytest.param(array_podset("1-3", 3), "0,2", "2", None, id="the last that is left"),
        pytest.param(array_podset("0-5", 6, ()), "0,2-3", "1", "2", id="one by one without a command"),
    ],
)
def test_a_job_of_one_task_has_its_index_as_it_is(
    podset: PodSet, done: str, want_index: str, want_left: str | None
) -> None:
    found = job(podset, done)
    assert found["spec"]["completions"] == 1
    assert environment_of(found)["FAIRLEAD_ARRAY_INDEX"] == want_index
    assert found["metadata"].get("annotations", {}).get("fairlead/array-left") == want_left
    assert found["metadata"].get("annotations", {}).get("fairlead/array-done", "") == done


def test_a_list_that_is_too_long_for_a_command_is_split() -> None:
    squares = [number * number for number in range(1, 4001)]
    found = job(array_podset(",".join(map(str, squares)), 4000))
    assert found["spec"]["completions"] == 2000
    assert found["metadata"]["annotations"]["fairlead/array-left"] == "2000"
    assert len(container_of(found)["command"][2]) < 100_000


@pytest.mark.parametrize(
    ("podset", "want"),
    [
        pytest.param(array_podset("0-3", 4, ()), "", id="from 0 without a command"),
        pytest.param(array_podset("7", 1, ()), "", id="one without a command"),
        pytest.param(array_podset("1-4", 4), "", id="from 1"),
        pytest.param(
            array_podset("1-4", 4, ()), "write --command before --, or use 0-3", id="from 1 without a command"
        ),
        pytest.param(array_podset("0", 1, restart=RestartPolicy.ALWAYS), "does not always restart", id="restarts"),
        pytest.param(array_podset("0-1", 2, gang="all"), "only the pods of a training", id="gang"),
    ],
)
def test_arrays_that_a_cluster_cannot_run(podset: PodSet, want: str) -> None:
    refused = review(podset, Allowed()).refused
    assert [field for field, _ in refused] == (["annotations"] if want else [])
    assert all(want in why for _, why in refused)


def test_an_array_that_cannot_be_expressed_is_a_loss() -> None:
    spec = {
        "image": "i",
        "args": "x",
        "completions": 2,
        "annotations": [{"name": "a", "value": "b"}, {"name": "fairlead/array", "value": "1-2"}],
    }
    _, losses = render_spec(KINDS["training"], "x", "team-a", spec)
    assert [loss.path for loss in losses] == ["annotations[1].value"]
