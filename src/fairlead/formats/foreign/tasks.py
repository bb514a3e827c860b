"""What the readers of other systems' files share: the result, environment variables, sizes, GPUs, several nodes."""

import re
import shlex
from typing import Any

import msgspec
from msgspec import UNSET

from fairlead.formats.losses import Loss, Source
from fairlead.formats.plain import Plain
from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.kind import Kind

_NOT_HERE = "has no equivalent"
_NO_IMAGE = "names no image; add one before you submit (fairlead.local/host uses the files of one machine)"
_CALLERS = "is a variable of the caller; add it as a value or as a secret"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\+?\Z", re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)")


class ForeignTask(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign description in the form of a creation request."""

    name: str = ""
    spec: Plain
    #: With paths of the foreign description.
    losses: list[Loss]
    project: str = ""
    #: None for the kind that was asked for.
    kind: Kind | None = None


def unconverted(source: Source, reason: str = _NOT_HERE) -> list[Loss]:
    rest = [
        Loss(path=path, reason=reason, value=value)
        for path, value in source.left.items()
        if value not in (None, {}, [])
    ]
    return source.losses + rest


def missing_image(spec: Plain, what: str) -> list[Loss]:
    """What is lost if the foreign description, such as `an sbatch script`, relies on an image of its system."""
    return [] if "image" in spec else [Loss(path="image", reason=f"{what} {_NO_IMAGE}")]


def shell(commands: str) -> dict[str, str]:
    """Command and arguments that run a shell script."""
    return {"command": "bash", "args": f"-c {shlex.quote(commands)}"}


def variables(given: Any) -> list[Plain]:
    """Environment variables from a mapping, or from a list of NAME=VALUE."""
    if isinstance(given, dict):
        return [{"name": name, "value": text_of(value)} for name, value in given.items() if value is not None]
    pairs = (str(item).partition("=") for item in given or ())
    return [{"name": name, "value": value} for name, equals, value in pairs if equals]


def take_variables(spec: Plain, source: Source, path: str) -> None:
    """Environment variables of a mapping or of a list; those without a value are the caller's own, and lost."""
    given = take_all(source, path)
    converted = variables(given)
    if converted:
        spec["environmentVariables"] = converted
    pairs = (
        given.items() if isinstance(given, dict) else [(str(item), "=" in str(item) or None) for item in given or ()]
    )
    for name, value in pairs:
        if value is None:
            source.losses.append(Loss(path=f"{path}.{name}", reason=_CALLERS, value=name))


def size(text: object, unit: str = "") -> str:
    """A size such as `16GB`, `16GB..` or 16 as a quantity; empty if it is not a size."""
    match = _SIZE.match(str(text).split("..")[0].strip())
    if match is None:
        return ""
    number, letter, binary = match.groups()
    letter = letter.upper() or unit
    return f"{number}{letter}{'i' if binary and letter else ''}"


def count(text: object) -> float | int | None:
    """The minimum of a count such as 4, `4+` or `4..8`."""
    match = _COUNT.match(str(text).split("..")[0].strip())
    if match is None:
        return None
    number = float(match.group(1))
    return int(number) if number.is_integer() else number


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def take_all(source: Source, path: str) -> Any:
    """A member with everything below it; None if it does not exist."""
    value: Any = source.plain
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if value is not None:
        for leaf in [leaf for leaf in source.left if leaf == path or leaf.startswith((f"{path}.", f"{path}["))]:
            del source.left[leaf]
    return value


def _accelerator(text: object) -> tuple[int, str]:
    """The number and the type in `A100:8`, `8` or `{A100: 8}`."""
    if isinstance(text, dict):
        name, number = next(iter(text.items()), ("", 1))
        return int(count(number) or 1), str(name)
    parts = str(text).split(":")
    numbers = [word for word in parts if word.isdecimal()]
    names = [word for word in parts if not word[:1].isdigit()]
    return int(numbers[0]) if numbers else 1, names[0] if names else ""


def ask_for_gpus(spec: Plain, source: Source, path: str, given: object) -> None:
    number, name = _accelerator(given)
    spec.setdefault("compute", {})["gpuDevicesRequest"] = number
    if name or (not isinstance(given, dict) and not str(given).isdecimal()):
        reason = "node pools choose the type and memory of GPUs"
        source.losses.append(Loss(path=path, reason=reason, value=name or given))


def ask_for_compute(spec: Plain, source: Source, names: tuple[str, str]) -> None:
    cpus, memory = (take_all(source, f"resources.{name}") for name in names)
    compute: Plain = {}
    if cpus is not None and count(cpus) is not None:
        compute["cpuCoreRequest"] = count(cpus)
    if memory is not None and size(memory, "G"):
        compute["cpuMemoryRequest"] = size(memory, "G")
    if compute:
        spec.setdefault("compute", {}).update(compute)


def annotate(spec: Plain, name: str, value: str) -> None:
    spec.setdefault("annotations", []).append({"name": name, "value": value})


def take_name(source: Source) -> str:
    name = source.take("name")
    return "" if name is UNSET else str(name)


def take_ports(spec: Plain, source: Source, path: str) -> None:
    """Ports that a pod listens on, from a number, from `HOST:CONTAINER`, or from a list of those."""
    given = take_all(source, path)
    ports = []
    for number, port in enumerate(given if isinstance(given, list) else [] if given is None else [given]):
        inside = port_in(port)
        if inside is not None:
            ports.append({"container": inside, "serviceType": "ClusterIP"})
        else:
            source.losses.append(Loss(path=f"{path}[{number}]", reason="is not a port", value=port))
    if ports:
        spec["ports"] = ports


def port_in(given: object) -> int | None:
    inside = str(given).rpartition(":")[2]
    return int(inside) if inside.isascii() and inside.isdecimal() and len(inside) < 6 else None


def span_of(given: object) -> tuple[int, int] | None:
    """The bounds in `2`, `1..4` or `{min: 1, max: 4}`."""
    if isinstance(given, dict):
        first, last = given.get("min", 0), given.get("max", given.get("min", 1))
    else:
        first, _, last = str(given).partition("..")
    if not str(first).isdecimal() or not str(last or first).isdecimal():
        return None
    return int(first), int(last or first)


def run_on_nodes(spec: Plain, nodes: int) -> Kind:
    """Make the spec that of one pod on each node, which find each other by the variables of PyTorch."""
    spec["distributedFramework"] = "PyTorch"
    spec["numWorkers"] = nodes - 1
    return DISTRIBUTED


def with_variables(script: str, values: dict[str, str]) -> str:
    """The script, with the variables of another system that it mentions set before it."""
    lines = [f"export {name}={value}" for name, value in values.items() if re.search(rf"\b{re.escape(name)}\b", script)]
    return "\n".join([*lines, script])
