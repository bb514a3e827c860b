"""Checks whether a cluster has what workloads need, and gives advice for what it lacks. `fairlead doctor` calls it.

It only reads and asks; it changes nothing. `checks.py` draws the conclusions.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import (
    DEFINITION,
    DEPLOYMENT,
    DEVICE_CLASS,
    EVENT,
    KARPENTER_POOL,
    KNATIVE,
    LEADER_WORKER_SET,
    MPI,
    NAMESPACE,
    NODE,
    POD_GROUP,
    QUEUE,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    Manifest,
)
from fairlead.engines.kubernetes.client.writer import ListedObjects, has_kind, has_knative_features
from fairlead.engines.kubernetes.configuration import custom_resource_kinds
from fairlead.engines.kubernetes.install.checks import (
    AT_WORK,
    KAI_NAMESPACE,
    TRAINING_KINDS,
    judge_autoscaler,
    judge_gpu_sharing,
    judge_namespaces,
    judge_nodes,
    judge_operators,
    judge_programs,
    judge_schedulers,
    judge_version,
)
from fairlead.engines.kubernetes.install.device_checks import judge_devices
from fairlead.engines.kubernetes.install.doctor_kai import check_kai_at_work
from fairlead.engines.kubernetes.install.manifests import GROUPS
from fairlead.engines.kubernetes.install.permissions import (
    CLUSTER_PERMISSIONS,
    PERMISSIONS,
    PROJECT_PERMISSIONS,
    Permission,
)
from fairlead.engines.kubernetes.install.releases import PREREQUISITES, judge_release
from fairlead.engines.kubernetes.observe.node_scaling import CLUSTER_AUTOSCALER_EVENTS
from fairlead.engines.kubernetes.render.knative import FEATURES
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, DEFAULT_POOL, labelled_pool
from fairlead.model.errors import FairleadError
from fairlead.model.finding import Finding

_SYSTEM = "app.kubernetes.io/managed-by"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ADJUSTER = "node-scale-adjuster"
Check = Callable[[Api], Awaitable[list[Finding]]]


class _Items(msgspec.Struct):
    items: list[Manifest] = []


class _Nodes(msgspec.Struct):
    items: list[objects.Node] = []


class _Slices(msgspec.Struct):
    items: list[objects.ResourceSlice] = []


def examine(kubeconfig: str, own_cluster: str = "") -> list[Finding]:
    """All findings; only the first one if the cluster cannot be reached.

    `own_cluster` is the id by which the caller's server knows its cluster, if a server runs.
    """
    return asyncio.run(_examine(kubeconfig, own_cluster))


async def _examine(kubeconfig: str, own_cluster: str) -> list[Finding]:
    try:
        access = load_access(kubeconfig, os.environ)
        api = Api(access, patience=5.0)
        version = msgspec.json.decode(await api.get("/version"), type=dict[str, str])
    except (OSError, ApiError, FairleadError) as error:
        advice = "Check the address, the certificate and the token in the kubeconfig, and that the cluster runs"
        return [Finding("API server", "missing", str(error) or type(error).__name__, advice)]
    try:
        findings = [judge_version(version, f"{access.host}:{access.port}")]
        for what, check in _checks(own_cluster):
            findings += await run_check(what, check, api)
        return findings
    finally:
        api.close()


async def run_check(what: str, check: Check, api: Api) -> list[Finding]:
    """The findings of a check; a missing permission to read is not a fault of the cluster."""
    try:
        return await check(api)
    except ApiError as error:
        if error.status == 403:
            advice = "Use an administrator's kubeconfig; the last line shows which permissions Fairlead itself lacks"
            return [Finding(what, "note", f"unknown: {error.message}", advice)]
        return [Finding(what, "missing", str(error), "Read the API server's log, or try again")]
    except OSError as error:
        return [Finding(what, "missing", str(error), "Check that the API server answers, and try again")]


def _checks(own_cluster: str) -> tuple[tuple[str, Check], ...]:
    return (
        ("KAI-Scheduler", _check_scheduler),
        ("Versions", _check_releases),
        (AT_WORK, check_kai_at_work),
        ("Operators", _check_operators),
        ("Nodes", _check_nodes),
        ("GPUs of DRA drivers", _check_devices),
        ("Parts of GPUs", _check_gpu_sharing),
        ("Node autoscaler", _check_autoscaler),
        ("Storage", _check_storage),
        ("Namespaces", partial(_check_namespaces, own_cluster=own_cluster)),
        ("Workloads by kubectl", _check_definitions),
        ("Permissions", _check_permissions),
    )


async def _list(api: Api, path: str) -> list[Manifest]:
    return msgspec.json.decode(await api.get(path), type=_Items).items


async def _check_scheduler(api: Api) -> list[Finding]:
    lacking = [resource.plural for resource in (QUEUE, POD_GROUP) if not await has_kind(api, resource)]
    if lacking:
        advice = "Install KAI-Scheduler (github.com/kai-scheduler/KAI-Scheduler), version 0.12 or newer"
        return [Finding("KAI-Scheduler", "missing", f"no {', '.join(lacking)} in this cluster", advice)]
    nodes = msgspec.json.decode(await api.get(NODE.path()), type=_Nodes).items
    pools = {labelled_pool(node.metadata.labels) for node in nodes} - {DEFAULT_POOL}
    programs = await _list(api, DEPLOYMENT.path(KAI_NAMESPACE))
    findings = [Finding("KAI-Scheduler", "ok", "its queues and pod groups are installed"), *judge_programs(programs)]
    return findings + judge_schedulers(_arguments_of(programs), pools)


async def _check_releases(api: Api) -> list[Finding]:
    findings: list[Finding] = []
    for wanted in PREREQUISITES:
        pods = [item["spec"]["template"]["spec"] for item in await _list(api, DEPLOYMENT.path(wanted.namespace))]
        images = [container.get("image", "") for pod in pods for container in pod["containers"]]
        findings += judge_release(wanted, images)
    return findings


def _arguments_of(deployments: Sequence[Manifest]) -> list[str]:
    """The arguments of KAI's programs; flags and their values are separate."""
    return [
        argument
        for item in deployments
        for container in item["spec"]["template"]["spec"]["containers"]
        for text in (*container.get("command", ()), *container.get("args", ()))
        for argument in text.split("=", 1)
    ]


async def _check_operators(api: Api) -> list[Finding]:
    kinds = {one.kind for one in (LEADER_WORKER_SET, *TRAINING_KINDS, MPI) if await has_kind(api, one)}
    disabled = (
        [name for name in FEATURES if not await has_knative_features(api, (name,))]
        if await has_kind(api, KNATIVE)
        else None
    )
    return judge_operators(kinds, disabled)


async def _check_nodes(api: Api) -> list[Finding]:
    return judge_nodes(msgspec.json.decode(await api.get(NODE.path()), type=_Nodes).items)


async def _check_devices(api: Api) -> list[Finding]:
    if not await has_kind(api, RESOURCE_CLAIM_TEMPLATE):
        return []
    nodes = msgspec.json.decode(await api.get(NODE.path()), type=_Nodes).items
    slices = msgspec.json.decode(await api.get(RESOURCE_SLICE.path()), type=_Slices).items
    classes = [item["metadata"]["name"] for item in await _list(api, DEVICE_CLASS.path())]
    return judge_devices(nodes, slices, classes)


async def _check_gpu_sharing(api: Api) -> list[Finding]:
    webhooks = await _list(api, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations")
    classes = await _list(api, "/apis/node.k8s.io/v1/runtimeclasses")
    has_webhook = any("kai" in item["metadata"]["name"] for item in webhooks)
    has_class = any(item["metadata"]["name"] == "nvidia" for item in classes)
    return [judge_gpu_sharing(has_webhook=has_webhook, has_runtime_class=has_class)]


async def _check_autoscaler(api: Api) -> list[Finding]:
    """The Cluster Autoscaler has no kind of its own: its events tell that it runs."""
    name = "Karpenter" if await has_kind(api, KARPENTER_POOL) else ""
    if not name:
        events = await api.get(EVENT.path(), fieldSelector=CLUSTER_AUTOSCALER_EVENTS, limit="1")
        name = "the Cluster Autoscaler" if msgspec.json.decode(events, type=_Items).items else ""
    programs = await _list(api, DEPLOYMENT.path(KAI_NAMESPACE)) if name else []
    return judge_autoscaler(name, has_adjuster=any(_ADJUSTER in item["metadata"]["name"] for item in programs))


async def _check_definitions(api: Api) -> list[Finding]:
    """Our custom resources: optional, and not to be confused with those of a real Run:ai."""
    findings: list[Finding] = []
    for resource in custom_resource_kinds():
        name = f"{resource.plural}.{resource.api.partition('/')[0]}"
        # Listed, because the server's own account may do only that.
        listed = await api.get(DEFINITION.path(), fieldSelector=f"metadata.name={name}")
        installed = msgspec.json.decode(listed, type=ListedObjects).items
        if not installed:
            advice = "kubectl apply -f deploy/crds, to submit workloads and policies with kubectl"
            findings.append(Finding(resource.kind, "note", "not installed", advice))
        elif installed[0].metadata.labels.get(_SYSTEM) == "fairlead":
            findings.append(Finding(resource.kind, "ok", "can be applied with kubectl"))
        else:
            advice = f"This may be a cluster of NVIDIA Run:ai; run Fairlead with --group {GROUPS[1]} next to it"
            findings.append(Finding(resource.kind, "note", f"{name} was not installed by Fairlead", advice))
    return findings


async def _check_namespaces(api: Api, own_cluster: str) -> list[Finding]:
    namespaces = await _list(api, NAMESPACE.path())
    owners = {
        item["metadata"]["name"]: (item["metadata"].get("labels") or {}).get(CLUSTER_LABEL, "") for item in namespaces
    }
    return [judge_namespaces(owners, own_cluster)]


async def _check_storage(api: Api) -> list[Finding]:
    classes = await _list(api, "/apis/storage.k8s.io/v1/storageclasses")
    annotations = {item["metadata"]["name"]: item["metadata"].get("annotations") or {} for item in classes}
    defaults = [name for name, notes in annotations.items() if notes.get(_DEFAULT_CLASS) == "true"]
    if defaults:
        return [Finding("Storage", "ok", f"default storage class {defaults[0]}")]
    advice = "Mark a storage class as the default, or name one in every claim"
    return [Finding("Storage", "note", "no default storage class", advice)]


async def _check_permissions(api: Api) -> list[Finding]:
    """Asks the API server itself, for the account of the kubeconfig."""
    place = await _find_project_namespace(api)
    asked = [(one, "") for one in CLUSTER_PERMISSIONS] + [(one, place) for one in PROJECT_PERMISSIONS]
    denied = [(one, name) for one, namespace in asked for name in await _denied(api, one, namespace)]
    needed = [name for one, name in denied if not one.is_optional]
    if not denied:
        return [Finding("Permissions", "ok", f"all of {sum(len(one.verbs) for one in PERMISSIONS)} are granted")]
    names = needed or [name for _, name in denied]
    advice = "Grant this account the permissions that `fairlead kubernetes manifests` shows"
    return [Finding("Permissions", "missing" if needed else "note", f"denied: {', '.join(names[:8])}", advice)]


async def _find_project_namespace(api: Api) -> str:
    """The namespace of some project; empty if there is none, or if it may not be asked."""
    try:
        listed = msgspec.json.decode(await api.get(NAMESPACE.path(), labelSelector=CLUSTER_LABEL), type=ListedObjects)
    except ApiError:
        return ""
    return next((item.metadata.name for item in listed.items if item.metadata.deletion_timestamp is None), "")


async def _denied(api: Api, permission: Permission, namespace: str) -> list[str]:
    name, _, part = permission.resource.partition("/")
    denied = []
    for verb in permission.verbs:
        attributes = {"verb": verb, "group": permission.group, "resource": name, "subresource": part}
        attributes |= {"namespace": namespace, "name": next(iter(permission.names), "")}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = {**review, "spec": {"resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = msgspec.json.decode(await api.request("POST", path, body))
        if not answer["status"].get("allowed"):
            denied.append(f"{verb} {permission.resource}")
    return denied
