"""Whether a cluster has what workloads need, and for everything that it lacks what to do. `fairlead doctor` calls it.

It reads and asks, and changes nothing.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise

import msgspec

from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import (
    DEFINITION,
    DEPLOYMENT,
    JAX,
    KNATIVE,
    LEADER_WORKER_SET,
    MPI,
    NAMESPACE,
    NODE,
    POD_GROUP,
    PYTORCH,
    QUEUE,
    TENSORFLOW,
    XGBOOST,
    Manifest,
)
from fairlead.engines.kubernetes.client.writer import ListedObjects, has_kind
from fairlead.engines.kubernetes.configuration import custom_resources
from fairlead.engines.kubernetes.install.checks import Finding
from fairlead.engines.kubernetes.install.doctor_kai import look_at_work
from fairlead.engines.kubernetes.install.permissions import PERMISSIONS, Permission
from fairlead.engines.kubernetes.render.knative import FEATURES
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, DEFAULT_POOL, GPU, labelled_pool
from fairlead.model.errors import FairleadError
from fairlead.model.records.organization import NAMESPACE_PREFIX

#: From this version on everything that is used here is there, pod failure policies among it.
OLDEST = (1, 31)
_KAI, _SYSTEM = "kai-scheduler", "app.kubernetes.io/managed-by"
_EVICTION_FLAG, _PARTITION_FLAG = "--update-pod-eviction-condition", "--partition-label-value"
_PREEMPTIONS = "KAI tells of preemptions"
Look = Callable[[Api], Awaitable[list[Finding]]]
_TRAINING = (PYTORCH, TENSORFLOW, XGBOOST, JAX)


class _Items(msgspec.Struct):
    items: list[Manifest] = []


class _Nodes(msgspec.Struct):
    items: list[objects.Node] = []


def examine(kubeconfig: str, own_cluster: str = "") -> list[Finding]:
    """Everything that was found; the first finding alone when the cluster cannot be reached.

    `own_cluster` is the id by which the caller's server knows its cluster, if there is one.
    """
    return asyncio.run(_examine(kubeconfig, own_cluster))


async def _examine(kubeconfig: str, own_cluster: str) -> list[Finding]:
    try:
        access = load_access(kubeconfig, os.environ)
        api = Api(access, patience=5.0)
        version = msgspec.json.decode(await api.get("/version"))
    except (OSError, ApiError, FairleadError) as error:
        advice = "Check the address, the certificate and the token in the kubeconfig, and that the cluster runs"
        return [Finding("API server", "missing", str(error) or type(error).__name__, advice)]
    try:
        found = [_version(version, f"{access.host}:{access.port}")]
        for what, look in _looks(own_cluster):
            found += await run_check(what, look, api)
        return found
    finally:
        api.close()


async def run_check(what: str, look: Look, api: Api) -> list[Finding]:
    """What a look finds; that it may not look is no fault of the cluster's."""
    try:
        return await look(api)
    except ApiError as error:
        if error.status == 403:
            advice = "Ask with an administrator's kubeconfig; the last line tells what Fairlead itself may not do"
            return [Finding(what, "note", f"not seen: {error.message}", advice)]
        return [Finding(what, "missing", str(error), "See the API server's log, or ask again")]
    except OSError as error:
        return [Finding(what, "missing", str(error), "See that the API server answers, and ask again")]


def _version(version: dict[str, str], where: str) -> Finding:
    numbers = tuple(int("".join(c for c in version.get(part, "0") if c.isdigit()) or 0) for part in ("major", "minor"))
    text = f"Kubernetes {version.get('gitVersion', '?')} at {where}"
    if numbers < OLDEST:
        return Finding("API server", "missing", text, f"Use Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("API server", "ok", text)


async def _look_at_scheduler(api: Api) -> list[Finding]:
    lacking = [resource.plural for resource in (QUEUE, POD_GROUP) if not await has_kind(api, resource)]
    if lacking:
        advice = "Install KAI-Scheduler (github.com/kai-scheduler/KAI-Scheduler), version 0.12 or newer"
        return [Finding("KAI-Scheduler", "missing", f"no {', '.join(lacking)} in this cluster", advice)]
    nodes = msgspec.json.decode(await api.get(NODE.path()), type=_Nodes).items
    pools = {labelled_pool(node.metadata.labels) for node in nodes} - {DEFAULT_POOL}
    programs = msgspec.json.decode(await api.get(DEPLOYMENT.path(_KAI)), type=_Items).items
    found = [Finding("KAI-Scheduler", "ok", "its queues and pod groups are known"), *judge_programs(programs)]
    return found + judge_schedulers(_words_of(programs), pools)


def judge_programs(deployments: Sequence[Manifest]) -> list[Finding]:
    """Those of KAI's programs of which none is there to do its work."""
    idle = [
        item["metadata"]["name"]
        for item in deployments
        if item["spec"].get("replicas", 1) and not (item.get("status") or {}).get("availableReplicas")
    ]
    if not idle:
        return []
    advice = f"kubectl get pods -n {_KAI} says why"
    return [Finding("KAI's programs", "missing", f"no pod is available of {', '.join(sorted(idle))}", advice)]


def _words_of(deployments: Sequence[Manifest]) -> list[str]:
    """How KAI's programs are started, a word each."""
    return [
        word
        for item in deployments
        for container in item["spec"]["template"]["spec"]["containers"]
        for text in (*container.get("command", ()), *container.get("args", ()))
        for word in text.split("=", 1)
    ]


def judge_schedulers(words: Sequence[str], pools: Collection[str]) -> list[Finding]:
    """What follows from the words with which KAI is started, for a cluster whose nodes are in these pools."""
    if not words:
        advice = f"See that its schedulers have {_EVICTION_FLAG}, and that there is one for each node pool"
        return [Finding(_PREEMPTIONS, "note", f"KAI does not run in namespace {_KAI}: its flags are not seen", advice)]
    pairs = set(pairwise((*words, "")))
    found = [_eviction_condition(pairs)]
    lacking = sorted(pool for pool in pools if (_PARTITION_FLAG, pool) not in pairs)
    if lacking:
        advice = f"Start one more KAI scheduler for each, with {_PARTITION_FLAG}=<pool>, or let KAI's operator do it"
        found.append(Finding("Schedulers of pools", "missing", f"none for {', '.join(lacking)}", advice))
    elif pools:
        found.append(Finding("Schedulers of pools", "ok", f"one for each of {', '.join(sorted(pools))}"))
    return found


def _eviction_condition(pairs: Collection[tuple[str, str]]) -> Finding:
    """KAI tells that it took a pod away only with this flag; without it, Jobs count preemption as failure."""
    if any(flag == _EVICTION_FLAG and value != "false" for flag, value in pairs):
        return Finding(_PREEMPTIONS, "ok", f"{_EVICTION_FLAG} is set")
    advice = f"Start KAI's scheduler with {_EVICTION_FLAG}: otherwise preemption counts against a training's retries"
    return Finding(_PREEMPTIONS, "missing", f"{_EVICTION_FLAG} is not set", advice)


async def _look_at_operators(api: Api) -> list[Finding]:
    kinds = {one.kind for one in (LEADER_WORKER_SET, *_TRAINING, MPI) if await has_kind(api, one)}
    hands = ObjectApplier(api, "", ())
    switches = (
        [name for name in FEATURES if not await hands.has_features((name,))] if await has_kind(api, KNATIVE) else None
    )
    return judge_operators(kinds, switches)


def judge_operators(kinds: Collection[str], switches: Collection[str] | None) -> list[Finding]:
    """What follows from the kinds that are there, and from switches of Knative that are off (None: it is not there)."""
    return [_leader_worker_sets(kinds), _training_operators(kinds), _mpi_operator(kinds), _knative(switches)]


def _leader_worker_sets(kinds: Collection[str]) -> Finding:
    if LEADER_WORKER_SET.kind in kinds:
        return Finding(LEADER_WORKER_SET.kind, "ok", "distributed inference can run")
    advice = "Install LeaderWorkerSet (lws.sigs.k8s.io) for distributed inference"
    return Finding(LEADER_WORKER_SET.kind, "note", "not installed; distributed inference is refused", advice)


def _training_operators(kinds: Collection[str]) -> Finding:
    there, lacking = ([one.kind for one in _TRAINING if (one.kind in kinds) is is_there] for is_there in (True, False))
    what, instead = "Kubeflow training operator", "run as pod groups of our own"
    if not lacking:
        return Finding(what, "ok", f"{', '.join(there)} run distributed trainings")
    if there:
        return Finding(what, "ok", f"{', '.join(there)}; trainings for {', '.join(lacking)} {instead}")
    advice = "Nothing, or install Kubeflow's training operator where its jobs and variables are wanted"
    return Finding(what, "note", f"not installed; distributed trainings other than MPI {instead}", advice)


def _mpi_operator(kinds: Collection[str]) -> Finding:
    what = "Kubeflow MPI operator"
    if MPI.kind in kinds:
        return Finding(what, "ok", "distributed trainings with MPI can run")
    advice = f"Install the MPI operator ({MPI.kind} {MPI.api}) for distributed trainings with MPI"
    return Finding(what, "note", "not installed; distributed trainings with MPI are refused", advice)


def _knative(switches: Collection[str] | None) -> Finding:
    instead = "inference runs as Deployments that Fairlead scales"
    if switches is None:
        advice = "Nothing, or install Knative Serving where it is to scale and roll out inference that never sleeps"
        return Finding("Knative", "note", f"not installed; {instead}", advice)
    if switches:
        advice = "Enable these in the config map config-features of the namespace knative-serving"
        return Finding("Knative", "note", f"not enabled: {', '.join(switches)}; {instead}", advice)
    return Finding("Knative", "ok", "inference that never sleeps runs as its Services")


async def _check_nodes(api: Api) -> list[Finding]:
    nodes = msgspec.json.decode(await api.get(NODE.path()), type=_Nodes).items
    if not nodes:
        return [Finding("Nodes", "missing", "there are none", "Add a node")]
    with_gpus = [node for node in nodes if int(node.status.allocatable.get(GPU, 0)) > 0]
    gpus = sum(int(node.status.allocatable[GPU]) for node in with_gpus)
    found = [Finding("Nodes", "ok", f"{len(nodes)}, of which {len(with_gpus)} have GPUs: {gpus}")]
    if not with_gpus:
        advice = "Install the NVIDIA GPU operator, or a device plugin, on the nodes that have GPUs"
        found.append(Finding("GPUs", "note", f"no node offers {GPU}", advice))
        return found
    unlabelled = [node.metadata.name for node in with_gpus if "nvidia.com/gpu.memory" not in node.metadata.labels]
    if unlabelled:
        advice = "Install GPU feature discovery: requests by GPU memory need the label nvidia.com/gpu.memory"
        found.append(Finding("GPU labels", "note", f"missing on {', '.join(unlabelled[:5])}", advice))
    return found


async def _look_at_fractions(api: Api) -> list[Finding]:
    """Parts of a GPU need KAI's webhook on new pods and a runtime class for them."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    hooks = msgspec.json.decode(await api.get(path), type=_Items).items
    has_hook = any("kai" in item["metadata"]["name"] for item in hooks)
    classes = msgspec.json.decode(await api.get("/apis/node.k8s.io/v1/runtimeclasses"), type=_Items).items
    has_class = any(item["metadata"]["name"] == "nvidia" for item in classes)
    if has_hook and has_class:
        return [Finding("Parts of GPUs", "ok", "KAI's webhook and the runtime class nvidia are there")]
    parts = (("KAI's webhook on pods", has_hook), ("runtime class nvidia", has_class))
    lacking = [words for words, is_there in parts if not is_there]
    advice = "Install KAI with GPU sharing (global.gpuSharing=true) and the NVIDIA runtime class"
    return [Finding("Parts of GPUs", "note", f"missing: {' and '.join(lacking)}", advice)]


async def _look_at_definitions(api: Api) -> list[Finding]:
    """Our custom resources: optional, and never to be confused with those of a real Run:ai."""
    found: list[Finding] = []
    for resource in custom_resources():
        name = f"{resource.plural}.{resource.api.partition('/')[0]}"
        # Listed, because that is what the server's own account may do.
        listed = await api.get(DEFINITION.path(), fieldSelector=f"metadata.name={name}")
        there = msgspec.json.decode(listed, type=ListedObjects).items
        if not there:
            advice = "kubectl apply -f deploy/crds, if workloads are to be submitted with kubectl"
            found.append(Finding(resource.kind, "note", "not installed", advice))
        elif there[0].metadata.labels.get(_SYSTEM) == "fairlead":
            found.append(Finding(resource.kind, "ok", "can be applied with kubectl"))
        else:
            advice = "This looks like a cluster of NVIDIA Run:ai; use another cluster, or remove that first"
            found.append(Finding(resource.kind, "missing", f"{name} is installed by somebody else", advice))
    return found


async def _look_at_namespaces(api: Api, own_cluster: str) -> list[Finding]:
    listed = msgspec.json.decode(await api.get(NAMESPACE.path()), type=_Items).items
    owners = {
        item["metadata"]["name"]: (item["metadata"].get("labels") or {}).get(CLUSTER_LABEL, "") for item in listed
    }
    return [judge_namespaces(owners, own_cluster)]


def judge_namespaces(owners: Mapping[str, str], own_cluster: str) -> Finding:
    """What follows from the Fairlead that each namespace belongs to, for the one of this cluster id (empty: none)."""
    what = "Namespaces"
    foreign = [name for name, owner in owners.items() if not owner and name.startswith(NAMESPACE_PREFIX)]
    clusters = sorted(set(owners.values()) - {""})
    if len(clusters) > 1:
        advice = "End all but one of them; the kubectl label command in a waiting workload's message hands things over"
        mine = f"; this server's is {own_cluster}" if own_cluster in clusters else ""
        return Finding(what, "note", f"several Fairleads have projects here: {', '.join(clusters)}{mine}", advice)
    if own_cluster and clusters and own_cluster not in clusters:
        told = (
            f"projects here are another Fairlead's, {clusters[0]}; a server of this data folder, {own_cluster}, waits"
        )
        advice = (
            "Use that one, or let it go: the kubectl label command in a waiting workload's message hands things over"
        )
        return Finding(what, "note", told, advice)
    if foreign:
        advice = "Projects of these names would meet them: rename or remove them, or choose other names for projects"
        return Finding(what, "note", f"not Fairlead's: {', '.join(foreign[:5])}", advice)
    if own_cluster or not clusters:
        whose = "; those of projects are this server's" if clusters else ""
        return Finding(what, "ok", f"none stands in the way of a project{whose}")
    told = f"projects here are those of the Fairlead of cluster {clusters[0]}; any other waits"
    return Finding(what, "ok", told)


async def _look_at_storage(api: Api) -> list[Finding]:
    classes = msgspec.json.decode(await api.get("/apis/storage.k8s.io/v1/storageclasses"), type=_Items).items
    default = "storageclass.kubernetes.io/is-default-class"
    names = [
        item["metadata"]["name"]
        for item in classes
        if (item["metadata"].get("annotations") or {}).get(default) == "true"
    ]
    if names:
        return [Finding("Storage", "ok", f"default storage class {names[0]}")]
    advice = "Mark a storage class as the default, or name one in every claim"
    return [Finding("Storage", "note", "no default storage class", advice)]


async def _look_at_permissions(api: Api) -> list[Finding]:
    """Asked of the API server itself, for the account that the kubeconfig has."""
    denied = [(one, words) for one in PERMISSIONS for words in await _denied(api, one)]
    lacking = [words for _, words in denied]
    needed = [words for one, words in denied if not one.is_optional]
    if not lacking:
        return [Finding("Permissions", "ok", f"all of {sum(len(one.verbs) for one in PERMISSIONS)} are granted")]
    state = "missing" if needed else "note"
    advice = "Grant this account what the chart's ClusterRole grants"
    return [Finding("Permissions", state, f"denied: {', '.join((needed or lacking)[:8])}", advice)]


async def _denied(api: Api, permission: Permission) -> list[str]:
    name, _, part = permission.resource.partition("/")
    denied = []
    for verb in permission.verbs:
        asked = {"verb": verb, "group": permission.group, "resource": name, "subresource": part}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = {**review, "spec": {"resourceAttributes": asked}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = msgspec.json.decode(await api.request("POST", path, body))
        if not answer["status"].get("allowed"):
            denied.append(f"{verb} {permission.resource}")
    return denied


def _looks(own_cluster: str) -> tuple[tuple[str, Look], ...]:
    return (
        ("KAI-Scheduler", _look_at_scheduler),
        ("KAI at work", look_at_work),
        ("Operators", _look_at_operators),
        ("Nodes", _check_nodes),
        ("Parts of GPUs", _look_at_fractions),
        ("Storage", _look_at_storage),
        ("Namespaces", partial(_look_at_namespaces, own_cluster=own_cluster)),
        ("Workloads by kubectl", _look_at_definitions),
        ("Permissions", _look_at_permissions),
    )
