"""Writes the scheduler's decisions into drafts: placed pods, evicted pods, why others wait. Pure."""

from collections.abc import Sequence

import msgspec

from fairlead.control.decide.draft import Draft
from fairlead.control.decide.gpu_share import share_of
from fairlead.control.decide.placement.eviction_notices import is_for_other_project
from fairlead.control.decide.pods.specs import pod_name
from fairlead.control.decide.pods.stopping import count_eviction, stop_pod
from fairlead.model import array
from fairlead.model.clock import SECOND, Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Node
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import PENDING_REASONS, EvictionNote, PendingMessage, Pod
from fairlead.scheduling import format_reason
from fairlead.scheduling.messages import format_breach
from fairlead.scheduling.model.decisions import Bind, Eviction, Pending, PoolReason

#: If many wait for the same resources, each change alters the messages of all. So these are written less often the more
#: there are: after so many milliseconds for each, between the shortest and the longest time.
_REFRESH_EACH: Millis = 10
_REFRESH_SHORTEST, _REFRESH_LONGEST = SECOND, 10 * SECOND


def place(draft: Draft, podset: PodSet, group: int, pod_id: str, bind: Bind, node: Node | None) -> None:
    """Create the pod that was given a node."""
    workload = draft.workload
    tally = workload.tally(podset.role)
    index = free_index(draft, podset, group)
    pod = Pod(
        id=pod_id,
        version=1,
        workload_id=workload.id,
        project_id=workload.project_id,
        name=pod_name(workload, podset, group, index),
        role=podset.role,
        group=group,
        index=index,
        array_index=free_array_index(draft, podset),
        run=workload.run,
        revision_id=next((each.id for each in workload.revisions if each.number == podset.revision), ""),
        node=bind.node,
        node_pool=bind.node_pool or DEFAULT_NODE_POOL,
        gpu_devices=bind.devices,
        gpu_groups=bind.gpu_groups,
        gpu_thousandths=share_of(podset, node) if bind.devices else 0,
        cpu_milli=podset.request.cpu_milli,
        memory_bytes=podset.request.memory_bytes,
        created_at=draft.now,
    )
    draft.set_tally(podset.role, msgspec.structs.replace(tally, made=tally.made + 1, retry_at=None))
    if group in workload.groups:
        draft.set_group(group, msgspec.structs.replace(workload.groups[group], retry_at=None))
    draft.set(blocked_by=None, pending_messages=())
    for ended in [other for other in draft.pods.values() if other.name == pod.name and other.has_ended]:
        draft.set_pod(ended, is_replaced=True)
    draft.set_pod(pod)
    draft.add_event(
        "Scheduled", f"Assigned pod {pod.name} to node {pod.node}{_devices(pod)}", pod=pod, source="scheduler"
    )
    if workload.phase is Phase.PENDING:
        draft.set_phase(Phase.INITIALIZING, f"Starting pod {pod.name} on node {pod.node}")


def free_index(draft: Draft, podset: PodSet, group: int) -> int:
    """The next pod's index: the lowest free one, or one more than ever if indices are not reused."""
    tally = draft.workload.tally(podset.role)
    if not podset.has_fixed_indices:
        return tally.made
    used = {pod.index for pod in draft.active_pods() if pod.role == podset.role and pod.group == group}
    return next(index for index in range(podset.count + 1) if index not in used and index not in tally.done)


def free_array_index(draft: Draft, podset: PodSet) -> int | None:
    """The lowest completion that no pod has achieved or works on; None for a set with a single one and no array."""
    is_array = podset.container.fields.find_annotation(array.ANNOTATION) is not None
    if podset.completions is None or podset.has_fixed_indices or (podset.completions < 2 and not is_array):
        return None
    tally = draft.workload.tally(podset.role)
    used = {pod.array_index for pod in draft.active_pods() if pod.role == podset.role} | set(tally.done)
    return next(index for index in range(tally.done_below, podset.completions + len(used) + 1) if index not in used)


def _devices(pod: Pod) -> str:
    if not pod.gpu_devices:
        return ""
    return f", GPU{'' if len(pod.gpu_devices) == 1 else 's'} {', '.join(map(str, pod.gpu_devices))}"


def evict(draft: Draft, pod: Pod, eviction: Eviction, note: EvictionNote) -> None:
    """Stop a pod in favour of another workload; its own workload is queued again when the pod has ended."""
    # The scheduler's message names the other workload, and has the figures of its project.
    is_hidden = is_for_other_project(eviction, note, draft.workload)
    text = note.message if is_hidden else f"{eviction.message}\n{note.message}"
    named = note.named and msgspec.structs.replace(note.named, text=f"{eviction.message}\n{note.named.text}")
    draft.add_named_event("Evict", text, named, pod=pod, source="scheduler")
    stop_pod(draft, pod, "evict")
    count_eviction(draft, note)
    if not draft.active_pods():
        # It only waited for its restart, so no process will report an end.
        draft.wake(draft.now)


def explain(draft: Draft, pending: Pending, waiting: int = 1) -> Millis | None:
    """Write why it waits into the record; returns when to do so if it is too early to refresh its message.

    A changed reason is always written. `waiting`: how many wait now.
    """
    workload = draft.workload
    known = workload.blocked_by or {}
    message = format_reason(pending.reason)
    reason_as_data = msgspec.to_builtins(pending.reason, str_keys=True)
    if known.get("code") == pending.reason.code:
        if message == workload.phase_message or (known == reason_as_data and workload.phase is Phase.RUNNING):
            return None
        due = workload.updated_at + min(max(_REFRESH_EACH * waiting, _REFRESH_SHORTEST), _REFRESH_LONGEST)
        if draft.now < due:
            return due
    draft.set(
        blocked_by=reason_as_data,
        pending_messages=_pending_messages(pending.pools),
        updated_at=draft.now,
    )
    if known.get("code") != pending.reason.code:
        draft.add_blocker(pending.reason.code, message)
    reason = pending.reason.code if pending.reason.code in PENDING_REASONS else None
    if workload.phase is Phase.RUNNING:
        # Only some of its pods wait; the kind says what that means.
        draft.wake(draft.now)
    elif workload.phase is Phase.PENDING:
        draft.set_phase(Phase.PENDING, message, reason=reason)
    elif workload.phase is Phase.DEGRADED:
        draft.set_phase(Phase.DEGRADED, message)
    return None


def _pending_messages(pools: Sequence[PoolReason]) -> tuple[PendingMessage, ...]:
    return tuple(
        PendingMessage(
            node_pool=pool.node_pool,
            reason=pool.reason.code,
            message=format_breach(pool.reason),
            org_type="DEPARTMENT" if (pool.reason.queue_id or "").startswith("department-") else "PROJECT",
        )
        for pool in pools
        if pool.reason.code in PENDING_REASONS
    )
