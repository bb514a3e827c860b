"""A kind is one file: a copy of the package gets one more, its line in the list, and everything else follows."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlead
from tests.e2e.cli_calls import surroundings
from tests.e2e.server import Server, until

#: A kind of its own: a number of pods that count down, each in its place, all of them in one gang.
KIND = '''
"""Choir: voices that start together and end when all have sung."""

from typing import Annotated, Any

from msgspec import UNSET, Meta

from fairlead.kinds.kind import Kind
from fairlead.kinds.pods import request_of
from fairlead.kinds.runs import max_preemptions, lifetime_after_end, outcome_of_one, running_container
from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Maybe, value_or
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.run_fields import RunFields, run_violations


class ChoirSpec(RunFields, frozen=True, kw_only=True):
    voices: Annotated[
        Maybe[Annotated[int, Meta(ge=1, le=9)]],
        FieldInfo(text="How many sing.", default=1, origin="ours", flags=(FlagDeclaration(name="--voices"),)),
    ] = UNSET


def podsets(spec: ChoirSpec) -> tuple[PodSet, ...]:
    voices = value_or(spec.voices, 1)
    return (
        PodSet(
            role="voice",
            container=running_container(spec, frozenset({"voices"})),
            request=request_of(spec.compute),
            count=voices,
            completions=voices,
            gang="all",
            has_fixed_indices=True,
            naming="{workload}-voice-{index}",
            variables={"VOICE": "{index}", "VOICES": str(voices)},
        ),
    )


CHOIR = Kind(
    key="choir",
    title="Choir",
    rest="choirs",
    resource="ChoirWorkload",
    command=("choir",),
    meant_for="training",
    resource_type="choirs",
    category="Train",
    priority="low",
    can_suspend=True,
    spec=ChoirSpec,
    podsets=podsets,
    outcome=outcome_of_one,
    violations=lambda spec, path, limits: run_violations(spec, path),
    lifetime_after_end=lifetime_after_end,
    max_preemptions=max_preemptions,
)
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the sixth kind, its tables generated; nothing but its file and its line is written by hand."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "fairlead"
    shutil.copytree(Path(fairlead.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kinds" / "choir.py").write_text(KIND.lstrip())
    listing = package / "kinds" / "__init__.py"
    lines = listing.read_text().replace("(TRAINING,", "(CHOIR, TRAINING,").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("from "))
    listing.write_text("\n".join([*lines[:first], "from fairlead.kinds.choir import CHOIR", *lines[first:]]) + "\n")
    done = run(folder, "-m", "fairlead.cli.generate")
    assert done.returncode == 0, done.stderr
    return folder


def environment(copy: Path) -> dict[str, str]:
    return {**surroundings(copy / "data"), "PYTHONPATH": str(copy)}


def run(copy: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    env = environment(copy) | variables
    return subprocess.run(command, env=env, cwd=copy, capture_output=True, text=True, timeout=180)


@pytest.fixture(scope="module")
def choirs(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("choir") / "data", "--personal", environment=environment(copy)).start()
    yield server
    server.close()


def test_it_has_routes_and_is_described(choirs: Server) -> None:
    paths = choirs.call("GET", "/api/openapi.json").json["paths"]
    assert {path for path in paths if path.startswith("/api/v1/workloads/choirs")} == {
        "/api/v1/workloads/choirs",
        "/api/v1/workloads/choirs/{workloadId}",
        "/api/v1/workloads/choirs/{workloadId}/suspend",
        "/api/v1/workloads/choirs/{workloadId}/resume",
    }
    sets = choirs.call("GET", "/api/v1/authorization/permission-sets").json
    assert {"Choirs: view", "Choirs: manage"} <= {one["name"] for one in sets}


def test_it_runs_from_its_command_to_its_end(choirs: Server, copy: Path) -> None:
    def command(*arguments: str) -> str:
        done = run(copy, "-m", "fairlead", *arguments, FAIRLEAD_DATA_DIR=str(choirs.data_dir))
        assert done.returncode == 0, done.stderr
        return done.stdout

    name = command("choir", "submit", "mass", "--voices", "3", "-i", "x", "-c", "--", "sh", "-c", "echo $VOICE/$VOICES")
    assert name.strip() == "mass"
    listed = choirs.call("GET", "/api/v1/workloads?filterBy=type==Choir").json["workloads"]
    workload_id = listed[0]["id"]
    assert listed[0]["requestedPods"]["number"] == 3
    choirs.until_phase(workload_id, "Completed")
    voices = [choirs.logs(workload_id, f"?pod=mass-voice-{number}") for number in range(3)]
    assert voices == ["0/3\n", "1/3\n", "2/3\n"]
    assert "mass" in command("choir", "list")
    assert json.loads(command("choir", "describe", "mass", "-o", "json"))["type"] == "Choir"


def test_it_is_scheduled_as_the_gang_it_says(choirs: Server) -> None:
    spec = {"image": "x", "command": "true", "voices": 2, "compute": {"cpuCoreRequest": 100_000}}
    body = {"name": "huge", "projectId": "1", "clusterId": choirs.credentials["clusterId"], "spec": spec}
    answer = choirs.call("POST", "/api/v1/workloads/choirs", body)
    assert answer.status == 202, answer
    workload_id = answer.json["workloadId"]
    until(lambda: "100000" in choirs.message(workload_id) or "CPU" in choirs.message(workload_id), "a reason")
    assert choirs.phase(workload_id) == "Pending"
    refused = choirs.call("POST", "/api/v1/workloads/choirs", {**body, "spec": {"voices": 10}})
    assert {issue["field"] for issue in refused.json["complianceIssues"]} == {"spec.voices", "spec.image"}
