"""Writes a workload as the request that would create it. Called by `convert`, by `apply` and by the server."""

import msgspec

from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.kinds.kind import outside_spec_names


def request_body(workload: IntermediateWorkload) -> Plain:
    """The creation request without the ids that only a server knows."""
    beside = outside_spec_names(workload.kind)
    spec = {name: value for name, value in workload.spec.items() if name not in beside}
    body = {"name": workload.name, "useGivenNameAsPrefix": workload.is_prefix, "spec": spec}
    return body | {name: workload.spec[name] for name in beside if name in workload.spec}


def render(workload: IntermediateWorkload) -> ConversionResult:
    body = request_body(workload)
    losses = list(workload.losses)
    if workload.project:
        reason = "REST takes the project's id; `submit -f FILE -p PROJECT` fills it in"
        losses.append(Loss(path=workload.project_path, reason=reason, value=workload.project))
    if not workload.is_active:
        losses.append(
            Loss(path="spec.active", reason="a request cannot be suspended; suspend the workload", value=False)
        )
    text = msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
    return ConversionResult(text=text, plain=body, losses=losses)
