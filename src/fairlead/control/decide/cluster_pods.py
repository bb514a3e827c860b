"""The pods that a cluster made, written into our records: each from the moment it has a node. Pure.

Called by `follow.py`. What a pod's record says is what the report says of it, so a report that comes twice changes
nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.control.decide.draft import Draft, podset_of
from fairlead.control.decide.placements import share_of
from fairlead.engines.base import ClusterPod, WorkloadReport
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Node
from fairlead.model.records.phase import ENDED, Phase, PodPhase
from fairlead.model.records.workload import EvictionNote, Pod

#: Pods of one workload that are taken away within so many milliseconds were taken away together.
_TOGETHER = 30_000
_WORDS = {PodPhase.SUCCEEDED: "ended well", PodPhase.FAILED: "failed", PodPhase.STOPPED: "ended"}


def fold_pods(draft: Draft, report: WorkloadReport, ended: Collection[str], nodes: Mapping[str, Node]) -> None:
    """Write what is there into the records; pods that are no longer there have ended."""
    known_roles = {podset.role for podset in draft.entry.podsets}
    for seen in report.pods:
        if seen.role in known_roles and seen.id not in ended:
            _fold(draft, seen, nodes)
    there = {seen.id for seen in report.pods}
    for pod in draft.active_pods():
        if pod.id not in there:
            draft.set_pod(pod, phase=PodPhase.STOPPED, completed_at=draft.now, ready=False, reason="Gone")
    _count(draft, report)
    _note_evictions(draft)


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
        draft.add_event("Restarted", _restart_words(pod, seen), pod=pod, warning=True)
    members = _members(draft, pod, seen) | _place(draft, pod, seen, nodes)
    changes = {name: value for name, value in members.items() if getattr(pod, name) != value}
    if changes:
        after = draft.set_pod(pod, **changes)
        if after.phase is not pod.phase:
            _tell(draft, after, seen)


def _restart_words(pod: Pod, seen: ClusterPod) -> str:
    how = f"with {seen.last_end}" if seen.last_end else "(how is not known)"
    return f"The container of pod {pod.name} ended {how} and is started again (restart {seen.restarts})"


def _members(draft: Draft, pod: Pod, seen: ClusterPod) -> dict[str, Any]:
    """The members of the record that follow from what is seen."""
    members: dict[str, Any] = {
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
            # We or the scheduler ended it: no failure of its own.
            members["phase"] = PodPhase.STOPPED
    return members


def _place(draft: Draft, pod: Pod, seen: ClusterPod, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Its group or its node may be seen later than the pod itself."""
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
        revision_id=next((one.id for one in draft.workload.revisions if one.number == podset.revision), ""),
        node=seen.node,
        node_pool=seen.node_pool or DEFAULT_NODE_POOL,
        gpu_devices=_devices(podset),
        gpu_thousandths=_share(podset, node),
        cpu_milli=podset.request.cpu_milli,
        memory_bytes=podset.request.memory_bytes,
        created_at=seen.created_at or draft.now,
    )
    draft.set_tally(seen.role, msgspec.structs.replace(tally, made=tally.made + 1))
    draft.set_pod(pod)
    draft.add_event("Scheduled", f"Pod {pod.name} was given node {pod.node}", pod=pod, source="scheduler")
    return pod


def _devices(podset: PodSet) -> tuple[int, ...]:
    """As many as it has: which ones they are, only its node knows (`devices.py` tells them apart)."""
    return tuple(range(podset.request.gpu_devices))


def _tell(draft: Draft, pod: Pod, seen: ClusterPod) -> None:
    if pod.phase is PodPhase.RUNNING:
        draft.add_event("Started", f"Pod {pod.name} runs on node {pod.node}", pod=pod)
    elif pod.phase is PodPhase.STOPPING:
        draft.add_event("Stopping", f"Pod {pod.name} was told to end ({pod.stopping_for})", pod=pod)
    elif pod.phase in _WORDS:
        words = seen.message or (f"exit code {seen.exit_code}" if seen.exit_code is not None else seen.reason)
        is_failure = pod.phase is PodPhase.FAILED
        reason = seen.reason or pod.phase.value
        draft.add_event(reason, f"Pod {pod.name} {_WORDS[pod.phase]}: {words}", pod=pod, warning=is_failure)


def _note_evictions(draft: Draft) -> None:
    """Pods that the scheduler took away since the last decision: a preemption each time, and perhaps the end of all."""
    before = {pod.id: pod.stopping_for for pod in draft.entry.pods}
    evicted = [pod for pod in draft.pods.values() if pod.stopping_for == "evict" and before.get(pod.id, "") != "evict"]
    if evicted:
        pod = evicted[-1]
        words = pod.message or "The scheduler took its place for others"
        if not _is_more_of_last(draft, evicted):
            _count_eviction(draft, pod, words)
        draft.add_event("Evict", words, pod=pod, source="scheduler")
    last = draft.workload.last_eviction
    others = [one for one in draft.active_pods() if one.stopping_for != "evict"]
    if last is None or others or draft.workload.phase not in (Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED):
        return
    if evicted or _went_with_them(draft):
        draft.set_phase(Phase.TERMINATING, last.message)


def _went_with_them(draft: Draft) -> bool:
    """Whether the last pods went because of an eviction: of some nobody may have seen more than that they are gone."""
    gone = [pod for pod in draft.pods.values() if pod.phase is PodPhase.STOPPED]
    return any(pod.stopping_for == "evict" for pod in gone) or (bool(gone) and _is_more_of_last(draft, gone))


def _is_more_of_last(draft: Draft, evicted: Sequence[Pod]) -> bool:
    """Whether these pods were taken away together with the last ones, and only the news of them came later."""
    last = draft.workload.last_eviction
    return last is not None and draft.now - last.at < _TOGETHER and all(pod.created_at <= last.at for pod in evicted)


def _count_eviction(draft: Draft, pod: Pod, words: str) -> None:
    note = EvictionNote(
        at=draft.now,
        pod=pod.name,
        node=pod.node,
        rule="preempted",
        since=pod.started_at,
        gpus=len(pod.gpu_devices) * pod.gpu_thousandths / 1000,
        message=words,
    )
    draft.set(preemptions=draft.workload.preemptions + 1, last_eviction=note)


def last_failure(report: WorkloadReport) -> str:
    """The words of the pod that failed last among those that are still there."""
    failed = [pod for pod in report.pods if pod.phase is PodPhase.FAILED and not pod.eviction]
    if not failed:
        return ""
    last = max(failed, key=lambda pod: (pod.ended_at or 0, pod.id))
    return last.message or f"exit code {last.exit_code}"
