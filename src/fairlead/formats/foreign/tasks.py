"""Reads dstack and SkyPilot tasks as specs of trainings.

Called by `convert`. The common part is converted, everything else is listed as a loss.
"""

import re
import shlex
from typing import Any

import msgspec
from msgspec import UNSET

from fairlead.formats.losses import Loss, Source
from fairlead.formats.plain import Plain

_NOT_HERE = "has no equivalent"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\+?\Z", re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)")


class ForeignTask(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign description in the form of a creation request."""

    name: str = ""
    spec: Plain
    #: With paths of the foreign description.
    losses: list[Loss]
    project: str = ""


def unconverted(source: Source, reason: str = _NOT_HERE) -> list[Loss]:
    rest = [
        Loss(path=path, reason=reason, value=value)
        for path, value in source.left.items()
        if value not in (None, {}, [])
    ]
    return source.losses + rest


def shell(commands: str) -> dict[str, str]:
    """Command and arguments that run a shell script."""
    return {"command": "bash", "args": f"-c {shlex.quote(commands)}"}


def variables(given: Any) -> list[Plain]:
    """Environment variables from a mapping, or from a list of NAME=VALUE."""
    if isinstance(given, dict):
        return [{"name": name, "value": _text(value)} for name, value in given.items() if value is not None]
    pairs = (str(item).partition("=") for item in given or ())
    return [{"name": name, "value": value} for name, equals, value in pairs if equals]


def size(text: Any, unit: str = "") -> str:
    """A size such as `16GB`, `16GB..` or 16 as a quantity; empty if it is not a size."""
    match = _SIZE.match(str(text).split("..")[0].strip())
    if match is None:
        return ""
    number, letter, binary = match.groups()
    letter = letter.upper() or unit
    return f"{number}{letter}{'i' if binary and letter else ''}"


def count(text: Any) -> float | int | None:
    """The minimum of a count such as 4, `4+` or `4..8`."""
    match = _COUNT.match(str(text).split("..")[0].strip())
    if match is None:
        return None
    number = float(match.group(1))
    return int(number) if number.is_integer() else number


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taken(source: Source, path: str) -> Any:
    """A member with everything below it; None if it does not exist."""
    value: Any = source.plain
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if value is not None:
        for leaf in [leaf for leaf in source.left if leaf == path or leaf.startswith((f"{path}.", f"{path}["))]:
            del source.left[leaf]
    return value


def _accelerator(text: Any) -> tuple[int, str]:
    """The number and the type in `A100:8`, `8` or `{A100: 8}`."""
    if isinstance(text, dict):
        name, number = next(iter(text.items()), ("", 1))
        return int(count(number) or 1), str(name)
    parts = str(text).split(":")
    numbers = [word for word in parts if word.isdecimal()]
    names = [word for word in parts if not word[:1].isdigit()]
    return int(numbers[0]) if numbers else 1, names[0] if names else ""


def _ask_for_gpus(spec: Plain, source: Source, path: str, given: Any) -> None:
    number, name = _accelerator(given)
    spec.setdefault("compute", {})["gpuDevicesRequest"] = number
    if name or (not isinstance(given, dict) and not str(given).isdecimal()):
        reason = "node pools choose the type and memory of GPUs"
        source.losses.append(Loss(path=path, reason=reason, value=name or given))


def _ask_for_compute(spec: Plain, source: Source, names: tuple[str, str]) -> None:
    cpus, memory = (_taken(source, f"resources.{name}") for name in names)
    compute: Plain = {}
    if cpus is not None and count(cpus) is not None:
        compute["cpuCoreRequest"] = count(cpus)
    if memory is not None and size(memory, "G"):
        compute["cpuMemoryRequest"] = size(memory, "G")
    if compute:
        spec.setdefault("compute", {}).update(compute)


def read_dstack(task: Plain) -> ForeignTask:
    """A dstack task."""
    source = Source(task)
    spec: Plain = {}
    _taken(source, "type")
    image = source.take("image")
    if image is not UNSET:
        spec["image"] = str(image)
    commands = _taken(source, "commands")
    if commands:
        spec.update(shell("\n".join(str(line) for line in commands)))
    folder = source.take("working_dir")
    if folder is not UNSET:
        spec["workingDir"] = str(folder)
    env = variables(_taken(source, "env"))
    if env:
        spec["environmentVariables"] = env
    _ask_for_compute(spec, source, ("cpu", "memory"))
    gpu = _taken(source, "resources.gpu")
    if isinstance(gpu, dict):
        given = gpu.get("count", 1)
        _ask_for_gpus(spec, source, "resources.gpu.name", {str(gpu.get("name", "")): given})
        source.losses += [
            Loss(path=f"resources.gpu.{name}", reason="is chosen by node pools", value=value)
            for name, value in gpu.items()
            if name not in ("count", "name")
        ]
    elif gpu is not None:
        _ask_for_gpus(spec, source, "resources.gpu", gpu)
    if _taken(source, "resources.shm_size") is not None:
        spec.setdefault("compute", {})["largeShmRequest"] = True
    _read_ports(spec, source)
    return ForeignTask(name=_named(source), spec=spec, losses=unconverted(source))


def _read_ports(spec: Plain, source: Source) -> None:
    ports = []
    given = _taken(source, "ports")
    for number, port in enumerate(given if isinstance(given, list) else ()):
        inside = str(port).rpartition(":")[2]
        if inside.isascii() and inside.isdecimal() and len(inside) < 6:
            ports.append({"container": int(inside), "serviceType": "ClusterIP"})
        else:
            source.losses.append(Loss(path=f"ports[{number}]", reason="is not a port", value=port))
    if ports:
        spec["ports"] = ports


def _named(source: Source) -> str:
    name = source.take("name")
    return "" if name is UNSET else str(name)


def read_skypilot(task: Plain) -> ForeignTask:
    """A SkyPilot task: setup and run become one script."""
    source = Source(task)
    spec: Plain = {}
    setup, run = source.take("setup"), source.take("run")
    script = "\n".join(str(part).strip() for part in (setup, run) if part is not UNSET)
    if script:
        spec.update(shell(script))
    image = source.peek("resources.image_id")
    if image is not UNSET and str(image).startswith("docker:"):
        spec["image"] = str(source.take("resources.image_id")).removeprefix("docker:")
    gpus = _taken(source, "resources.accelerators")
    if gpus is not None:
        _ask_for_gpus(spec, source, "resources.accelerators", gpus)
    _ask_for_compute(spec, source, ("cpus", "memory"))
    env = variables(_taken(source, "envs"))
    if env:
        spec["environmentVariables"] = env
    if source.peek("num_nodes") == 1:
        source.take("num_nodes")
    return ForeignTask(name=_named(source), spec=spec, losses=unconverted(source))
