"""Which promises of a cycle can be bound at once, because what leaves their nodes has never started.

In one cycle `allocate` may place a job, and a later action may move or end it for another job. KAI has sent the first
placement off by then: it deletes the pod, and both jobs are decided anew in the next cycle, which can repeat for ever.
Here nothing is sent before the cycle is over, so the last placement is carried out instead. It is the same placement;
it only starts without waiting for pods that do not exist. Called by `outcome` and `incremental`.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveNode, LivePodSet, LiveTask
from fairlead.scheduling.session.record import Record


def find_early_binds(changed: Iterable[LiveTask], record: Record) -> list[LiveTask]:
    """Tasks to bind now though they are only promised, in the order of `changed`.

    None, unless this cycle placed a task and took it back.
    """
    if not any(eviction.never_started for eviction in record.evictions.values()):
        return []
    free: dict[int, bool] = {}
    ready = []
    for task in changed:
        if is_withheld(task):
            ready.append(task)
        elif task.first_status == st.PENDING and task.status == st.PIPELINED:
            node = task.home
            if node.index not in free:
                free[node.index] = not any(_is_leaving(other, node) for other in node.tasks.values())
            if free[node.index]:
                ready.append(task)
    return _whole_gangs(ready)


def is_fresh(task: LiveTask) -> bool:
    return task.status == st.BINDING and task.first_status == st.PENDING


def is_withheld(task: LiveTask) -> bool:
    """A later action of the cycle moved a part of the gang that had just been bound: then the rest waits too.

    KAI has sent the rest off by then, and starts half a gang.
    """
    return is_fresh(task) and _lacks(task.pod_set, 0)


def _is_leaving(task: LiveTask, node: LiveNode) -> bool:
    """Whether a task that was on this node before the cycle does not stay there, so that others wait for it."""
    if task.first_status in (st.PENDING, st.PIPELINED) or task.spec.node != node.name:
        return False
    return not (task.node is node and st.HELD[task.status])


def _whole_gangs(ready: list[LiveTask]) -> list[LiveTask]:
    """Without tasks of jobs that would lack members even so."""
    kept_tasks: dict[int, int] = {}
    jobs: dict[str, LiveJob] = {}
    for task in ready:
        kept_tasks[id(task.pod_set)] = kept_tasks.get(id(task.pod_set), 0) + (task.status == st.PIPELINED)
        jobs[task.job.id] = task.job
    broken = {
        job.id
        for job in jobs.values()
        if any(_lacks(pod_set, kept_tasks.get(id(pod_set), 0)) for pod_set in job.pod_sets)
    }
    return [task for task in ready if task.job.id not in broken]


def _lacks(pod_set: LivePodSet, kept_tasks: int) -> bool:
    """Whether too few tasks have a place now; `kept`: how many promises are bound at once."""
    waiting = pod_set.pipelined - kept_tasks
    return waiting > 0 and pod_set.active - waiting < pod_set.minimum
