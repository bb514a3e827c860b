"""Converts workloads from one dialect into another: a form as YAML or a command, a file as requests.

An addition of Fairlead. Nothing is stored or submitted.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, RequestBody, as_json
from fairlead.api.http.shapes import Shape
from fairlead.api.templates.dialects import DIALECTS, render_losses, write_in_dialect
from fairlead.control.context import Context
from fairlead.formats.convert.dialects import detect, read_any
from fairlead.formats.convert.to_rest import request_body
from fairlead.formats.intermediate import IntermediateWorkload, Unconvertible, find_kind, in_project
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.spec.fields import FieldInfo, Maybe, Spec, Text, value_or

#: Reading a long text would block other requests.
_MAX_CHARACTERS = 200_000


class ConversionBody(Spec, frozen=True, kw_only=True):
    text: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_CHARACTERS)],
        FieldInfo(
            text="Workload YAML, a creation request, or a job of Kubernetes, Slurm, dstack or SkyPilot; its format is "
            "detected."
        ),
    ]
    kind: Annotated[
        Maybe[Text], FieldInfo(text="The kind of workload, for texts that do not name one, such as creation requests.")
    ] = UNSET
    project: Annotated[Maybe[Text], FieldInfo(text="The project's name, for texts that do not name one.")] = UNSET
    to: Annotated[
        Maybe[Text], FieldInfo(text=f"The dialect to write: {', '.join(DIALECTS)}.", default="rest", origin="ours")
    ] = UNSET


class ConvertedWorkload(Shape):
    """One workload of the text."""

    #: The segment of its path: `trainings`.
    kind: str
    name: str
    #: Empty if the text names no project.
    project: str
    #: The creation request without ids.
    request: dict[str, Any]
    #: The workload in the dialect that was asked for.
    text: str
    #: What the result lacks, or has in another form.
    losses: tuple[str, ...]
    remarks: tuple[str, ...]


class ConversionView(Shape):
    workloads: tuple[ConvertedWorkload, ...]


async def convert(call: Call) -> Response:
    body = await receive_json(call, ConversionBody)
    target, project = value_or(body.to, "rest"), value_or(body.project, "")
    if target not in DIALECTS:
        raise Invalid(issues=(ComplianceIssue("to", f"is {target[:60]!r}; it must be one of {', '.join(DIALECTS)}"),))
    try:
        kind = find_kind(body.kind) if body.kind else None
        workloads = read_any(body.text, detect(body.text), kind)
        placed = (in_project(each, project) if project and not each.project else each for each in workloads)
        return as_json(ConversionView(workloads=tuple(_convert(call.context, workload, target) for workload in placed)))
    except Unconvertible as unconvertible:
        issues = tuple(ComplianceIssue("text", line) for line in unconvertible.lines)
        raise Invalid("The text cannot be converted: " + " ".join(unconvertible.lines), issues) from None


def _convert(context: Context, workload: IntermediateWorkload, target: str) -> ConvertedWorkload:
    rendered = write_in_dialect(context, workload, target)
    return ConvertedWorkload(
        kind=workload.kind.rest,
        name=workload.name,
        project=workload.project,
        request=request_body(workload),
        text="".join([] if target == "rest" else render_losses(rendered.losses)) + rendered.text,
        losses=tuple(str(loss) for loss in rendered.losses),
        remarks=tuple(f"{path}: {remark}" for path, remark in workload.remarks),
    )


CONVERSION_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/api/v1/conversions",
        id="convert_workloads",
        tag="Workloads",
        summary="Convert a text with workloads into another dialect; nothing is stored or submitted",
        run=convert,
        body=RequestBody(schema=ConversionBody),
        answers={200: ConversionView, 400: Error, 401: Error, 413: Error, 500: Error, 503: Error},
        is_addition=True,
        is_question=True,
    ),
)
