"""Writes a workload as a program for the Python client. Called by the server.

The classes are those of `fairlead.specs`, which are generated from the same declarations.
"""

from collections.abc import Iterator

from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload
from fairlead.formats.losses import Loss
from fairlead.formats.python_specs import class_of, name_of
from fairlead.model.spec.fields import Field, Json, Struct, fields_of

_STEP = "    "


def render(workload: IntermediateWorkload) -> ConversionResult:
    """The program. A prefix of a name and a suspended state have no place in it."""
    losses = list(workload.losses)
    if workload.is_prefix:
        losses.append(Loss(path="useGivenNameAsPrefix", reason="the program gives the whole name", value=True))
    if not workload.is_active:
        reason = "a program always submits; call suspend() afterwards"
        losses.append(Loss(path="spec.active", reason=reason, value=False))
    client = f"fairlead.Client(project={workload.project!r})" if workload.project else "fairlead.Client()"
    spec = "".join(_object(class_of(workload.kind), workload.kind.spec, workload.spec, ""))
    lines = [
        "import fairlead",
        "from fairlead import specs",
        "",
        f"client = {client}",
        f"spec = {spec}",
        f"job = client.submit(spec, name={workload.name!r})",
    ]
    return ConversionResult(text="\n".join(lines) + "\n", plain=lines, losses=losses)


def _object(name: str, struct: Struct, plain: dict[str, Json], indent: str) -> Iterator[str]:
    fields = [field for field in fields_of(struct) if field.rest in plain]
    if not fields:
        yield f"specs.{name}()"
        return
    inner = indent + _STEP
    yield f"specs.{name}(\n"
    for field in fields:
        yield f"{inner}{field.attribute}={''.join(_value(field, plain[field.rest], inner))},\n"
    yield f"{indent})"


def _value(field: Field, value: Json, indent: str) -> Iterator[str]:
    if field.struct is None or not isinstance(value, dict | list):
        yield repr(value)
    elif isinstance(value, dict):
        yield from _object(name_of(field.struct), field.struct, value, indent)
    elif not value:
        yield "[]"
    else:
        inner = indent + _STEP
        yield "[\n"
        for item in value:
            written = _object(name_of(field.struct), field.struct, item, inner) if isinstance(item, dict) else ["None"]
            yield f"{inner}{''.join(written)},\n"
        yield f"{indent}]"
