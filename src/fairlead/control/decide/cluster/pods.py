"""The pods that a cluster created, written into our records: each from the moment it has a node. Pure.

Called by `cluster/reports.py`. A pod's record follows from the report alone, so a report that comes twice changes
nothing.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from fairlead.control.decide.cluster.scheduler_messages import find_named, hide_names
from fairlead.control.decide.draft import Draft, podset_of
from fairlead.control.decide.gpu_share import share_of
from fairlead.engines.base import ClusterPod, WorkloadReport
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.named_message import NamedMessage
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Node
from fairlead.model.records.phase import ENDED, Phase, PodPhase
from fairlead.model.records.workload import EvictionNote, Pod

#: Pods of one workload that are evicted within so many milliseconds were evicted together.
_TOGETHER = 30_000
_ENDS = {PodPhase.SUCCEEDED: "succeeded", PodPhase.FAILED: "failed", PodPhase.STOPPED: "stopped"}


def fold_pods(draft: Draft, report: WorkloadReport, ended: Collection[str], nodes: Mapping[str, Node]) -> None:
    """Write the reported pods into the records; recorded pods that no longer exist have ended."""
    known_roles = {podset.role for podset in draft.entry.podsets}
    for seen in report.pods:
        if seen.role in known_roles and seen.id not in ended:
            _fold(draft, hide_names(seen), nodes)
    there, evicted = {seen.id for seen in report.pods}, {seen.id: seen for seen in report.evicted}
    for pod in draft.active_pods():
        if pod.id not in there and pod.id in evicted:
            _fold(draft, hide_names(evicted[pod.id]), nodes)
        elif pod.id not in there:
            draft.set_pod(pod, phase=PodPhase.STOPPED, completed_at=draft.now, ready=False, reason="Gone")
    _count(draft, report)
    _note_evictions(draft, report)


def _count(draft: Draft, report: WorkloadReport) -> None:
    for podset in draft.entry.podsets if report.are_counts_known else ():
        tally = draft.workload.tally(podset.role)
        counts = (report.succeeded.get(podset.role, 0), report.failed.get(podset.role, 0))
        if counts != (tally.succeeded, tally.failed):
            more = max(0, counts[1] - tally.failed)
            draft.set_tally(podset.role, msgspec.structs.replace(tally, succeeded=counts[0], failed=counts[1]))
            draft.set(restarts=draft.workload.restarts + more)


def _fold(draft: Draft, seen: ClusterPod, nodes: Mapping[str, Node]) -> None:
    pod = draft.pods.get(seen.id)
    if pod is None:
        if not seen.node:
            return
        pod = _new(draft, seen, nodes.get(seen.node))
    if pod.has_ended:
        return
    if seen.restarts > pod.restarts:
        draft.set(restarts=draft.workload.restarts + seen.restarts - pod.restarts)
        draft.add_event("Restarted", _restart_message(pod, seen), pod=pod, warning=True)
    members = _members(draft, pod, seen) | _place(draft, pod, seen, nodes)
    changes = {name: value for name, value in members.items() if getattr(pod, name) != value}
    if changes:
        after = draft.set_pod(pod, **changes)
        if after.phase is not pod.phase:
            _add_event(draft, after, seen)


def _restart_message(pod: Pod, seen: ClusterPod) -> str:
    end = seen.last_end or "an unknown exit code"
    return f"Restarted the container of pod {pod.name} after {end} (restart {seen.restarts})"


def _members(draft: Draft, pod: Pod, seen: ClusterPod) -> dict[str, object]:
    """The members of the record that follow from the report."""
    members: dict[str, object] = {
        "phase": seen.phase,
        "node": seen.node or pod.node,
        "gpu_groups": seen.gpu_groups or pod.gpu_groups,
        "started_at": seen.started_at or pod.started_at,
        "ready": seen.ready,
        "ready_at": pod.ready_at or (draft.now if seen.ready else None),
        "restarts": seen.restarts,
        "attempt": seen.restarts + 1,
        "reason": seen.reason,
        "message": seen.message,
        "exit_code": seen.exit_code,
        "signal": seen.signal,
        "cluster_phase": seen.cluster_phase,
        "container": seen.container,
    }
    if seen.phase is PodPhase.STOPPING or seen.eviction:
        members["stopping_for"] = pod.stopping_for or _cause(draft, seen)
    if seen.phase in ENDED:
        members["completed_at"] = seen.ended_at or draft.now
        if seen.phase is PodPhase.FAILED and (seen.eviction or pod.stopping_for):
            # We or the scheduler stopped it, so it did not fail.
            members["phase"] = PodPhase.STOPPED
    return members


def _place(draft: Draft, pod: Pod, seen: ClusterPod, nodes: Mapping[str, Node]) -> dict[str, object]:
    """Its pool and its share of a GPU. Its group or its node may be seen later than the pod itself."""
    node = nodes.get(seen.node)
    share = {"gpu_thousandths": _share(podset_of(draft.entry.podsets, pod.role), node)} if node is not None else {}
    return {"node_pool": seen.node_pool or pod.node_pool, **share}


def _share(podset: PodSet, node: Node | None) -> int:
    return share_of(podset, node) if podset.request.gpu_devices else 0


def _cause(draft: Draft, seen: ClusterPod) -> str:
    if seen.eviction:
        return "evict"
    wanted = draft.workload.desired_phase.value
    return {"Stopped": "suspend", "Deleted": "delete"}.get(wanted, "surplus")


def _new(draft: Draft, seen: ClusterPod, node: Node | None) -> Pod:
    podset = podset_of(draft.entry.podsets, seen.role)
    tally = draft.workload.tally(seen.role)
    pod = Pod(
        id=seen.id,
        version=1,
        workload_id=draft.workload.id,
        project_id=draft.workload.project_id,
        name=seen.name,
        role=seen.role,
        group=seen.group,
        index=tally.made if seen.index is None else seen.index,
        run=draft.workload.run,
        revision_id=next(
            (revision.id for revision in draft.workload.revisions if revision.number == podset.revision), ""
        ),
        node=seen.node,
        node_pool=seen.node_pool or DEFAULT_NODE_POOL,
        gpu_devices=_devices(podset),
        gpu_thousandths=_share(podset, node),
        cpu_milli=podset.request.cpu_milli,
        memory_bytes=podset.request.memory_bytes,
        created_at=seen.placed_at or seen.created_at or draft.now,
    )
    draft.set_tally(seen.role, msgspec.structs.replace(tally, made=tally.made + 1))
    draft.set_pod(pod)
    draft.add_event("Scheduled", f"Assigned pod {pod.name} to node {pod.node}", pod=pod, source="scheduler")
    return pod


def _devices(podset: PodSet) -> tuple[int, ...]:
    """As many numbers as it has GPUs. Which GPUs they are, only its node knows (`placement/gpu_numbers.py`)."""
    return tuple(range(podset.request.gpu_devices))


def _add_event(draft: Draft, pod: Pod, seen: ClusterPod) -> None:
    if pod.phase is PodPhase.RUNNING:
        draft.add_event("Started", f"Pod {pod.name} is running on node {pod.node}", pod=pod)
    elif pod.phase is PodPhase.STOPPING:
        draft.add_event("Stopping", f"Stopping pod {pod.name} ({pod.stopping_for})", pod=pod)
    elif pod.phase in _ENDS:
        detail = seen.message or (f"exit code {seen.exit_code}" if seen.exit_code is not None else seen.reason)
        is_failure = pod.phase is PodPhase.FAILED
        reason = seen.reason or pod.phase.value
        draft.add_event(reason, f"Pod {pod.name} {_ENDS[pod.phase]}: {detail}", pod=pod, warning=is_failure)


def _note_evictions(draft: Draft, report: WorkloadReport) -> None:
    """Count pods that were evicted since the last decision as one preemption; with the last pod, all is terminating."""
    before = {pod.id: pod.stopping_for for pod in draft.entry.pods}
    evicted = [pod for pod in draft.pods.values() if pod.stopping_for == "evict" and before.get(pod.id, "") != "evict"]
    if evicted:
        pod = evicted[-1]
        message = pod.message or "Evicted by the scheduler for other workloads"
        seen = next((each for each in (*report.pods, *report.evicted) if each.id == pod.id), None)
        named = find_named(seen.eviction) if seen is not None else None
        if not _belongs_to_last(draft, evicted):
            _count_eviction(draft, pod, message, named)
        has_lost_node = seen is not None and seen.has_lost_node
        reason, source = ("NodeLost", "engine") if has_lost_node else ("Evict", "scheduler")
        draft.add_named_event(reason, message, named, pod=pod, source=source)
    last = draft.workload.last_eviction
    others = [pod for pod in draft.active_pods() if pod.stopping_for != "evict"]
    if last is None or others or draft.workload.phase not in (Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED):
        return
    if evicted or _went_with_them(draft):
        draft.set_phase(Phase.TERMINATING, last.message, named=last.named)


def _went_with_them(draft: Draft) -> bool:
    """Whether the last pods ended because of an eviction. Of some, only that they are gone may be known."""
    stopped = [pod for pod in draft.pods.values() if pod.phase is PodPhase.STOPPED]
    return any(pod.stopping_for == "evict" for pod in stopped) or (bool(stopped) and _belongs_to_last(draft, stopped))


def _belongs_to_last(draft: Draft, evicted: Sequence[Pod]) -> bool:
    """Whether these pods were evicted together with the last ones, and only the report of them came later."""
    last = draft.workload.last_eviction
    return last is not None and draft.now - last.at < _TOGETHER and all(pod.created_at <= last.at for pod in evicted)


def _count_eviction(draft: Draft, pod: Pod, message: str, named: NamedMessage | None) -> None:
    note = EvictionNote(
        at=draft.now,
        run=draft.workload.run,
        pod=pod.name,
        node=pod.node,
        rule="preempted",
        since=pod.started_at,
        gpus=len(pod.gpu_devices) * pod.gpu_thousandths / 1000,
        message=message,
        named=named,
    )
    draft.set(preemptions=draft.workload.preemptions + 1, last_eviction=note)


def describe_last_failure(report: WorkloadReport) -> str:
    """How the pod ended that failed last, among those that still exist."""
    failed = [pod for pod in report.pods if pod.phase is PodPhase.FAILED and not pod.eviction]
    if not failed:
        return ""
    last = max(failed, key=lambda pod: (pod.ended_at or 0, pod.id))
    return last.message or f"exit code {last.exit_code}"
