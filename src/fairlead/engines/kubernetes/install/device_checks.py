"""What the doctor says about GPUs that drivers of dynamic resource allocation (DRA) offer. Pure."""

from collections.abc import Collection, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.devices import find_gpus
from fairlead.engines.kubernetes.render.device_claims import CLASS_ANNOTATION
from fairlead.engines.kubernetes.render.labels import GPU
from fairlead.model.finding import Finding

_WHAT = "GPUs of DRA drivers"


def judge_devices(
    nodes: Sequence[objects.Node], slices: Sequence[objects.ResourceSlice], classes: Collection[str]
) -> list[Finding]:
    """Nothing is said of a cluster whose nodes have no such driver."""
    gpus = find_gpus(slices)
    if not gpus:
        return []
    offered = f"{sum(map(len, gpus.values()))} on {len(gpus)} node{'s' if len(gpus) > 1 else ''}"
    # KAI looks for this word, too.
    usable = sorted(name for name in classes if "gpu" in name.lower())
    if not usable:
        advice = "Install the driver's DeviceClass; KAI counts claims as GPUs if its name contains gpu"
        return [Finding(_WHAT, "missing", f"{offered}, but no DeviceClass for them", advice)]
    findings = [
        Finding(_WHAT, "ok", f"{offered}; request whole GPUs with the annotation {CLASS_ANNOTATION}={usable[0]}"),
    ]
    twice = [node.metadata.name for node in nodes if node.metadata.name in gpus and _extended_gpus(node)]
    if twice:
        advice = "Switch off the device plugin or the DRA driver there: both would give the same GPU to two pods"
        findings.append(Finding("GPUs offered twice", "note", ", ".join(twice[:5]), advice))
    return findings


def _extended_gpus(node: objects.Node) -> int:
    """The GPUs that a device plugin offers as an extended resource."""
    return int(node.status.allocatable.get(GPU, 0))
