"""What the doctor says about the GPUs of nodes, from what device plugins offer and feature discovery labels. Pure.

Nodes may offer whole GPUs, MIG slices (strategy single: as GPUs; mixed: by their profile), or replicas of GPUs that
pods share by time slicing or MPS. The labels are those of NVIDIA's GPU operator.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.labels import GPU
from fairlead.model.finding import Finding

_NVIDIA = "nvidia.com/"
_MIG = f"{_NVIDIA}mig-"
#: What the device plugin offers if it is told to rename shared GPUs.
_RENAMED = f"{GPU}.shared"
_SHOWN = 5


def judge_gpus(nodes: Sequence[objects.Node]) -> list[Finding]:
    findings = [*_devices(nodes), *_memory(nodes), *_mig(nodes), *_sharing(nodes)]
    if findings or any(_amount(node, GPU) for node in nodes):
        return findings
    advice = "Install the NVIDIA GPU operator, or a device plugin, on the nodes that have GPUs"
    return [Finding("GPUs", "note", f"no node offers {GPU}", advice)]


def count_gpus(nodes: Iterable[objects.Node]) -> tuple[int, int]:
    """The number of nodes that offer GPUs, and of these GPUs."""
    amounts = [amount for node in nodes if (amount := _amount(node, GPU))]
    return len(amounts), sum(amounts)


def _devices(nodes: Iterable[objects.Node]) -> list[Finding]:
    """Nodes of which fewer GPUs are offered than they have: without a device plugin, or with broken GPUs."""
    lacking = []
    for node in nodes:
        labels, offered = node.metadata.labels, _amount(node, GPU) + _amount(node, _RENAMED)
        has = _number(labels, "gpu.count") * max(1, _number(labels, "gpu.replicas"))
        if not has and labels.get(f"{_NVIDIA}gpu.present") == "true" and not _slices(node):
            lacking.append(f"{node.metadata.name} (none)")
        elif offered < has and not _slices(node):
            lacking.append(f"{node.metadata.name} ({offered} of {has})")
    advice = "Check that the device plugin runs there, and the health of the GPUs: nvidia-smi on the node"
    return [Finding("GPU devices", "note", f"not all are offered on {_named(lacking)}", advice)] if lacking else []


def _memory(nodes: Iterable[objects.Node]) -> list[Finding]:
    unlabelled = [
        node.metadata.name for node in nodes if _amount(node, GPU) and not _number(node.metadata.labels, "gpu.memory")
    ]
    advice = "Install GPU feature discovery: requests for GPU memory need the label nvidia.com/gpu.memory"
    return [Finding("GPU labels", "note", f"missing on {_named(unlabelled)}", advice)] if unlabelled else []


def _mig(nodes: Sequence[objects.Node]) -> list[Finding]:
    findings = []
    single = [node.metadata.name for node in nodes if "-MIG-" in node.metadata.labels.get(f"{_NVIDIA}gpu.product", "")]
    if single:
        advice = "Request whole GPUs to get slices of these nodes; KAI gives them no parts of GPUs and no MIG profiles"
        findings.append(Finding("MIG, strategy single", "ok", f"slices count as GPUs on {_named(single)}", advice))
    mixed = [node for node in nodes if _slices(node)]
    if mixed:
        totals = sum((_slices(node) for node in mixed), Counter[str]())
        listed = ", ".join(f"{count} of {profile}" for profile, count in sorted(totals.items()))
        findings.append(Finding("MIG, strategy mixed", "ok", f"{listed}; request them with --mig-profile"))
        idle = [node.metadata.name for node in mixed if _amount(node, GPU)]
        if idle:
            advice = "Give these nodes slices of all GPUs, or none: KAI places only MIG requests on nodes with slices"
            findings.append(Finding("Whole GPUs next to MIG", "note", f"cannot be used on {_named(idle)}", advice))
    failed = [
        node.metadata.name
        for node in nodes
        if node.metadata.labels.get(f"{_NVIDIA}mig.config.state", "success") not in ("success", "pending", "rebooting")
    ]
    if failed:
        advice = "Read the log of the GPU operator's MIG manager on these nodes"
        findings.append(Finding("MIG configuration", "missing", f"failed on {_named(failed)}", advice))
    return findings


def _sharing(nodes: Iterable[objects.Node]) -> list[Finding]:
    """A replica is a GPU to Kubernetes and KAI, in quotas too."""
    findings = []
    by_strategy: dict[str, list[str]] = {}
    for node in nodes:
        labels = node.metadata.labels
        strategy, replicas = labels.get(f"{_NVIDIA}gpu.sharing-strategy", "none"), _number(labels, "gpu.replicas")
        if strategy != "none" and replicas > 1:
            by_strategy.setdefault(strategy, []).append(f"{node.metadata.name} ({replicas} replicas of each)")
    for strategy, node_names in sorted(by_strategy.items()):
        advice = "Each replica counts as one GPU, in quotas too. Use either replicas or KAI's parts of GPUs on a node"
        findings.append(Finding(f"GPUs shared by {strategy}", "note", _named(node_names), advice))
    renamed = [node.metadata.name for node in nodes if _amount(node, _RENAMED)]
    if renamed:
        advice = "Set renameByDefault to false in the device plugin's configuration: workloads request nvidia.com/gpu"
        findings.append(Finding(_RENAMED, "note", f"not used by workloads, on {_named(renamed)}", advice))
    return findings


def _slices(node: objects.Node) -> Counter[str]:
    """MIG slices by profile."""
    names = [name for name in node.status.allocatable if name.startswith(_MIG)]
    return Counter({name.removeprefix(_MIG): amount for name in names if (amount := _amount(node, name))})


def _amount(node: objects.Node, name: str) -> int:
    return int(node.status.allocatable.get(name, 0))


def _number(labels: dict[str, str], name: str) -> int:
    text = labels.get(f"{_NVIDIA}{name}", "")
    return int(text) if text.isdecimal() else 0


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
