"""How long a job may run before others may take its place. It counts from the last start."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import LiveQueue
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.scenarios import Unit


def is_elastic(job: LiveJob) -> bool:
    return any(pod_set.minimum < len(pod_set.tasks) for pod_set in job.pod_sets)


def preempt_until(session: SchedulingSession, victim: LiveJob) -> float | None:
    """Until when a victim is safe from its own queue: the first value on the way up from its leaf."""
    seconds = session.settings.preempt_min_runtime
    for queue in victim.queue.path:
        if queue.spec.preempt_min_runtime is not None:
            seconds = queue.spec.preempt_min_runtime
            break
    return _until(victim, seconds)


def reclaim_until(session: SchedulingSession, reclaimer: LiveQueue, victim: LiveJob) -> float | None:
    """Until when a victim is safe from another queue.

    Method lca takes the first value from the level at which the queues diverge, upwards. Two top queues do not share a
    parent, so only the victim's top queue counts. Method queue takes the first value from the leaf upwards.
    """
    path = list(victim.queue.path)
    if session.settings.min_runtime_method == "lca":
        common = set(reclaimer.path)
        parted = [queue for queue in path if queue not in common]
        path = path[-1:] if path[-1] not in common else path[max(0, len(parted) - 1) :]
    seconds = session.settings.reclaim_min_runtime
    for queue in path:
        if queue.spec.reclaim_min_runtime is not None:
            seconds = queue.spec.reclaim_min_runtime
            break
    return _until(victim, seconds)


def _until(victim: LiveJob, seconds: float) -> float | None:
    return None if victim.last_start is None or seconds <= 0 else victim.last_start + seconds


def is_protected(session: SchedulingSession, until: float | None) -> bool:
    """Also notes when the protection ends: the result may change then."""
    if until is None or session.now >= until:
        return False
    session.changes_at(until)
    return True


def leaves_minimum(units: Sequence[Unit], protected: dict[str, bool]) -> bool:
    """Elastic jobs may always be proposed, but while they are protected their minimum must stay."""
    victims: dict[tuple[str, str], int] = {}
    for unit in units:
        for task in unit:
            if protected.get(task.job.id):
                key = (task.job.id, task.pod_set.name)
                victims[key] = victims.get(key, 0) + 1
                if task.pod_set.used - victims[key] < task.pod_set.minimum:
                    return False
    return True
