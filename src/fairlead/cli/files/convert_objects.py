"""A workload as Kubernetes objects. Called by `convert --to kubernetes`."""

from fairlead.engines.kubernetes.render.workload import render_spec
from fairlead.formats.convert import to_yaml
from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload


def render(workload: IntermediateWorkload) -> ConversionResult:
    objects, losses = render_spec(workload.kind, workload.name, workload.project or "default", workload.spec)
    return to_yaml.render_objects(workload, objects, losses)
