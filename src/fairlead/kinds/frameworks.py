"""How the pods of each framework find each other: the variables that programs expect and that its operator sets.

Called by `distributed.py`. Names of hosts and ports are templates, which the engine fills in.
"""

import json
from collections.abc import Callable

import msgspec

from fairlead.model.pods.podset import OperatorOptions

MASTER, WORKER, LAUNCHER = "master", "worker", "launcher"
#: The host file of the MPI launcher, at the path that the MPI operator uses.
HOST_FILE = "/etc/mpi/hostfile"
PYTORCH_PORT, TENSORFLOW_PORT, XGBOOST_PORT, JAX_PORT = 23456, 2222, 9999, 6666


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a distributed workload."""

    #: The role of the leader; empty if there is none.
    leader: str
    workers: int
    #: The minimum number of workers.
    min_workers: int
    #: Processes on each worker.
    slots: int = 1

    @property
    def total(self) -> int:
        return self.workers + (1 if self.leader else 0)

    @property
    def first(self) -> str:
        """The name of the pod with rank 0."""
        return _pod(self.leader or WORKER, 0)


def _no_files(members: Members, role: str) -> dict[str, str]:
    """Most frameworks use variables only."""
    return {}


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: Its names on the command line.
    commands: tuple[str, ...]
    #: The role of the leader; empty if there is none.
    leader: str
    worker: str = WORKER
    #: Whether there is always a leader.
    always_leads: bool = False
    #: Whether the leader starts the processes on the workers, which only sleep.
    is_launched: bool = False
    is_elastic: bool = False
    #: From the members and a role to the templates of its variables.
    variables: Callable[[Members, str], dict[str, str]]
    #: From the same to the templates of its files.
    files: Callable[[Members, str], dict[str, str]] = _no_files


def _pod(role: str, index: int | str) -> str:
    return f"{{workload}}-{role}-{index}"


def _host(role: str, index: int | str) -> str:
    return f"{{host:{_pod(role, index)}}}"


def _pytorch(members: Members, role: str) -> dict[str, str]:
    host, port = f"{{host:{members.first}}}", f"{{port:{PYTORCH_PORT}+0}}"
    extra = 1 if members.leader else 0
    variables = {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(members.total),
        "RANK": "{ordinal}",
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": port,
        "PET_NODE_RANK": "{ordinal}",
        "PET_NNODES": str(members.total),
        "PYTHONUNBUFFERED": "1",
    }
    if members.min_workers < members.workers:
        variables |= {
            "PET_NNODES": f"{members.min_workers + extra}:{members.total}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{host}:{port}",
            "PET_RDZV_ID": "{workload}",
        }
    return variables


def _tensorflow(members: Members, role: str) -> dict[str, str]:
    offset = 1 if members.leader else 0
    cluster = {
        "worker": [f"{_host(WORKER, n)}:{{port:{TENSORFLOW_PORT}+{n + offset}}}" for n in range(members.workers)]
    }
    if members.leader:
        cluster = {"chief": [f"{_host(MASTER, 0)}:{{port:{TENSORFLOW_PORT}+0}}"], **cluster}
    task = {"type": "chief" if role == MASTER else "worker", "index": "{index}"}
    text = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})
    return {"TF_CONFIG": text.replace('"{index}"', "{index}")}


def _xgboost(members: Members, role: str) -> dict[str, str]:
    host, port = f"{{host:{members.first}}}", f"{{port:{XGBOOST_PORT}+0}}"
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(members.total),
        "RANK": "{ordinal}",
        "WORKER_PORT": port,
        "WORKER_ADDRS": ",".join(_host(WORKER, number) for number in range(members.workers)),
        "DMLC_TRACKER_URI": host,
        "DMLC_TRACKER_PORT": port,
        "DMLC_NUM_WORKER": str(members.total),
        "DMLC_TASK_ID": "{ordinal}",
        "PYTHONUNBUFFERED": "1",
    }


def _jax(members: Members, role: str) -> dict[str, str]:
    host, port = _host(WORKER, 0), f"{{port:{JAX_PORT}+0}}"
    return {
        "COORDINATOR_ADDRESS": host,
        "COORDINATOR_PORT": port,
        "NUM_PROCESSES": str(members.workers),
        "PROCESS_ID": "{ordinal}",
        "JAX_COORDINATOR_ADDRESS": f"{host}:{port}",
        "JAX_NUM_PROCESSES": str(members.workers),
        "JAX_PROCESS_ID": "{ordinal}",
        "PYTHONUNBUFFERED": "1",
    }


def _mpi(members: Members, role: str) -> dict[str, str]:
    variables = {"RUNAI_MPI_NUM_WORKERS": str(members.workers)}
    if role != LAUNCHER:
        return variables
    return variables | {
        "OMPI_MCA_orte_default_hostfile": HOST_FILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        # Workers get it too and require that it exists, although they start no processes.
        "OMPI_MCA_plm_rsh_agent": "{agent} : /bin/false",
        # Workers have no agent with which they could start further processes.
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        # Several workers may run on one machine, and each would bind to its first core.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        # Root in a pod is not root on the machine.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def _mpi_files(members: Members, role: str) -> dict[str, str]:
    lines = (f"{_pod(WORKER, number)} slots={members.slots}\n" for number in range(members.workers))
    return {HOST_FILE: "".join(lines)} if role == LAUNCHER else {}


def operated_by(framework: Framework, members: Members, cleans: str, keys_path: str) -> OperatorOptions:
    """The options for the cluster's operator of the framework."""
    if not framework.is_launched:
        return OperatorOptions(framework=framework.name, cleans=cleans)
    return OperatorOptions(framework=framework.name, cleans=cleans, slots=members.slots, keys_path=keys_path)


FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    for framework in (
        Framework(name="PyTorch", commands=("pytorch",), leader=MASTER, is_elastic=True, variables=_pytorch),
        Framework(
            name="MPI",
            commands=("mpi",),
            leader=LAUNCHER,
            always_leads=True,
            is_launched=True,
            variables=_mpi,
            files=_mpi_files,
        ),
        Framework(name="TF", commands=("tensorflow", "tf"), leader=MASTER, variables=_tensorflow),
        Framework(name="XGBoost", commands=("xgboost",), leader=MASTER, variables=_xgboost),
        Framework(name="JAX", commands=("jax",), leader="", variables=_jax),
    )
}
