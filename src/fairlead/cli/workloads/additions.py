"""Flags for Fairlead's own additions to a workload: an array of tasks, a time limit, dependencies.

A request carries them as annotations, which every dialect passes on. Used by `run`, `submit` and `convert`.
"""

from collections.abc import Mapping, Sequence

from fairlead.cli.flags import Flag, UsageError, read_duration
from fairlead.cli.terminal.times import span
from fairlead.client.json_object import Json
from fairlead.model import after, array, time_limit

FLAGS = (
    Flag("array", "Array of tasks as in Slurm: their indices and how many run at once", placeholder="0-99%10"),
    Flag(
        "after",
        "Start after this workload of the project has completed; any:NAME also after it has failed",
        repeatable=True,
        placeholder="NAME",
    ),
    Flag(
        "time",
        "Stop it after this running time, such as 90m, 8h or as in Slurm: 30:00 is 30 minutes",
        placeholder="TIME",
    ),
)
#: The flag that sets each annotation.
FLAG_OF_ANNOTATION = {array.ANNOTATION: "array", after.ANNOTATION: "after", time_limit.ANNOTATION: "time"}


def apply_additions(values: Mapping[str, object], spec: Json) -> None:
    """Set what these flags ask for."""
    if values.get("array"):
        _apply_array(str(values["array"]), spec)
    if values.get("time"):
        _annotate(spec, time_limit.ANNOTATION, str(read_time_limit(str(values["time"]))))
    if values.get("after"):
        _apply_after(values["after"], spec)


def describe_additions(annotations: Sequence[Json]) -> list[tuple[str, str]]:
    """What these flags asked for, as titles and texts."""
    given = {str(each.get("name")): str(each.get("value") or "") for each in annotations}
    limit = given.get(time_limit.ANNOTATION, "")
    return [
        ("Time limit", span(int(limit)) if limit.isdecimal() else limit),
        ("After", given.get(after.ANNOTATION, "")),
        ("Array", given.get(array.ANNOTATION, "")),
    ]


def _apply_after(names: object, spec: Json) -> None:
    text = ",".join(str(name) for name in names) if isinstance(names, list) else str(names)
    try:
        after.read_after(text)
    except ValueError as error:
        raise UsageError(f"--after: {error}.") from None
    _annotate(spec, after.ANNOTATION, text)


def _apply_array(text: str, spec: Json) -> None:
    """One completion for each index, which a pod finds in a variable; the annotation says which indices there are."""
    try:
        indices, at_once = array.read_array(text)
    except ValueError as error:
        raise UsageError(f"--array: {error}.") from None
    spec["completions"] = len(indices)
    spec["parallelism"] = at_once or len(indices)
    _annotate(spec, array.ANNOTATION, text.partition("%")[0])


def read_time_limit(text: str) -> int:
    """Seconds of a duration, or of Slurm's `minutes:seconds`, `hours:minutes:seconds`, `days-hours` and so on."""
    if not text.isdecimal() and (slurm := time_limit.read_slurm_time(text)):
        return slurm
    try:
        seconds = int(read_duration(text))
    except ValueError:
        raise UsageError(
            f"--time must be a duration such as 90m, 8h, 30:00 (30 minutes) or 1-12:00:00, not '{text}'."
        ) from None
    if seconds < 1 or text.isdecimal():
        raise UsageError(f"--time needs a unit, as in 90m or 8h, not '{text}'.")
    return seconds


def _annotate(spec: Json, name: str, value: str) -> None:
    others = [each for each in spec.get("annotations") or () if each.get("name") != name]
    spec["annotations"] = [*others, {"name": name, "value": value}]
