"""Distributed trainings with the frameworks' own programs: torch.distributed, Open MPI; and what others are told."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.e2e.several import (
    DISTRIBUTED,
    HAS_NETWORKS,
    SLEEP,
    all_pods,
    delete,
    events,
    outputs,
    program,
    request,
    train,
)

PYTHON = "/usr/bin/python3"
ALL_REDUCE = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(dist.get_rank(), dist.get_world_size(), int(total.item()))
"""
ELASTIC = """
import os, torch, torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler
told = {name: os.environ["PET_" + name.upper()] for name in ("rdzv_backend", "rdzv_endpoint", "rdzv_id", "nnodes")}
least, most = map(int, told["nnodes"].split(":"))
meeting = get_rendezvous_handler(RendezvousParameters(
    backend=told["rdzv_backend"], endpoint=told["rdzv_endpoint"], run_id=told["rdzv_id"],
    min_nodes=least, max_nodes=most))
store, rank, world = meeting.next_rendezvous()
dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print(rank, world, int(total.item()))
dist.barrier()
"""
#: Every process tells the others its rank and its host.
GATHER = """
import os, sys
from mpi4py import MPI
told = MPI.COMM_WORLD.allgather((MPI.COMM_WORLD.rank, os.uname().nodename))
if MPI.COMM_WORLD.rank == 0:
    print(sorted(told))
"""
#: What it was told by others of these variables.
TELL = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.mark.debian("python3-torch")
def test_torch_adds_up_over_all_ranks(server: Server) -> None:
    workload_id = train(server, "torch", program(ALL_REDUCE, PYTHON, numWorkers=2))
    server.until_phase(workload_id, "Completed", patience=120)
    assert outputs(server, workload_id) == {
        "torch-master-0": "0 3 6\n",
        "torch-worker-0": "1 3 6\n",
        "torch-worker-1": "2 3 6\n",
    }


@pytest.mark.debian("python3-torch")
def test_torch_meets_elastically_by_its_variables(server: Server) -> None:
    """As torchrun does it, which Debian's build cannot be started with on this Python."""
    workload_id = train(server, "elastic", program(ELASTIC, PYTHON, numWorkers=2, minReplicas=1))
    server.until_phase(workload_id, "Completed", patience=120)
    said = sorted(text for text in outputs(server, workload_id).values() if text)
    assert said in (["0 3 6\n", "1 3 6\n", "2 3 6\n"], ["0 2 3\n", "1 2 3\n"])


def mpi(name: str, launcher: str, **spec: Any) -> dict[str, Any]:
    return {
        "image": "x",
        "command": "sh -c",
        "args": shlex.quote(launcher),
        "distributedFramework": "MPI",
        **spec,
    }


@pytest.mark.debian("openmpi-bin", "python3-mpi4py")
@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_mpirun_starts_its_processes_on_the_workers(server: Server, tmp_path: Path, policy: str) -> None:
    script = tmp_path / "gather.py"
    script.write_text(GATHER)
    spec = mpi(
        "mpi",
        f"cat /etc/mpi/hostfile; exec mpirun -n 4 {PYTHON} {script}",
        numWorkers=2,
        slotsPerWorker=2,
        mpiLauncherCreationPolicy=policy,
    )
    name = f"mpi-{policy.lower()[:4]}"
    workload_id = train(server, name, spec)
    server.until_phase(workload_id, "Completed", patience=120)
    lines = outputs(server, workload_id)[f"{name}-launcher-0"].splitlines()
    # mpirun may warn of a race with the process that it starts.
    *hosts, told = [line for line in lines if "setpgid(" not in line]
    assert hosts == [f"{name}-worker-0 slots=2", f"{name}-worker-1 slots=2"]
    if HAS_NETWORKS:
        assert told == str([(rank, f"{name}-worker-{rank // 2}") for rank in range(4)])
    else:
        assert [rank for rank, _ in json.loads(told.replace("(", "[").replace(")", "]").replace("'", '"'))] == [
            0,
            1,
            2,
            3,
        ]
    started = [event["involvedObject"]["name"] for event in events(server, workload_id, "Started")]
    if policy == "WaitForWorkersReady":
        assert sorted(started, reverse=True).index(f"{name}-launcher-0") == 2
    assert len(started) == 3


@pytest.mark.debian("openmpi-bin")
def test_a_program_of_mpi_that_fails_fails_the_launcher(server: Server) -> None:
    spec = mpi("mpi", "mpirun -n 2 sh -c 'exit 3'", numWorkers=2, backoffLimit=0)
    workload_id = train(server, "mpi-fails", spec)
    server.until_phase(workload_id, "Failed", patience=120)
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "the end of the workers")
    codes = {pod["name"]: pod.get("exitCode") for pod in all_pods(server, workload_id)}
    assert codes["mpi-fails-launcher-0"] == 3


@pytest.mark.debian("openmpi-bin", "python3-mpi4py")
def test_mpi_runs_isolated_as_an_unprivileged_user(make_server: Any) -> None:
    """A shared server: each pod with its own processes, home and /tmp, none with a token."""
    server = make_server("--retry-delay", "20")
    spec = mpi("shared", f"mpirun -n 2 {PYTHON} -c {shlex.quote(GATHER)}; env | grep -ci token", numWorkers=2)
    workload_id = train(server, "shared", spec)
    server.until_phase(workload_id, "Completed", "Failed", patience=120)
    assert outputs(server, workload_id)["shared-launcher-0"].endswith("0\n")
    assert "(1, '" in outputs(server, workload_id)["shared-launcher-0"]


def told(server: Server, name: str, framework: str, workers: int = 2, **more: Any) -> dict[str, dict[str, str]]:
    """The variables of every pod, by role and index."""
    beside = more.pop("beside", {})
    spec = program(TELL, distributedFramework=framework, numWorkers=workers, **more)
    workload_id = train(server, name, spec, **beside)
    server.until_phase(workload_id, "Completed")
    # The workload ends with its master; workers may still be about to print.
    until(lambda: all(outputs(server, workload_id).values()), "the output of every pod")
    return {pod.removeprefix(f"{name}-"): json.loads(text) for pod, text in outputs(server, workload_id).items()}


def chosen(found: dict[str, dict[str, str]], *names: str) -> dict[str, tuple[str, ...]]:
    return {pod: tuple(variables[name] for name in names) for pod, variables in found.items()}


def host(pod: str, name: str) -> str:
    """By which its pods reach it; torchrun needs the very name that its host says of itself."""
    return f"{name}-{pod}" if HAS_NETWORKS else "127.0.0.1"


def test_pytorch_variables(server: Server) -> None:
    found = told(server, "pet", "PyTorch")
    names = ("RANK", "WORLD_SIZE", "PET_NODE_RANK", "PET_NNODES")
    assert chosen(found, *names) == {
        "master-0": ("0", "3", "0", "3"),
        "worker-0": ("1", "3", "1", "3"),
        "worker-1": ("2", "3", "2", "3"),
    }
    [place] = set(chosen(found, "MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT").values())
    assert place[:2] == place[2:]
    assert place[0] == host("master-0", "pet")


def test_pytorch_variables_without_a_master(server: Server) -> None:
    found = told(server, "bare", "PyTorch", beside={"masterSpecSameAsWorker": False})
    assert chosen(found, "RANK", "WORLD_SIZE", "MASTER_ADDR") == {
        "worker-0": ("0", "2", host("worker-0", "bare")),
        "worker-1": ("1", "2", host("worker-0", "bare")),
    }


def test_pytorch_variables_of_an_elastic_training(server: Server) -> None:
    found = told(server, "range", "PyTorch", minReplicas=1, maxReplicas=3)
    values = chosen(found, "PET_NNODES", "PET_RDZV_BACKEND", "PET_RDZV_ID")
    assert set(values.values()) == {("2:4", "c10d", "range")}
    assert "master-0" in values
    place = f"{found['master-0']['MASTER_ADDR']}:{found['master-0']['MASTER_PORT']}"
    assert {variables["PET_RDZV_ENDPOINT"] for variables in found.values()} == {place}


def test_tensorflow_variables(server: Server) -> None:
    found = {pod: json.loads(each["TF_CONFIG"]) for pod, each in told(server, "tf", "TF").items()}
    assert {pod: (each["task"]["type"], each["task"]["index"]) for pod, each in found.items()} == {
        "master-0": ("chief", 0),
        "worker-0": ("worker", 0),
        "worker-1": ("worker", 1),
    }
    [cluster] = {json.dumps(each["cluster"]) for each in found.values()}
    places = json.loads(cluster)
    assert [len(places["chief"]), len(places["worker"])] == [1, 2]
    assert len({*places["chief"], *places["worker"]}) == 3
    assert places["worker"][1].rpartition(":")[0] == host("worker-1", "tf")


def test_tensorflow_variables_without_a_chief(server: Server) -> None:
    found = told(server, "flat", "TF", beside={"masterSpecSameAsWorker": False})
    clusters = [json.loads(each["TF_CONFIG"])["cluster"] for each in found.values()]
    assert [set(cluster) for cluster in clusters] == [{"worker"}, {"worker"}]


def test_xgboost_variables(server: Server) -> None:
    found = told(server, "boost", "XGBoost")
    assert chosen(found, "RANK", "WORLD_SIZE", "DMLC_TASK_ID", "DMLC_NUM_WORKER") == {
        "master-0": ("0", "3", "0", "3"),
        "worker-0": ("1", "3", "1", "3"),
        "worker-1": ("2", "3", "2", "3"),
    }
    assert {each["MASTER_ADDR"] for each in found.values()} == {host("master-0", "boost")}
    workers = ",".join(host(f"worker-{number}", "boost") for number in range(2))
    assert {each["WORKER_ADDRS"] for each in found.values()} == {workers}


def test_jax_variables(server: Server) -> None:
    found = told(server, "jax", "JAX")
    assert chosen(found, "PROCESS_ID", "NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES") == {
        "worker-0": ("0", "2", "0", "2"),
        "worker-1": ("1", "2", "1", "2"),
    }
    [place] = {each["JAX_COORDINATOR_ADDRESS"] for each in found.values()}
    assert place == f"{found['worker-0']['COORDINATOR_ADDRESS']}:{found['worker-0']['COORDINATOR_PORT']}"
    assert place.rpartition(":")[0] == host("worker-0", "jax")


def test_variables_of_the_spec_win(server: Server) -> None:
    found = told(server, "own", "PyTorch", 1, environmentVariables=[{"name": "MASTER_PORT", "value": "1234"}])
    assert {each["MASTER_PORT"] for each in found.values()} == {"1234"}


@pytest.mark.parametrize(("policy", "runs_on"), [("None", True), ("Running", False), ("All", False)])
def test_clean_pod_policy(server: Server, policy: str, runs_on: bool) -> None:
    """What becomes of workers that still run when the master has ended."""
    master = {"image": "x", "command": "true"}
    name = f"clean-{policy.lower()}"
    workload_id = train(server, name, program(SLEEP, cleanPodPolicy=policy), masterSpec=master)
    server.until_phase(workload_id, "Completed")
    if runs_on:
        assert server.workload(workload_id)["runningPods"] == 1
    until(lambda: server.workload(workload_id)["runningPods"] == runs_on, "what the policy says")
    delete(server, workload_id, DISTRIBUTED)


def test_an_elastic_training_starts_with_what_fits(make_server: Any) -> None:
    """Two of four workers have room beside the master: with a minimum of one it runs, and the others wait."""
    server = make_server("--personal", "--retry-delay", "20", "--node", "small:cpu=3,memory=4Gi,gpus=0")
    spec = program(SLEEP, numWorkers=4, minReplicas=1, compute={"cpuCoreRequest": 1})
    workload_id = train(server, "partly", spec)
    server.until_phase(workload_id, "Running")
    until(lambda: server.workload(workload_id)["runningPods"] == 3, "as many as fit")
    whole = train(server, "wholly", program(SLEEP, numWorkers=4, compute={"cpuCoreRequest": 1}))
    delete(server, workload_id, DISTRIBUTED)
    until(lambda: events(server, whole, "Unschedulable"), "a reason to wait")
    assert server.workload(whole)["runningPods"] == 0
    delete(server, whole, DISTRIBUTED)


def test_a_launcher_always_is(server: Server) -> None:
    spec = mpi("alone", "true", numWorkers=1)
    answer = server.call("POST", DISTRIBUTED, request(server, "alone", spec, masterSpecSameAsWorker=False))
    assert answer.status == 400, answer
    assert "always has a launcher" in answer.json["complianceIssues"][0]["details"]
