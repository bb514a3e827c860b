"""What a workload is told: when it loses a pod to another one, by whom and why; and whom it waits for. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.model.clock import Millis, iso
from fairlead.model.records.workload import EvictionNote, Pod, Workload
from fairlead.scheduling.model.decisions import Eviction, Reason

_UNLIMITED = -1.0
#: What stands for a pod of a project that the reader may not see.
HIDDEN_POD = "another project's pod"


def name_pods(
    reason: Reason, pods: Mapping[str, str], entries: Mapping[str, WorkloadEntry], visible: frozenset[str] | None
) -> Reason:
    """A reason with the pods that it waits for by name; `visible` are the projects whose pods may be named.

    Equal names are told once: hidden pods are all called alike.
    """
    told = []
    for id in reason.waits_for:
        entry = entries.get(pods.get(id, ""))
        if entry is None:
            told.append(id)
        elif visible is not None and entry.workload.project_id not in visible:
            told.append(HIDDEN_POD)
        else:
            told.append(next((pod.name for pod in entry.pods if pod.id == id), id))
    named: Reason = msgspec.structs.replace(reason, waits_for=tuple(dict.fromkeys(told)))
    return named


def note_eviction(
    eviction: Eviction, workload: Workload, pod: Pod, winner: Workload | None, now: Millis
) -> EvictionNote:
    queue = eviction.victim_queue
    # Between departments the figures are the department's; the excess is always the project's own.
    quota = queue.quota[0] if queue and queue.name == workload.project_name else _UNLIMITED
    started = pod.started_at or (None if eviction.since is None else int(eviction.since * 1000))
    note = EvictionNote(
        at=now,
        pod=pod.name,
        node=pod.node,
        rule=eviction.rule,
        by_workload=winner.name if winner else "",
        by_workload_id=winner.id if winner else "",
        by_project=winner.project_name if winner else "",
        since=started,
        gpus=round(pod.gpu_thousandths * len(pod.gpu_devices) / 1000, 3),
        over_quota_gpus=round(eviction.over_quota[0], 3),
        quota_gpus=None if quota == _UNLIMITED else round(quota, 3),
        moved_to=eviction.moved_to or "",
    )
    told: EvictionNote = msgspec.structs.replace(note, message=say_eviction(note, workload))
    return told


def say_eviction(note: EvictionNote, workload: Workload) -> str:
    """One sentence of what happened, and one of what the workload had."""
    winner = f"workload {note.by_workload} of project {note.by_project}" if note.by_workload else "another workload"
    happened = {
        "reclaimed": f"Evicted: its project used more than its quota, and {winner} may claim what it holds",
        "preempted": f"Evicted: {winner} has a higher priority in the same project",
        "consolidated": f"Moved{f' to node {note.moved_to}' if note.moved_to else ''} to make room for {winner}",
        "stale": "Evicted: fewer pods run than must run together",
    }.get(note.rule, f"Evicted for {winner}")
    held = f"{_count(note.gpus)} on node {note.node}" if note.gpus else f"a place on node {note.node}"
    since = f" since {iso(note.since)}" if note.since is not None else ""
    words = f"{happened}. Pod {note.pod} held {held}{since}"
    if note.over_quota_gpus:
        quota = "" if note.quota_gpus is None else f" of {note.quota_gpus:g}"
        words += f"; project {workload.project_name} was {_count(note.over_quota_gpus)} over its quota{quota}"
    return f"{words}."


def _count(gpus: float) -> str:
    return "1 GPU" if gpus == 1 else f"{gpus:g} GPUs"
