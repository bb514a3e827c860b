"""Makes the script of an sbatch file run without Slurm: sets the variables that it mentions, and defines `srun`.

Every pod runs the whole script, and stands for one node. Called by `slurm.py`.
"""

import re

import msgspec

from fairlead.formats.foreign.tasks import with_variables
from fairlead.model import array

_SRUN = re.compile(r"^[^#\n]*\bsrun\b", re.MULTILINE)
_MPI = re.compile(r"^[^#\n]*\b(mpirun|mpiexec)\b", re.MULTILINE)
_HOSTS = re.compile(r"^[^#\n]*\bscontrol show hostnames?\b", re.MULTILINE)
#: Options of `srun` that have no value may stand alone; others are followed by theirs. `-n` is the number of all tasks.
_FUNCTION = """srun() {{
  local task total={total} status=0 pids=()
  while [[ "${{1:-}}" == -* ]]; do
    case "$1" in
      -n | --ntasks) total=$2; shift 2 ;;
      --ntasks=*) total=${{1#*=}}; shift ;;
      --*=* | -[A-Za-z]?* | -[lu] | --label | --unbuffered | --exclusive | --overlap | --pty) shift ;;
      *) shift 2 ;;
    esac
  done
  for ((task = {rank} * {tasks}; task < ({rank} + 1) * {tasks} && task < total; task++)); do
    SLURM_LOCALID=$((task % {tasks})) SLURM_PROCID=$task "$@" &
    pids+=($!)
  done
  for task in "${{pids[@]}}"; do wait "$task" || status=$?; done
  return "$status"
}}"""
#: Scripts ask for the names of their nodes to find the first one.
_SCONTROL = 'scontrol() { echo "$MASTER_ADDR"; }'


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """How the tasks of a job are spread."""

    nodes: int
    per_node: int
    #: GPUs of each node, and processors of each task.
    gpus: int = 0
    cpus: float = 1
    #: Tasks of an array; 0 if it is none.
    array: int = 0
    #: Whether the script runs once, in a launcher, and not on each node.
    is_launched: bool


def uses_srun(script: str) -> bool:
    return bool(_SRUN.search(script))


def is_mpi(script: str) -> bool:
    """Whether the script starts its processes by MPI, which then needs a launcher."""
    return bool(_MPI.search(script)) and not uses_srun(script)


def render_script(script: str, tasks: Tasks) -> str:
    is_spread = tasks.nodes > 1 and not tasks.is_launched
    rank = "$RANK" if is_spread else "0"
    parts = []
    if uses_srun(script):
        total = tasks.nodes * tasks.per_node
        parts.append(_FUNCTION.format(total=total, tasks=tasks.per_node, rank=rank.removeprefix("$")))
    if is_spread and _HOSTS.search(script):
        parts.append(_SCONTROL)
    return with_variables("\n".join([*parts, script]), _variables(tasks, rank, is_spread))


def _variables(tasks: Tasks, rank: str, is_spread: bool) -> dict[str, str]:
    nodes = "$WORLD_SIZE" if is_spread else str(tasks.nodes)
    address = "$MASTER_ADDR" if is_spread else "localhost"
    of_array = {
        "SLURM_ARRAY_TASK_ID": f"${array.VARIABLE}",
        "SLURM_ARRAY_TASK_COUNT": str(tasks.array),
        "SLURM_ARRAY_JOB_ID": "$RUNAI_JOB_UUID",
    }
    return {
        **(of_array if tasks.array else {}),
        **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), nodes),
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(tasks.nodes * tasks.per_node)),
        "SLURM_NTASKS_PER_NODE": str(tasks.per_node),
        "SLURM_NODEID": rank,
        **dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_SUBMIT_HOST"), address),
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), "$RUNAI_JOB_UUID"),
        "SLURM_JOB_NAME": "$RUNAI_JOB_NAME",
        "SLURM_SUBMIT_DIR": "$PWD",
        **dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), str(tasks.gpus)),
        **dict.fromkeys(("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"), str(tasks.cpus)),
    }
