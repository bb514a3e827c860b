"""Writes a workload as workload YAML, and Kubernetes objects as YAML text.

Called by `convert`, `diff`, `apply` and the server; `apply` and the server also compare two specs with it.
"""

from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload, Unconvertible, below_spec
from fairlead.formats.losses import Loss, leaves
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.write import declared, render_document
from fairlead.kinds.kind import Kind


def render(workload: IntermediateWorkload) -> ConversionResult:
    """The document; losses of reading the workload come first."""
    if not workload.kind.letter:
        raise Unconvertible([f"Workload YAML has no kind {workload.kind.title}; REST and the command line have it."])
    document, losses = render_document(
        workload.kind,
        workload.spec,
        workload.name,
        is_prefix=workload.is_prefix,
        project=workload.project,
        active=workload.is_active,
    )
    return ConversionResult(
        text=render_yaml(document), plain=document, losses=workload.losses + below_spec(workload.kind, losses)
    )


def render_objects(workload: IntermediateWorkload, objects: list[Plain], losses: list[Loss]) -> ConversionResult:
    """Kubernetes objects that the caller has rendered, as text."""
    new_losses = []
    if workload.is_prefix:
        reason = "objects have exactly this name; the server would add random characters"
        new_losses.append(Loss(path="useGivenNameAsPrefix", reason=reason, value=True))
    if not workload.is_active:
        reason = "objects run when they are applied; suspend the workload on the server"
        new_losses.append(Loss(path="spec.active", reason=reason, value=False))
    return ConversionResult(
        text=render_yaml(*objects),
        plain=objects,
        losses=workload.losses + new_losses + below_spec(workload.kind, losses),
    )


def differences(kind: Kind, now: Plain, wanted: Plain) -> list[str]:
    """Paths at which the spec of a document (`wanted`) differs in meaning from a spec that was submitted.

    Null and default values are the same as not given. Members that workload YAML does not have cannot differ, unless
    the document got them from a template.
    """
    first, second = _effective_leaves(kind, now), _effective_leaves(kind, wanted)
    _, losses = render_document(kind, now, "")
    for loss in losses:
        if loss.is_gone and loss.path not in second:
            first.pop(loss.path, None)
    return sorted(path for path in {*first, *second} if first.get(path) != second.get(path))


def _effective_leaves(kind: Kind, spec: Plain) -> Plain:
    meant = {}
    for path, value in leaves(spec).items():
        field = declared(kind, path)
        is_default = field is not None and field.about.default is not None and field.about.default == value
        if value is not None and value not in ([], {}) and not is_default:
            meant[path] = value
    return meant
