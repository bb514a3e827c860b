"""Messages about other workloads: who evicted a pod and why, and for whose pods a workload waits. Pure.

They are stored without the names of other projects' workloads (`model/records/named_message.py`).
"""

from collections.abc import Mapping

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.model.clock import Millis, iso
from fairlead.model.records.named_message import OTHER_WORKLOAD, NamedMessage
from fairlead.model.records.workload import EvictionNote, Pod, Workload
from fairlead.scheduling.model.decisions import Eviction, Reason

_UNLIMITED = -1.0
#: The name of a pod in a project that the reader may not see.
HIDDEN_POD = "another project's pod"


def name_pods(
    reason: Reason, pods: Mapping[str, str], entries: Mapping[str, WorkloadEntry], visible: frozenset[str] | None
) -> Reason:
    """A reason with the names of the pods it waits for instead of their ids. `visible`: projects that may be named.

    Equal names are listed once, because all hidden pods have the same.
    """
    names = []
    for id in reason.waits_for:
        entry = entries.get(pods.get(id, ""))
        if entry is None:
            names.append(id)
        elif visible is not None and entry.workload.project_id not in visible:
            names.append(HIDDEN_POD)
        else:
            names.append(next((pod.name for pod in entry.pods if pod.id == id), id))
    with_names: Reason = msgspec.structs.replace(reason, waits_for=tuple(dict.fromkeys(names)))
    return with_names


def note_eviction(
    eviction: Eviction, workload: Workload, pod: Pod, winner: Workload | None, now: Millis
) -> EvictionNote:
    queue = eviction.victim_queue
    # Between departments the figures are the department's; the excess is always the project's own.
    quota = queue.quota[0] if queue and queue.name == workload.project_name else _UNLIMITED
    started = pod.started_at or (None if eviction.since is None else int(eviction.since * 1000))
    note = EvictionNote(
        at=now,
        run=workload.run,
        pod=pod.name,
        node=pod.node,
        rule=eviction.rule,
        by_workload=winner.name if winner else "",
        by_workload_id=winner.id if winner else "",
        by_project=winner.project_name if winner else "",
        by_project_id=winner.project_id if winner else "",
        since=started,
        gpus=round(pod.gpu_thousandths * len(pod.gpu_devices) / 1000, 3),
        over_quota_gpus=round(eviction.over_quota[0], 3),
        quota_gpus=None if quota == _UNLIMITED else round(quota, 3),
        moved_to=eviction.moved_to or "",
    )
    name = f"workload {winner.name} of project {winner.project_name}" if winner else "another workload"
    is_elsewhere = is_for_other_project(eviction, note, workload)
    described: EvictionNote = msgspec.structs.replace(
        note,
        message=describe_eviction(note, workload, OTHER_WORKLOAD if is_elsewhere else name),
        named=NamedMessage(describe_eviction(note, workload, name), winner.project_id)
        if winner and is_elsewhere
        else None,
    )
    return described


def is_for_other_project(eviction: Eviction, note: EvictionNote, workload: Workload) -> bool:
    """Whether a workload of another project benefits, or one that is no longer known."""
    return eviction.by_job is not None and note.by_project_id != workload.project_id


def describe_eviction(note: EvictionNote, workload: Workload, winner: str) -> str:
    """One sentence on what happened, and one on what the workload had."""
    happened = {
        "reclaimed": f"Evicted: {winner} reclaimed what this project held above its quota",
        "preempted": f"Evicted: {winner} has a higher priority in the same project",
        "consolidated": f"Moved{f' to node {note.moved_to}' if note.moved_to else ''} to make room for {winner}",
        "stale": "Evicted: fewer pods were running than its gang needs",
    }.get(note.rule, f"Evicted for {winner}")
    resources = f"{_count(note.gpus)} on node {note.node}" if note.gpus else f"resources on node {note.node}"
    since = f" since {iso(note.since)}" if note.since is not None else ""
    message = f"{happened}. Pod {note.pod} held {resources}{since}"
    if note.over_quota_gpus:
        quota = "" if note.quota_gpus is None else f" of {note.quota_gpus:g}"
        message += f"; project {workload.project_name} was {_count(note.over_quota_gpus)} over its quota{quota}"
    return f"{message}."


def _count(gpus: float) -> str:
    return "1 GPU" if gpus == 1 else f"{gpus:g} GPUs"
