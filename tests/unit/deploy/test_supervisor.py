"""What a cluster's supervisor answers, with programs that are no cluster's: they only sleep."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster.cluster import describe_state
from deploy.cluster.layout import Layout
from deploy.cluster.supervisor import Supervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    (tmp_path / "logs").mkdir()
    made = Supervisor(Layout(tmp_path, 0))
    for name in ("etcd", "operator"):
        made.answer({"do": "start", "name": name, "command": ["sleep", "600"], "environment": {}})
    yield made
    for name in list(made.programs):
        end(made, name, dropped=True)


def end(supervisor: Supervisor, name: str, dropped: bool = False) -> None:
    """Reaped by number: whatever else this process has started is not ours to wait for."""
    program = supervisor.programs[name]
    pid = program.pid
    supervisor.answer({"do": "stop", "name": name, "dropped": dropped})
    if pid:
        supervisor.note_exit(program, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def states(supervisor: Supervisor) -> dict[str, str]:
    found = supervisor.answer({"do": "status"})["programs"]
    return {name: describe_state(one) for name, one in found.items()}


def test_a_stopped_program_says_so_and_can_be_started_again(supervisor: Supervisor) -> None:
    end(supervisor, "operator")
    assert states(supervisor) == {"etcd": "running", "operator": "stopped"}
    assert supervisor.start_due() is None
    supervisor.answer({"do": "start", "name": "operator"})
    assert states(supervisor) == {"etcd": "running", "operator": "running"}


def test_what_ended_by_itself_says_how(supervisor: Supervisor) -> None:
    program = supervisor.programs["operator"]
    supervisor.answer({"do": "kill", "name": "operator", "signal": 9})
    supervisor.note_exit(program, os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1]))
    assert states(supervisor) == {"etcd": "running", "operator": "ended -9"}


@pytest.mark.parametrize("is_stopped_before", [False, True], ids=["while it runs", "when it was stopped"])
def test_what_was_dropped_is_forgotten(supervisor: Supervisor, is_stopped_before: bool) -> None:
    if is_stopped_before:
        end(supervisor, "operator")
    end(supervisor, "operator", dropped=True)
    assert states(supervisor) == {"etcd": "running"}


def test_what_is_added_again_before_it_ended_stays(supervisor: Supervisor) -> None:
    program = supervisor.programs["operator"]
    supervisor.answer({"do": "stop", "name": "operator", "dropped": True})
    supervisor.answer({"do": "start", "name": "operator", "command": ["sleep", "600"], "environment": {}})
    supervisor.note_exit(program, os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1]))
    assert supervisor.start_due() is not None
    assert list(states(supervisor)) == ["etcd", "operator"]


@pytest.mark.parametrize("verb", ["start", "stop", "kill"])
def test_a_name_that_no_program_has_is_answered_with_those_there_are(supervisor: Supervisor, verb: str) -> None:
    answer = supervisor.answer({"do": verb, "name": "nosuch", "signal": 9})
    assert answer == {"error": "there is no program nosuch; there are etcd, operator"}
