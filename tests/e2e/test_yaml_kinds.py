"""Workload YAML of every kind, applied and run: what single kinds have of their own has its effect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.unit.cli.calling import Called, call

HEAD = """apiVersion: run.ai/v2alpha1
kind: {kind}
metadata: {{name: {name}, namespace: runai-default}}
spec:
  name: {{value: {name}}}
  image: {{value: i}}
"""
Fairlead = Callable[..., Called]


@pytest.fixture
def fairlead(server: Server, tmp_path: Path) -> Fairlead:
    def run(*arguments: str, stdin: str = "") -> Called:
        return call(*arguments, "--data-dir", str(server.data_dir), home=tmp_path, stdin=stdin)

    return run


def document(kind: str, name: str, spec: str) -> str:
    return HEAD.format(kind=kind, name=name) + "".join(f"  {line}\n" for line in spec.strip().splitlines())


def applied(server: Server, fairlead: Fairlead, text: str, name: str) -> dict[str, Any]:
    done = fairlead("apply", "-f", "-", stdin=text)
    assert f"{name}: submitted\n" in done.out, done
    row: dict[str, Any] = server.call("GET", f"/api/v1/workloads?filterBy=name=={name}").json["workloads"][0]
    return row


def test_a_distributed_workload(server: Server, fairlead: Fairlead) -> None:
    text = document(
        "DistributedWorkload",
        "yaml-spread",
        """
jobType: {value: PyTorchJob}
workers: {value: 2}
noMaster: {value: true}
runPolicy: {value: {backoffLimit: 0}}
command: {value: sh -c}
arguments: {value: "'echo rank $RANK of $WORLD_SIZE'"}
""",
    )
    row = applied(server, fairlead, text, "yaml-spread")
    assert row["type"] == "Distributed"
    server.until_phase(row["id"], "Completed")
    pods = server.call("GET", f"/api/v1/workloads/{row['id']}/pods").json["pods"]
    told = {server.logs(row["id"], f"?pod={pod['name']}").strip() for pod in pods}
    assert told == {"rank 0 of 2", "rank 1 of 2"}
    assert "yaml-spread: unchanged\n" in fairlead("apply", "-f", "-", stdin=text).out
    assert fairlead("delete", "-f", "-", stdin=text).code == 0


def test_a_training_with_processes_is_an_mpi_job(server: Server, fairlead: Fairlead) -> None:
    text = document(
        "TrainingWorkload",
        "yaml-mpi",
        """
processes: {value: 4}
slotsPerWorker: {value: 2}
command: {value: sh -c}
arguments: {value: "'echo for $RUNAI_MPI_NUM_WORKERS workers'"}
""",
    )
    row = applied(server, fairlead, text, "yaml-mpi")
    assert row["type"] == "Distributed"
    server.until_phase(row["id"], "Completed")
    assert "for 2 workers" in server.logs(row["id"])
    assert "was written as a TrainingWorkload" in fairlead("describe", "yaml-mpi").out
    assert fairlead("delete", "-f", "-", stdin=text).code == 0


def test_an_inference_workload(server: Server, fairlead: Fairlead) -> None:
    text = document(
        "InferenceWorkload",
        "yaml-serves",
        """
minScale: {value: 1}
maxScale: {value: 2}
metric: {value: concurrency}
target: {value: 80}
ports: {items: {web: {value: {container: 8000}}}}
command: {value: python3 -m http.server 8000}
""",
    )
    row = applied(server, fairlead, text, "yaml-serves")
    assert row["type"] == "Inference"
    server.until_phase(row["id"], "Running")
    shown = server.call("GET", f"/api/v1/workloads/inferences/{row['id']}").json["spec"]
    assert shown["servingPort"] == {"container": 8000}
    assert shown["autoscaling"]["metricThreshold"] == 80
    assert server.call("GET", f"/api/v1/workloads/{row['id']}").json["urls"]
    more = text.replace("maxScale: {value: 2}", "maxScale: {value: 3}").replace(
        "target: {value: 80}", "target: {value: 9}"
    )
    told = "yaml-serves: changed (autoscaling.maxReplicas, autoscaling.metricThreshold)\n"
    assert fairlead("apply", "-f", "-", stdin=more).out == told
    shown = server.call("GET", f"/api/v1/workloads/inferences/{row['id']}").json["spec"]
    assert (shown["autoscaling"]["maxReplicas"], shown["autoscaling"]["metricThreshold"]) == (3, 9)
    assert fairlead("apply", "-f", "-", stdin=more).out == "yaml-serves: unchanged\n"
    moved = fairlead("apply", "-f", "-", stdin=more.replace("container: 8000", "container: 8001"))
    assert moved.code == 1
    assert (
        "this part of the spec of a submitted workload cannot change; these members differ: servingPort.container"
        in moved.err
    )
    assert fairlead("delete", "-f", "-", stdin=text).code == 0


def test_an_interactive_workload(server: Server, fairlead: Fairlead) -> None:
    text = document(
        "InteractiveWorkload",
        "yaml-sits",
        """
preemptible: {value: true}
tensorboard: {value: true}
tensorboardLogdir: {value: /runs}
command: {value: sh -c}
arguments: {value: "'echo $TENSORBOARD_LOGDIR; sleep 60'"}
""",
    )
    row = applied(server, fairlead, text, "yaml-sits")
    assert row["type"] == "Workspace"
    server.until_phase(row["id"], "Running")
    until(lambda: "/runs" in server.logs(row["id"]), "the folder's name")
    found = server.call("GET", f"/api/v1/workloads/{row['id']}").json
    assert found["preemptible"] is True
    assert len(found["urls"]) == 1
    assert fairlead("delete", "-f", "-", stdin=text).code == 0
