"""From dialect to dialect: what is recognised, what is carried, what is listed as lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.kubernetes.render.workload import render_spec
from fairlead.formats.convert.dialects import detect, read_any, render
from fairlead.formats.intermediate import Unconvertible
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.fields import resources
from fairlead.kinds import KINDS

GOLDEN = Path(__file__).parents[2] / "golden"
NEIGHBOURS = GOLDEN / "yaml" / "neighbours"
SNIPPETS = sorted((GOLDEN / "yaml" / "reference").glob("*.yaml"))
TRAINING = KINDS["training"]
ON_SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
EVERY = json.loads((GOLDEN / "training" / "every-field.request.json").read_text())


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippets_of_the_reference_are_accepted(path: Path) -> None:
    text = path.read_text()
    # Their kind comes later; until then its fields are read as those of the kind that is here.
    named = text.split("kind: ")[1].split("\n")[0]
    text = text.replace(f"kind: {named}", f"kind: {named if named in resources() else TRAINING.resource}")
    manifests, issues = read_manifests(text, path.name)
    assert issues == []
    found, wrong = read_workload(manifests[0])
    assert [str(issue) for issue in wrong] == []
    assert found is not None
    assert (found.name, found.project, found.plain["nodePools"]) == (path.stem, "team-a", ["default"])


def read(name: str) -> Any:
    text = (NEIGHBOURS / name).read_text()
    [found] = read_any(text, detect(text))
    return found


def test_sbatch() -> None:
    found = read("train.sbatch")
    assert found.name == "train-resnet"
    assert found.spec == {
        "command": "bash",
        "args": found.spec["args"],
        "nodePools": ["gpu", "spare"],
        "compute": {"gpuDevicesRequest": 2, "cpuCoreRequest": 8, "cpuMemoryRequest": "32Gi"},
        "completions": 10,
        "parallelism": 2,
        "annotations": found.spec["annotations"],
        "workingDir": "/srv/train",
        "environmentVariables": [{"name": "MODE", "value": "fast"}, {"name": "LEVEL", "value": "3"}],
    }
    assert found.spec["args"].endswith("module load cuda\nsrun python train.py'")
    assert [loss.path for loss in found.losses] == [
        "#SBATCH --output",
        "#SBATCH --gres",
        "srun",
        "image",
    ]


def test_kubernetes_job() -> None:
    found = read("job.yaml")
    assert (found.name, found.project) == ("train", "team-a")
    assert found.spec == {
        "completions": 4,
        "parallelism": 2,
        "backoffLimit": 1,
        "restartPolicy": "Never",
        "image": "python:3.12",
        "command": "python -c",
        "args": "'print('\"'\"'hello world'\"'\"')'",
        "environmentVariables": [
            {"name": "MODE", "value": "fast"},
            {"name": "TOKEN", "secret": {"name": "hub", "key": "token"}},
        ],
        "compute": {"cpuCoreRequest": 0.5, "cpuMemoryRequest": "1Gi", "gpuDevicesRequest": 2},
        "storage": {
            "pvc": [{"name": "data", "existingPvc": True, "claimName": "data", "path": "/data", "readOnly": True}],
            "emptyDirVolume": [{"name": "tmp", "path": "/scratch", "medium": "Memory", "sizeLimit": "1Gi"}],
        },
        "nodeAffinityRequired": {
            "nodeSelectorTerms": [
                {"matchExpressions": [ON_SSD, {"key": "zone", "operator": "NotIn", "values": ["b"]}]},
                {"matchExpressions": [ON_SSD, {"key": "spare", "operator": "Exists"}]},
            ]
        },
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "preemptibility": "preemptible",
        "labels": [{"name": "app", "value": "train"}],
    }
    assert {loss.path for loss in found.losses} == {
        "metadata.labels.owner",
        "spec.activeDeadlineSeconds",
        "spec.template.spec.schedulerName",
    }


def test_dstack_task() -> None:
    found = read("task.dstack.yml")
    assert found.spec == {
        "image": "python:3.12",
        "command": "bash",
        "args": "-c 'pip install -r requirements.txt\npython train.py'",
        "environmentVariables": [{"name": "MODE", "value": "fast"}],
        "compute": {"cpuCoreRequest": 4, "cpuMemoryRequest": "16G", "gpuDevicesRequest": 1, "largeShmRequest": True},
        "ports": [{"container": 6006, "serviceType": "ClusterIP"}],
        "annotations": [{"name": "fairlead/time-limit", "value": "7200"}],
    }
    assert [loss.path for loss in found.losses] == ["resources.gpu"]


def test_skypilot_task() -> None:
    found = read("task.skypilot.yaml")
    assert found.spec == {
        "command": "bash",
        "args": "-c 'pip install -r requirements.txt\npython train.py'",
        "image": "pytorch/pytorch:2.4",
        "compute": {"gpuDevicesRequest": 8, "cpuCoreRequest": 32, "cpuMemoryRequest": "128G"},
        "environmentVariables": [{"name": "MODE", "value": "fast"}],
    }
    assert [loss.path for loss in found.losses] == ["resources.accelerators", "workdir", "resources.use_spot"]


def test_the_older_page_is_read_with_what_was_settled() -> None:
    text = (GOLDEN / "training" / "older-page.request.json").read_text()
    [found] = read_any(text, detect(text))
    assert found.is_prefix
    assert "spec.environmentVariables[0]" in [path for path, _ in found.remarks]
    assert {"projectId", "clusterId"} <= {loss.path for loss in found.losses}


@pytest.mark.parametrize(
    ("text", "want_dialect"),
    [
        pytest.param('{"name": "x", "projectId": "1", "spec": {}}', "rest", id="request"),
        pytest.param("apiVersion: run.ai/v2alpha1\nkind: TrainingWorkload\n", "yaml", id="workload YAML"),
        pytest.param("apiVersion: batch/v1\nkind: Job\n", "kubernetes", id="Job"),
        pytest.param("#!/bin/sh\n#SBATCH -c 1\n", "sbatch", id="sbatch"),
        pytest.param("type: task\ncommands: []\n", "dstack", id="dstack"),
        pytest.param("run: x\n", "skypilot", id="SkyPilot"),
    ],
)
def test_dialects_are_recognised(text: str, want_dialect: str) -> None:
    assert detect(text) == want_dialect


@pytest.mark.parametrize("text", ["", "just words", "- a", "a: 1", "[" * 100], ids=repr)
def test_an_unknown_dialect_is_refused(text: str) -> None:
    with pytest.raises(Unconvertible):
        detect(text)


def test_every_mistake_of_a_request_is_reported() -> None:
    with pytest.raises(Unconvertible) as refused:
        read_any('{"name": "x", "spec": {"imag": "y", "completions": "z"}}', "rest")
    assert {line.split(":")[0] for line in refused.value.lines} == {"spec.imag", "spec.image", "spec.completions"}


def test_kubernetes_objects_of_every_field() -> None:
    objects, losses = render_spec(TRAINING, "x", "team-a", EVERY["spec"])
    assert [found["kind"] for found in objects] == ["PersistentVolumeClaim", "Service", "Service", "Job"]
    job = objects[-1]
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"]["kai.scheduler/queue"] == "team-a"
    assert pod["metadata"]["annotations"]["gpu-fraction"] == "0.25"
    assert pod["metadata"]["annotations"]["gpu-fraction-num-devices"] == "2"
    assert "nvidia.com/gpu" not in pod["spec"]["containers"][0]["resources"]["limits"]
    assert (pod["spec"]["schedulerName"], pod["spec"]["priorityClassName"]) == ("kai-scheduler", "medium")
    assert (job["spec"]["completions"], job["spec"]["ttlSecondsAfterFinished"]) == (4, 86400)
    lost = {loss.path.split("[")[0] for loss in losses}
    assert {"storage.s3", "storage.dataVolume", "relatedUrls", "exposedUrls", "category"} <= lost


def test_preemption_does_not_count_as_a_failure() -> None:
    objects, _ = render_spec(TRAINING, "x", "a", {"image": "i", "compute": {"gpuDevicesRequest": 2}})
    [job] = objects
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_what_always_restarts_is_not_a_job() -> None:
    objects, _ = render_spec(TRAINING, "x", "a", {"image": "i", "restartPolicy": "Always"})
    assert [found["kind"] for found in objects] == ["Deployment"]


def test_workload_yaml_to_a_command_and_to_rest() -> None:
    spec = "{name: {value: x}, image: {value: i}, gpu: {value: 2}, active: {value: false}}"
    head = "apiVersion: run.ai/v2alpha1\nkind: TrainingWorkload\nmetadata: {name: x, namespace: runai-a}"
    text = f"{head}\nspec: {spec}\n"
    [found] = read_any(text, "yaml")
    command = render(found, "flags")
    assert command.plain == ["fairlead", "training", "submit", "x", "-p", "a", "--image=i", "--gpu-devices-request=2"]
    request = render(found, "rest")
    assert isinstance(request.plain, dict)
    assert request.plain["spec"] == {"image": "i", "compute": {"gpuDevicesRequest": 2}}
    assert [loss.path for loss in request.losses] == ["metadata.namespace", "spec.active"]
