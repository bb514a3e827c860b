"""`POST /api/v1/conversions`: texts in every dialect, and the answers to texts that are none."""

import json
from typing import Any

import pytest

from tests.contract.api.api_server import ApiServer

PATH = "/api/v1/conversions"
REQUEST = json.dumps({"name": "hello", "spec": {"image": "python:3", "compute": {"gpuDevicesRequest": 1}}})
SLURM = "#!/bin/bash\n#SBATCH --job-name=hello\n#SBATCH --gres=gpu:2\npython train.py\n"


def convert(api: ApiServer, **body: str) -> list[dict[str, Any]]:
    answer = api.call("POST", PATH, body)
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["workloads"]
    return found


@pytest.mark.parametrize(
    ("dialect", "want"),
    [
        ("yaml", "kind: TrainingWorkload"),
        ("command", "fairlead training submit hello"),
        ("python", "specs.Compute(\n        gpu_devices_request=1,"),
        ("rest", '"gpuDevicesRequest": 1'),
    ],
)
def test_a_request_is_written_in_a_dialect(api: ApiServer, dialect: str, want: str) -> None:
    (workload,) = convert(api, text=REQUEST, kind="trainings", project="default", to=dialect)
    assert want in workload["text"]
    assert (workload["kind"], workload["name"], workload["project"]) == ("trainings", "hello", "default")


def test_a_python_program_names_classes_that_exist(api: ApiServer) -> None:
    spec = {
        "image": "python:3",
        "environmentVariables": [{"name": "A", "value": "it's"}],
        "storage": {"git": [{"repository": "https://host/x", "path": "/x"}]},
        "nodePools": ["default"],
    }
    text = json.dumps({"name": "hello", "spec": spec})
    (workload,) = convert(api, text=text, kind="workspaces", to="python")
    names: dict[str, Any] = {}
    # The line that submits needs a server.
    exec("\n".join(workload["text"].splitlines()[:-1]).replace("fairlead.Client()", "None"), names)
    assert names["spec"].as_request()["spec"] == spec


def test_a_script_becomes_a_request(api: ApiServer) -> None:
    (workload,) = convert(api, text=SLURM)
    assert workload["request"]["name"] == "hello"
    assert workload["request"]["spec"]["compute"]["gpuDevicesRequest"] == 2


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ({"text": "nothing: here"}, "text"),
        ({"text": "a: [b"}, "is not valid YAML"),
        ({"text": REQUEST, "kind": "pods"}, "There is no kind 'pods'"),
        ({"text": REQUEST, "to": "cobol"}, "must be one of yaml, rest, command, python"),
        ({"text": "x" * 200_001}, "200000"),
        ({}, "text: is missing"),
    ],
    ids=["no workload", "no YAML", "unknown kind", "unknown dialect", "too long", "no text"],
)
def test_another_text_is_refused_with_its_reason(api: ApiServer, body: dict[str, str], want: str) -> None:
    answer = api.call("POST", PATH, body)
    assert answer.status == 400
    assert want in answer.json["details"]
