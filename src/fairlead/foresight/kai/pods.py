"""A pod of a cluster as a task: what it requests, where it may run, and where it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from fairlead.foresight.kai.objects import (
    KaiBindRequestSpec,
    KaiContainer,
    KaiExpression,
    KaiPod,
    KaiPodAffinity,
)
from fairlead.model.quantity import thousandths, whole
from fairlead.scheduling.model.snapshot import Operator, PodTerm, Requirement, Task, TaskStatus, TaskToleration

#: On a pod that shares GPUs: the id of the GPU, or one label per GPU below this name.
GROUP_LABEL = "runai-gpu-group"
_SUBGROUP = "kai.scheduler/subgroup-name"
_FRACTION, _MEMORY, _DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
_GPU, _MIG = "nvidia.com/gpu", "nvidia.com/mig-"
_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage", _GPU})
_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


def is_finished(pod: KaiPod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def sum_requests(pod: KaiPod) -> dict[str, str]:
    """The sum of its containers' requests, or those of the largest init container; a limit stands in for a request."""
    names = {name for container in _containers(pod) for name in _requests(container)}
    return {name: _total(pod, name) for name in sorted(names)}


def _containers(pod: KaiPod) -> Iterable[KaiContainer]:
    return (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))


def _requests(container: KaiContainer) -> dict[str, str]:
    resources = container.resources
    given = {**(resources.limits or {}), **(resources.requests or {})}
    return {name: str(value) for name, value in given.items()}


def _total(pod: KaiPod, name: str) -> str:
    read = thousandths if name == "cpu" else whole
    together = sum(read(_requests(each).get(name, "0")) for each in pod.spec.containers or ())
    first = max((read(_requests(each).get(name, "0")) for each in pod.spec.init_containers or ()), default=0)
    return f"{max(together, first)}m" if name == "cpu" else str(max(together, first))


def convert_pod(pod: KaiPod, binding: KaiBindRequestSpec | None, created: float) -> Task:
    requests = sum_requests(pod)
    annotations, labels = pod.metadata.annotations or {}, pod.metadata.labels or {}
    node = pod.spec.node_name or (binding.selected_node if binding else "")
    groups = _gpu_groups(labels) or (binding.selected_g_p_u_groups or () if binding else ())
    affinity = pod.spec.affinity
    return Task(
        id=f"{pod.metadata.namespace}/{pod.metadata.name}",
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        pod_set=labels.get(_SUBGROUP, "default"),
        status=_status(pod, is_binding=binding is not None),
        node=node or None,
        gpu_groups=tuple(groups) if _FRACTION in annotations or _MEMORY in annotations else (),
        cpu_milli=thousandths(requests.get("cpu", "0")),
        memory_bytes=whole(requests.get("memory", "0")),
        gpu=whole(requests.get(_GPU, "0")),
        gpu_portion=float(annotations.get(_FRACTION, 0)),
        gpu_memory_mib=int(annotations.get(_MEMORY, 0)),
        gpu_devices=int(annotations.get(_DEVICES, 1)),
        mig={name.removeprefix(_MIG): whole(value) for name, value in requests.items() if name.startswith(_MIG)},
        extended={
            name: whole(value)
            for name, value in requests.items()
            if "/" in name and name not in _PLAIN and not name.startswith(_MIG)
        },
        created=created,
        labels=labels,
        node_selector=pod.spec.node_selector or {},
        node_affinity=_node_affinity(pod),
        pod_affinity=_pod_terms(affinity.pod_affinity) if affinity else (),
        pod_anti_affinity=_pod_terms(affinity.pod_anti_affinity) if affinity else (),
        tolerations=tuple(
            TaskToleration(
                key=each.key,
                operator="Exists" if each.operator == "Exists" else "Equal",
                value=each.value,
                effect=each.effect,
            )
            for each in pod.spec.tolerations or ()
        ),
        nominated_node=pod.status.nominated_node_name or None,
    )


def _status(pod: KaiPod, *, is_binding: bool) -> TaskStatus:
    if pod.status.phase == "Succeeded":
        return "Succeeded"
    if pod.status.phase == "Failed":
        return "Failed"
    if pod.metadata.deletion_timestamp:
        return "Releasing" if pod.spec.node_name else "Deleted"
    if pod.status.phase == "Running":
        return "Running"
    if pod.spec.node_name:
        return "Bound"
    if is_binding:
        return "Binding"
    return "Gated" if pod.spec.scheduling_gates else "Pending"


def _gpu_groups(labels: dict[str, str]) -> tuple[str, ...]:
    several = sorted(name for name in labels if name.startswith(f"{GROUP_LABEL}/"))
    if several:
        return tuple(labels[name] for name in several)
    return (labels[GROUP_LABEL],) if labels.get(GROUP_LABEL) else ()


def _requirements(expressions: Iterable[KaiExpression] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=each.key, operator=cast(Operator, each.operator), values=each.values or ())
        for each in expressions or ()
        if each.operator in _OPERATORS
    )


def _node_affinity(pod: KaiPod) -> tuple[tuple[Requirement, ...], ...]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return (
        tuple(_requirements(term.match_expressions) for term in (required.node_selector_terms or ()))
        if required
        else ()
    )


def _pod_terms(affinity: KaiPodAffinity | None) -> tuple[PodTerm, ...]:
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return tuple(
        PodTerm(
            topology_key=term.topology_key,
            match_labels=(term.label_selector.match_labels or {}) if term.label_selector else {},
            match_expressions=_requirements(term.label_selector.match_expressions) if term.label_selector else (),
            namespaces=term.namespaces or (),
        )
        for term in terms or ()
    )
