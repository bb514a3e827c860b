"""The sentence of a reason. Called wherever a reason is shown; `decide` itself never makes one.

The most important part comes first, because a terminal of 80 columns shows little more. The sentences about quotas and
limits are the ones that Run:ai's users and scripts know.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.scheduling.model.decisions import NodeCause, Reason

#: What is the matter with nodes that refuse a task: of one node, of several.
_CAUSES = {
    "notReady": ("is not ready", "are not ready"),
    "cordoned": ("is cordoned", "are cordoned"),
    "taint": ("has a taint that it does not tolerate", "have a taint that it does not tolerate"),
    "nodeSelector": ("does not match its node selector", "do not match its node selector"),
    "nodeAffinity": ("does not match its node affinity", "do not match its node affinity"),
    "mig": ("has another MIG mode", "have another MIG mode"),
    "gpuMemoryUnknown": ("does not report its GPU memory", "do not report their GPU memory"),
    "gpuMemory": ("has GPUs with less memory than requested", "have GPUs with less memory than requested"),
    "podAffinity": ("does not have the pods of its pod affinity", "do not have the pods of its pod affinity"),
    "podAntiAffinity": ("is excluded by a pod anti-affinity", "are excluded by a pod anti-affinity"),
    "limit": ("would put its queue over its limit", "would put its queue over its limit"),
}
#: How the sentence of a reason begins that only other nodes, or another request, would remove.
NEVER = "Can never start"
_SINGULAR = {"gpu": "GPU", "cpu": "CPU core", "memory": "GB memory", "pods": "pod slot"}
_PLURAL = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "GB memory", "pods": "pod slots"}


def format_reason(reason: Reason) -> str:
    """The sentence of a reason."""
    if reason.code in ("NonPreemptibleOverQuota", "OverLimit"):
        return f"{format_excess(reason)} {format_breach(reason)}" if reason.is_lasting else format_breach(reason)
    if reason.code in ("NeverFits", "NoNodeFits", "GangIncomplete", "Fragmented"):
        return _format_no_node(reason)
    if reason.code == "WaitsForVictims":
        return f"Waiting for {_names(reason.waits_for)} to stop; its place is reserved."
    if reason.code == "PreemptionDelayNotElapsed":
        return f"Waiting for free resources: it cannot preempt others before {reason.until}."
    if reason.code == "QueueDoesNotExist":
        return f"Queue {reason.queue} does not exist."
    if reason.code == "QueueIsNotALeaf":
        return f"Queue {reason.queue} has child queues; only a queue without children runs workloads."
    if reason.code == "NextCycle":
        return "Starts in the next scheduling cycle: resources became free at the end of this one."
    if reason.code == "Gated":
        return "Waiting for a scheduling gate to be removed."
    if reason.code == "NotReady":
        return f"Waiting for pods to be created: {reason.placed} of the {reason.required} that it needs exist."
    return reason.detail or reason.code


def format_breach(reason: Reason) -> str:
    """The sentence about a quota or limit that Run:ai's users and scripts know."""
    return _format_over_quota(reason) if reason.code == "NonPreemptibleOverQuota" else _format_over_limit(reason)


def format_excess(reason: Reason) -> str:
    """What of a request is more than the whole quota or limit of its queue."""
    resource = reason.resource or "gpu"
    requested = _quantity(reason.requested or 0, resource)
    if reason.code == "OverLimit":
        return (
            f"{NEVER}: it requests {requested}, the limit of {reason.queue} is {format_amount(reason.limit, resource)}."
        )
    quota = format_amount(reason.quota, resource)
    return (
        f"{NEVER}: it requests {requested} and is not preemptible, the quota of {reason.queue} is {quota}. "
        "A preemptible workload may exceed the quota."
    )


def format_amount(value: float | None, resource: str | None) -> str:
    """At most three decimals; -1 as Unlimited; CPU in cores, memory in GB."""
    if value is None or value == -1:
        return "Unlimited"
    if resource == "cpu":
        value = value / 1000
    elif resource == "memory":
        value = value / 1e9
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _format_over_quota(reason: Reason) -> str:
    resource = reason.resource or "gpu"
    unit, quota_unit = {"gpu": ("GPUs", "GPUs"), "cpu": ("CPU cores", "cores"), "memory": ("GB memory", "GB")}[resource]
    values = (reason.requested, reason.quota, reason.used)
    requested, quota, used = (format_amount(value, reason.resource) for value in values)
    return (
        f"Non-preemptible workload is over quota. Workload requested {requested} {unit}, but {reason.queue} quota is "
        f"{quota} {quota_unit}, while {used} {quota_unit} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def _format_over_limit(reason: Reason) -> str:
    resource = reason.resource or "gpu"
    what = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "memory"}[resource]
    unit = {"gpu": "GPUs", "cpu": "cores", "memory": "GB"}[resource]
    limit, used, requested = (format_amount(value, resource) for value in (reason.limit, reason.used, reason.requested))
    return (
        f"{reason.queue} quota has reached the allowable limit of {what}. Limit is {limit} {unit}, "
        f"currently {used} {unit} allocated and workload requested {requested} {unit}"
    )


def _format_no_node(reason: Reason) -> str:
    if not reason.causes:
        return f"Waiting for a node for pod {reason.task}: there is none."
    lack = find_lack(reason)
    others = format_others(reason)
    if _is_gang_too_large(reason):
        return f"{NEVER}: its gang has {reason.required} pods, at most {_fit(reason)} when all nodes are empty."
    if reason.code == "NeverFits":
        return f"{NEVER}: {_format_never(lack) if lack is not None else _format_causes(reason.causes)}."
    if reason.code == "GangIncomplete":
        fitting = f"{reason.placed} of its {reason.required} pods fit now"
        rest = f"{format_lack(lack)}{others}" if lack is not None else _format_causes(reason.causes)
        return f"Waiting for room for all pods of the gang: {fitting}; pod {reason.task} does not: {rest}."
    if reason.code == "Fragmented" and lack is not None:
        return (
            f"Waiting for {_quantity(lack.asked, lack.cause)} on one node: enough are free, but spread over several "
            f"nodes, at most {format_amount(lack.free, lack.cause)} on {lack.best_node}{others}."
        )
    if lack is not None:
        return f"Waiting for {_quantity(lack.asked, lack.cause)}: {format_lack(lack)}{others}."
    return f"Waiting for a node for pod {reason.task}: {_format_causes(reason.causes)}."


def _format_never(cause: NodeCause) -> str:
    largest = format_amount(cause.largest, cause.cause)
    requested = _quantity(cause.asked, cause.cause)
    return f"it asks for {requested}, the largest node ({cause.largest_node}) has {largest}"


def find_lack(reason: Reason) -> NodeCause | None:
    """The resource for which all nodes refuse it that could take it at all; None if there are other causes."""
    causes = reason.causes if reason.code == "NeverFits" else [cause for cause in reason.causes if not cause.never]
    return causes[0] if len(causes) == 1 and causes[0].cause not in _CAUSES else None


def format_others(reason: Reason) -> str:
    """Why the nodes do not count that could never take it, after a lack of the others; empty if there are none."""
    others = [cause for cause in reason.causes if cause.never]
    return f"; {_format_causes(others)}" if others else ""


def _is_gang_too_large(reason: Reason) -> bool:
    """Whether each task fits on some node, but never all of them at once."""
    return reason.code == "NeverFits" and not all(cause.never for cause in reason.causes)


def _fit(reason: Reason) -> str:
    return f"{reason.placed} {'fits' if reason.placed == 1 else 'fit'}"


def format_largest(reason: Reason) -> str:
    """The largest requests that would fit, for a task that is too large for every node; empty if size is not the cause.

    Each is for another node; one of them is enough.
    """
    if _is_gang_too_large(reason):
        return "1 pod" if reason.placed == 1 else f"{reason.placed} pods"
    sizes = [cause for cause in reason.causes if cause.never and cause.largest and cause.cause not in _CAUSES]
    return " or ".join(f"{_quantity(size.largest, size.cause)} per pod, as {size.largest_node} has" for size in sizes)


def format_lack(cause: NodeCause) -> str:
    """How much of it is free, where there is too little."""
    free, largest = format_amount(cause.free, cause.cause), format_amount(cause.largest, cause.cause)
    if cause.nodes > 1:
        if not cause.free:
            return f"{whole_of(cause)} are in use"
        return f"at most {free} free on one of {cause.nodes} nodes ({cause.best_node})"
    if not cause.free and cause.largest:
        return f"{whole_of(cause)} {'is' if cause.largest == 1 else 'are'} in use"
    return f"{free} of {largest} free on {cause.best_node}"


def whole_of(cause: NodeCause) -> str:
    """All of a resource on the nodes of a cause: `both GPUs of lab`, `all GPUs of 3 nodes`."""
    unit = _PLURAL.get(cause.cause, cause.cause)
    if cause.nodes > 1:
        return f"all {unit} of {cause.nodes} nodes"
    if cause.largest == 1:
        return f"the {_SINGULAR.get(cause.cause, cause.cause)} of {cause.best_node}"
    amount = format_amount(cause.largest, cause.cause)
    return f"both {unit} of {cause.best_node}" if cause.largest == 2 else f"all {amount} {unit} of {cause.best_node}"


def _format_causes(causes: Iterable[NodeCause]) -> str:
    return "; ".join(_format_cause(cause) for cause in causes)


def _format_cause(cause: NodeCause) -> str:
    nodes = "1 node" if cause.nodes == 1 else f"{cause.nodes} nodes"
    if cause.cause in _CAUSES:
        return f"{_unavailable_nodes(cause) or nodes} {_CAUSES[cause.cause][cause.nodes > 1]}"
    verb = "has" if cause.nodes == 1 else "have"
    requested = _quantity(cause.asked, cause.cause)
    if cause.never:
        largest = format_amount(cause.largest, cause.cause)
        return f"{nodes} {verb} less than the {requested} requested (at most {largest}, on {cause.largest_node})"
    free = format_amount(cause.free, cause.cause)
    return f"{nodes} {verb} less than {requested} free (at most {free}, on {cause.best_node})"


def _unavailable_nodes(cause: NodeCause) -> str:
    """By name, a node that is large enough and only has to become available; empty for other causes."""
    if cause.cause not in ("notReady", "cordoned") or cause.never or cause.best_node is None:
        return ""
    others = cause.nodes - 1
    if not others:
        return f"node {cause.best_node}"
    return f"node {cause.best_node} and {others} {'other' if others == 1 else 'others'}"


def _quantity(value: float | None, resource: str) -> str:
    number = format_amount(value, resource)
    names = _SINGULAR if number == "1" else _PLURAL
    return f"{number} {names.get(resource, resource)}"
