"""Reads an sbatch script as the spec of a training: the `#SBATCH` lines are the request, the script is the command.

Called by `convert`. Options without an equivalent are listed.
"""

import re
import shlex

from fairlead.formats.foreign.tasks import ForeignTask, count, shell, variables
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain

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
}
_ARRAY = re.compile(r"([\d,:-]+)(?:%([1-9]\d{0,8}))?\Z")
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?\Z")
_GPUS = re.compile(r"(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d+)\Z")
_OUTPUT = ("output", "error", "open-mode")
_KEPT = "the server stores the output; `fairlead logs` shows it"


def read_sbatch(text: str) -> ForeignTask:
    options = _options(text)
    spec: Plain = shell(_script(text))
    losses: list[Loss] = []
    compute: Plain = {}
    for name, value in options:
        reason = _apply(name, value, spec, compute)
        if reason:
            losses.append(Loss(path=f"#SBATCH --{name}", reason=reason, value=value))
    if compute:
        spec["compute"] = compute
    if "image" not in spec:
        losses.append(Loss(path="image", reason="an sbatch script names no image; add one before you submit"))
    name = next((value for option, value in options if option == "job-name"), "")
    return ForeignTask(name=name, spec=spec, losses=losses)


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


def _apply(name: str, value: str, spec: Plain, compute: Plain) -> str:
    """Convert one option; returns the reason if it is lost."""
    if name == "job-name":
        return ""
    if name in ("gres", "gpus", "gpus-per-node", "gpus-per-task"):
        match = _GPUS.match(value)
        if match is None:
            return "is not a plain number of GPUs"
        compute["gpuDevicesRequest"] = int(match.group(1))
        return "node pools choose the type of GPU" if re.search(r"[A-Za-z].*:.*\d", value[4:]) else ""
    if name == "cpus-per-task":
        compute["cpuCoreRequest"] = count(value)
        return ""
    if name in ("mem", "mem-per-gpu"):
        compute["cpuMemoryRequest"] = _memory(value)
        return "" if name == "mem" else "applies to the whole pod, not to each GPU"
    if name == "array":
        return _sweep(value, spec)
    if name in ("nodes", "ntasks", "ntasks-per-node") and value in ("1", "1-1"):
        return ""
    simple = {"partition": "nodePools", "chdir": "workingDir", "container-image": "image", "constraint": "nodeType"}
    if name in simple:
        spec[simple[name]] = [part for part in value.split(",") if part] if name == "partition" else value
        return ""
    if name == "export" and value not in ("ALL", "NONE", ""):
        spec["environmentVariables"] = variables(value.split(","))
        return ""
    return _KEPT if name in _OUTPUT else "has no equivalent"


def _memory(value: str) -> str:
    """Slurm uses binary units, and megabytes if there is no unit."""
    digits = value.rstrip("KMGTBkmgtb")
    unit = value[len(digits) : len(digits) + 1].upper() or "M"
    return f"{digits}{unit}i"


def _sweep(value: str, spec: Plain) -> str:
    match = _ARRAY.match(value)
    if match is None:
        return "is not an array of numbers"
    total = 0
    for part in match.group(1).split(","):
        span = _SPAN.match(part)
        if span is None:
            return "is not an array of numbers"
        first, last, step = span.groups()
        total += len(range(int(first), int(last) + 1, int(step or 1))) if last else 1
    spec["completions"] = total
    spec["parallelism"] = int(match.group(2) or total)
    return "pods get no index; only their number is converted"
