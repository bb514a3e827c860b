"""Reads an sbatch script: the `#SBATCH` lines are the request, the script is the command.

Called by `convert`. A script on one node is a training, one on several nodes a distributed training. Options without
an equivalent are listed. `slurm_script.py` makes the script run without Slurm.
"""

import re
import shlex

from fairlead.formats.foreign.slurm_script import Tasks, is_mpi, render_script, uses_srun
from fairlead.formats.foreign.tasks import ForeignTask, annotate, count, missing_image, run_on_nodes, shell, variables
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.model import after, array, time_limit

_SHORT = {
    "J": "job-name",
    "c": "cpus-per-task",
    "G": "gpus",
    "p": "partition",
    "D": "chdir",
    "a": "array",
    "n": "ntasks",
    "N": "nodes",
    "t": "time",
    "o": "output",
    "e": "error",
    "A": "account",
    "C": "constraint",
    "q": "qos",
    "w": "nodelist",
    "x": "exclude",
    "d": "dependency",
}
_GPUS = re.compile(r"(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d+)\Z")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTkmgt]?)[Bb]?\Z")
_OUTPUT = ("output", "error", "open-mode")
_KEPT = "the server stores the output; `fairlead logs` shows it"
_MAIL = ("mail-type", "mail-user")
_NOTIFIES = "`fairlead notification add` sends mail about your workloads"
_TYPE = "node pools choose the type of GPU"
_PLAIN = {"chdir": "workingDir", "container-image": "image", "constraint": "nodeType"}
#: Options that name nodes, and the operator of their affinity.
_NODES = {"exclude": "NotIn", "nodelist": "In"}
#: Kinds of dependencies, and what precedes the name.
_AFTER = {"afterok": "", "afterany": "any:"}
_JOB_NAME = re.compile(r"(?!\d+\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
#: Options of sizes: they need each other, so they are read together.
_SIZES = frozenset(
    {
        *("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"),
        *("gres", "gpus", "gpus-per-node", "gpus-per-task"),
    }
)


def read_sbatch(text: str) -> ForeignTask:
    options = _options(text)
    spec: Plain = {}
    losses: list[Loss] = []
    sizes = {name: value for name, value in options if name in _SIZES}
    nodes, per_node = _count_tasks(sizes, losses)
    for name, value in options:
        if name not in _SIZES:
            _lose(losses, name, value, _apply(name, value, spec))
    compute = _read_compute(sizes, nodes, per_node, losses)
    if compute:
        spec["compute"] = compute
    script = _script(text)
    if "completions" in spec and nodes > 1:
        _lose(losses, "array", dict(options)["array"], "an array of jobs on several nodes has no equivalent")
        del spec["completions"], spec["parallelism"]
        spec["annotations"] = [each for each in spec["annotations"] if each["name"] != array.ANNOTATION]
    kind = None
    if nodes > 1 and is_mpi(script):
        spec |= {"distributedFramework": "MPI", "numWorkers": nodes, "slotsPerWorker": per_node}
        kind = DISTRIBUTED
    elif nodes > 1:
        kind = run_on_nodes(spec, nodes)
    if uses_srun(script):
        losses.append(Loss(path="srun", reason="is a function that runs the command in each pod", now="a function"))
    tasks = Tasks(
        nodes=nodes,
        per_node=per_node,
        gpus=compute.get("gpuDevicesRequest", 0),
        cpus=count(sizes.get("cpus-per-task", "1")) or 1,
        is_launched=is_mpi(script),
        array=spec.get("completions", 0),
    )
    spec |= shell(render_script(script, tasks))
    losses += missing_image(spec, "an sbatch script")
    name = next((value for option, value in options if option == "job-name"), "")
    return ForeignTask(name=name, spec=spec, losses=losses, kind=kind)


def _lose(losses: list[Loss], name: str, value: str, reason: str) -> None:
    if reason:
        losses.append(Loss(path=f"#SBATCH --{name}", reason=reason, value=value))


def _options(text: str) -> list[tuple[str, str]]:
    options = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        if not stripped.startswith("#SBATCH"):
            continue
        try:
            options_of_line = shlex.split(stripped.removeprefix("#SBATCH"), comments=True)
        except ValueError:
            # An unclosed quote: the line is listed as a loss.
            options.append((stripped.removeprefix("#SBATCH").strip(" -"), ""))
            continue
        while options_of_line:
            word = options_of_line.pop(0)
            name, _, value = word.lstrip("-").partition("=")
            if word.startswith("--"):
                if "=" not in word and options_of_line and not options_of_line[0].startswith("-"):
                    value = options_of_line.pop(0)
            else:
                name, value = _SHORT.get(word[1:2], word[1:2]), word[2:]
                if not value and options_of_line and not options_of_line[0].startswith("-"):
                    value = options_of_line.pop(0)
            options.append((name, value))
    return options


def _script(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(("#SBATCH", "#!"))]
    return "\n".join(lines).strip()


def _apply(name: str, value: str, spec: Plain) -> str:
    """Convert one option that stands for itself; returns the reason if it is lost."""
    if name == "job-name":
        return ""
    if name == "array":
        return _sweep(value, spec)
    if name == "dependency":
        return _wait(value, spec)
    if name == "time":
        seconds = time_limit.read_slurm_time(value)
        if seconds is not None:
            annotate(spec, time_limit.ANNOTATION, str(seconds))
        return "" if seconds is not None else "means no limit"
    if name == "partition":
        spec["nodePools"] = [part for part in value.split(",") if part]
        return ""
    if name in _NODES and re.fullmatch(r"[\w.,-]+", value):
        term = {"key": "kubernetes.io/hostname", "operator": _NODES[name], "values": value.split(",")}
        affinity = spec.setdefault("nodeAffinityRequired", {"nodeSelectorTerms": [{"matchExpressions": []}]})
        affinity["nodeSelectorTerms"][0]["matchExpressions"].append(term)
        return ""
    if name in _PLAIN:
        spec[_PLAIN[name]] = value
        return ""
    if name == "export" and value not in ("ALL", "NONE", ""):
        pairs = value.split(",")
        spec["environmentVariables"] = variables(pairs)
        return "variables of the caller are not passed on" if any("=" not in pair for pair in pairs) else ""
    if name in _MAIL:
        return _NOTIFIES
    return _KEPT if name in _OUTPUT else "has no equivalent"


def _wait(value: str, spec: Plain) -> str:
    """`afterok:NAME` and `afterany:NAME`. Slurm itself takes numbers of jobs, which mean nothing here."""
    dependencies: list[str] = []
    for part in value.split(","):
        word, *names = part.split(":")
        if word not in _AFTER or not names or not all(_JOB_NAME.fullmatch(each) for each in names):
            return "only afterok and afterany with names of workloads are converted; see --after"
        dependencies += [f"{_AFTER[word]}{each}" for each in names]
    annotate(spec, after.ANNOTATION, ",".join(dependencies))
    return ""


def _count_tasks(sizes: dict[str, str], losses: list[Loss]) -> tuple[int, int]:
    """The number of nodes, and of tasks on each."""
    nodes = _whole(sizes.get("nodes", "1").partition("-")[0], 1)
    if "-" in sizes.get("nodes", "") and sizes["nodes"] not in ("1-1", f"{nodes}-{nodes}"):
        _lose(losses, "nodes", sizes["nodes"], f"the smaller number of nodes is requested ({nodes})")
    if "ntasks-per-node" in sizes:
        return nodes, _whole(sizes["ntasks-per-node"], 1)
    tasks = _whole(sizes.get("ntasks", str(nodes)), nodes)
    if tasks % nodes:
        _lose(losses, "ntasks", sizes["ntasks"], f"every node runs equally many tasks ({-(-tasks // nodes)})")
    return nodes, max(-(-tasks // nodes), 1)


def _whole(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and 0 < int(text) < 100_000 else default


def _read_compute(sizes: dict[str, str], nodes: int, per_node: int, losses: list[Loss]) -> Plain:
    """What one pod, which stands for one node, asks for."""
    compute: Plain = {}
    for name, share in (("gres", 1), ("gpus-per-node", 1), ("gpus", 1 / nodes), ("gpus-per-task", per_node)):
        if name in sizes:
            match = _GPUS.match(sizes[name])
            if match is None:
                _lose(losses, name, sizes[name], "is not a plain number of GPUs")
                continue
            compute["gpuDevicesRequest"] = max(round(int(match[1]) * share), 1) if int(match[1]) else 0
            if re.search(r"[A-Za-z].*:", sizes[name].removeprefix("gpu:")):
                _lose(losses, name, sizes[name], _TYPE)
    cores = count(sizes["cpus-per-task"]) if "cpus-per-task" in sizes else None
    if cores is not None:
        compute["cpuCoreRequest"] = cores * per_node
    factors = {
        "mem": 1,
        "mem-per-cpu": (cores or 1) * per_node,
        "mem-per-gpu": compute.get("gpuDevicesRequest", 1),
    }
    for name, factor in factors.items():
        if name in sizes:
            memory = _memory(sizes[name], factor)
            if memory:
                compute["cpuMemoryRequest"] = memory
            else:
                _lose(
                    losses, name, sizes[name], "means all memory of a node" if sizes[name] == "0" else "is not a size"
                )
    return compute


def _memory(value: str, factor: float) -> str:
    """Slurm uses binary units, and megabytes if there is no unit; empty for anything else."""
    match = _SIZE.match(value)
    if match is None or float(match[1]) == 0:
        return ""
    return f"{float(match[1]) * factor:g}{match[2].upper() or 'M'}i"


def _sweep(value: str, spec: Plain) -> str:
    try:
        indices, at_once = array.read_array(value)
    except ValueError as error:
        return str(error)
    spec["completions"] = len(indices)
    spec["parallelism"] = at_once or len(indices)
    annotate(spec, array.ANNOTATION, value.partition("%")[0])
    return ""
