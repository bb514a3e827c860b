"""What the doctor concludes from what it found in a cluster. It asks nothing by itself.

`doctor.py` and `doctor_kai.py` ask the cluster; `fairlead doctor` prints the findings.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.resources import (
    JAX,
    LEADER_WORKER_SET,
    MPI,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Manifest,
)
from fairlead.engines.kubernetes.install.gpu_checks import count_gpus, judge_gpus
from fairlead.engines.kubernetes.observe.unacknowledged import BINDER, PATIENCE, POD_GROUPER, SCHEDULER_PART
from fairlead.engines.kubernetes.render.labels import SCHEDULER
from fairlead.model.finding import Finding
from fairlead.model.records.organization import NAMESPACE_PREFIX

#: The first version that has everything that is used here, such as pod failure policies.
OLDEST = (1, 31)
KAI_NAMESPACE = "kai-scheduler"
AT_WORK, NEW_PODS = "KAI at work", "New pods"
TRAINING_KINDS = (PYTORCH, TENSORFLOW, XGBOOST, JAX)
_EVICTION_FLAG, _PARTITION_FLAG = "--update-pod-eviction-condition", "--partition-label-value"
_PREEMPTIONS = "KAI reports preemptions"
_WEBHOOK = "failed calling webhook"
_SILENT = {
    POD_GROUPER: "has not created a pod group for {}",
    SCHEDULER_PART: "has not reacted to {}",
    BINDER: "does not bind {}, for which a node is chosen",
}


def judge_version(version: Mapping[str, str], address: str) -> Finding:
    numbers = tuple(int("".join(c for c in version.get(part, "0") if c.isdigit()) or 0) for part in ("major", "minor"))
    text = f"Kubernetes {version.get('gitVersion', '?')} at {address}"
    if numbers < OLDEST:
        return Finding("API server", "missing", text, f"Use Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("API server", "ok", text)


# KAI


def judge_programs(deployments: Sequence[Manifest]) -> list[Finding]:
    """KAI's programs without an available pod."""
    unavailable = [
        item["metadata"]["name"]
        for item in deployments
        if item["spec"].get("replicas", 1) and not (item.get("status") or {}).get("availableReplicas")
    ]
    if not unavailable:
        return []
    advice = f"kubectl get pods -n {KAI_NAMESPACE} shows why"
    return [Finding("KAI's programs", "missing", f"no pod is available of {', '.join(sorted(unavailable))}", advice)]


def judge_schedulers(arguments: Sequence[str], pools: Collection[str]) -> list[Finding]:
    """From the arguments with which KAI's programs are started, for a cluster whose nodes are in these pools."""
    if not arguments:
        advice = f"Check that its schedulers have {_EVICTION_FLAG}, and that each node pool has a scheduler"
        message = f"unknown, because KAI does not run in namespace {KAI_NAMESPACE}"
        return [Finding(_PREEMPTIONS, "note", message, advice)]
    pairs = set(pairwise((*arguments, "")))
    findings = [_eviction_condition(pairs)]
    lacking = sorted(pool for pool in pools if (_PARTITION_FLAG, pool) not in pairs)
    if lacking:
        advice = f"Start a KAI scheduler for each, with {_PARTITION_FLAG}=<pool>, or let KAI's operator do it"
        findings.append(Finding("Schedulers of pools", "missing", f"none for {', '.join(lacking)}", advice))
    elif pools:
        findings.append(Finding("Schedulers of pools", "ok", f"one for each of {', '.join(sorted(pools))}"))
    return findings


def _eviction_condition(pairs: Collection[tuple[str, str]]) -> Finding:
    """Without this flag KAI does not report that it preempted a pod, and Jobs count the preemption as a failure."""
    if any(flag == _EVICTION_FLAG and value != "false" for flag, value in pairs):
        return Finding(_PREEMPTIONS, "ok", f"{_EVICTION_FLAG} is set")
    advice = f"Start KAI's scheduler with {_EVICTION_FLAG}; without it, preemptions count as failures of a training"
    return Finding(_PREEMPTIONS, "missing", f"{_EVICTION_FLAG} is not set", advice)


def judge_waiting(silent: Sequence[tuple[str, str]], waiting: int) -> list[Finding]:
    """From (part of KAI, pod) where a part has not reacted to a pod, out of so many pods that have waited for long."""
    advice = f"Check that it runs (kubectl get pods -n {SCHEDULER}, if KAI is installed there), and read its log"
    findings = []
    for part, message in _SILENT.items():
        names = [pod for silent_part, pod in silent if silent_part == part]
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            text = f"{message.format(names[0] + more)}, for {PATIENCE:g} s or longer"
            findings.append(Finding(f"KAI's {part}", "missing", text, advice))
    if findings:
        return findings
    text = (
        f"it has reacted to all waiting pods: {waiting}"
        if waiting
        else f"no pod has waited for it for {PATIENCE:g} s or longer"
    )
    return [Finding(AT_WORK, "ok", text)]


def judge_refusal(error: ApiError) -> Finding:
    """From the refusal of a test pod: only a webhook that does not answer says something about KAI."""
    if _WEBHOOK in error.message:
        advice = "Check that the program behind this webhook runs; KAI's is its admission"
        return Finding(NEW_PODS, "missing", error.message, advice)
    advice = "Nothing, if workloads start; otherwise this may be the reason"
    return Finding(NEW_PODS, "note", f"a test pod was refused: {error.message}", advice)


# Operators


def judge_operators(kinds: Collection[str], disabled: Collection[str] | None) -> list[Finding]:
    """From the kinds that the cluster has, and the features of Knative that are off (None: no Knative)."""
    return [_leader_worker_sets(kinds), _training_operators(kinds), _mpi_operator(kinds), _knative(disabled)]


def _leader_worker_sets(kinds: Collection[str]) -> Finding:
    if LEADER_WORKER_SET.kind in kinds:
        return Finding(LEADER_WORKER_SET.kind, "ok", "distributed inference can run")
    advice = "Install LeaderWorkerSet (lws.sigs.k8s.io) for distributed inference"
    return Finding(LEADER_WORKER_SET.kind, "note", "not installed; distributed inference is refused", advice)


def _training_operators(kinds: Collection[str]) -> Finding:
    installed = [one.kind for one in TRAINING_KINDS if one.kind in kinds]
    lacking = [one.kind for one in TRAINING_KINDS if one.kind not in kinds]
    what, instead = "Kubeflow training operator", "run as pod groups of Fairlead"
    if not lacking:
        return Finding(what, "ok", f"{', '.join(installed)} run distributed trainings")
    if installed:
        return Finding(what, "ok", f"{', '.join(installed)}; trainings for {', '.join(lacking)} {instead}")
    advice = "Nothing, or install Kubeflow's training operator if you want its jobs and variables"
    return Finding(what, "note", f"not installed; distributed trainings other than MPI {instead}", advice)


def _mpi_operator(kinds: Collection[str]) -> Finding:
    what = "Kubeflow MPI operator"
    if MPI.kind in kinds:
        return Finding(what, "ok", "distributed trainings with MPI can run")
    advice = f"Install the MPI operator ({MPI.kind} {MPI.api}) for distributed trainings with MPI"
    return Finding(what, "note", "not installed; distributed trainings with MPI are refused", advice)


def _knative(disabled: Collection[str] | None) -> Finding:
    instead = "inference runs as Deployments that Fairlead scales"
    if disabled is None:
        advice = "Nothing, or install Knative Serving to scale and roll out inference that never scales to zero"
        return Finding("Knative", "note", f"not installed; {instead}", advice)
    if disabled:
        advice = "Enable these in the config map config-features of the namespace knative-serving"
        return Finding("Knative", "note", f"not enabled: {', '.join(disabled)}; {instead}", advice)
    return Finding("Knative", "ok", "inference that never scales to zero runs as its Services")


# Nodes, storage, namespaces


def judge_nodes(nodes: Sequence[objects.Node]) -> list[Finding]:
    if not nodes:
        return [Finding("Nodes", "missing", "the cluster has none", "Add a node")]
    with_gpus, gpus = count_gpus(nodes)
    return [Finding("Nodes", "ok", f"{len(nodes)}; {with_gpus} of them have {gpus} GPUs"), *judge_gpus(nodes)]


def judge_gpu_sharing(*, has_webhook: bool, has_runtime_class: bool) -> Finding:
    """Parts of a GPU need KAI's webhook on new pods and a runtime class for them."""
    what = "Parts of GPUs"
    parts = (("KAI's webhook on pods", has_webhook), ("runtime class nvidia", has_runtime_class))
    lacking = [name for name, is_installed in parts if not is_installed]
    if not lacking:
        return Finding(what, "ok", "KAI's webhook and the runtime class nvidia are installed")
    advice = "Install KAI with GPU sharing (global.gpuSharing=true) and the NVIDIA runtime class"
    return Finding(what, "note", f"missing: {' and '.join(lacking)}", advice)


def judge_autoscaler(name: str, *, has_adjuster: bool) -> list[Finding]:
    """From the autoscaler of nodes that was found, empty for none, and whether KAI helps it with parts of GPUs."""
    what = "Node autoscaler"
    if not name:
        text = "none found; if there is one, start the server with --node-autoscaler on"
        return [Finding(what, "ok", text)]
    findings = [Finding(what, "ok", f"{name}; workloads that fit no present node wait for a new one")]
    if not has_adjuster:
        advice = "Install KAI with global.clusterAutoscaling=true: autoscalers do not see requests for parts of GPUs"
        findings.append(Finding("Node scale adjuster", "note", "KAI's node scale adjuster is not installed", advice))
    return findings


def judge_namespaces(owners: Mapping[str, str], own_cluster: str) -> Finding:
    """From the Fairlead to which each namespace belongs, for the one of this cluster id (empty: no server runs)."""
    what = "Namespaces"
    foreign = [name for name, owner in owners.items() if not owner and name.startswith(NAMESPACE_PREFIX)]
    clusters = sorted(set(owners.values()) - {""})
    if len(clusters) > 1:
        advice = "Stop all but one; the message of a waiting workload has the kubectl command that hands objects over"
        own = f"; this server's is {own_cluster}" if own_cluster in clusters else ""
        text = f"several Fairlead installations have projects here: {', '.join(clusters)}{own}"
        return Finding(what, "note", text, advice)
    if own_cluster and clusters and own_cluster not in clusters:
        text = f"the projects belong to another Fairlead installation, {clusters[0]}"
        text += f"; the server of this data folder, {own_cluster}, waits"
        advice = "Use that one, or hand its objects over with the kubectl command in the message of a waiting workload"
        return Finding(what, "note", text, advice)
    if foreign:
        advice = "Rename or delete them, or choose other names for projects, which would need these namespaces"
        return Finding(what, "note", f"not made by Fairlead: {', '.join(foreign[:5])}", advice)
    if own_cluster or not clusters:
        owned = "; those of projects belong to this server" if clusters else ""
        return Finding(what, "ok", f"none conflicts with a project{owned}")
    return Finding(what, "ok", f"the projects belong to the installation of cluster {clusters[0]}; any other one waits")
