"""Indexed Jobs that run the tasks of an array: which tasks are done, and whether a later Job runs others. Pure."""

from collections.abc import Iterable, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess
from fairlead.engines.kubernetes.observe.workload import podset_of
from fairlead.engines.kubernetes.render.labels import TASKS_LEFT
from fairlead.engines.kubernetes.render.runners import tasks_of
from fairlead.model import array
from fairlead.model.pods.podset import PodSet


def has_tasks_left(job: objects.Runner) -> bool:
    """Whether tasks are left for another Job when this one has completed."""
    return TASKS_LEFT in job.metadata.annotations


def find_tasks_done(podsets: Sequence[PodSet], job: objects.Runner, signalled: Iterable[SignalledSuccess]) -> str:
    """The tasks that succeeded in this Job and those before it, by their positions; empty if it is not an array."""
    podset, before = podset_of(podsets, job), launch_choices_of(job.metadata).tasks_done
    tasks = tasks_of(podset, before) if podset is not None else ()
    stopped = {one.index for one in signalled if one.job_uid == job.metadata.uid}
    completed = array.read_positions(job.status.completed_indexes) - stopped
    return array.write_positions(array.read_positions(before) | {tasks[one] for one in completed if one < len(tasks)})
