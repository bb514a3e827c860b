"""Pods that were taken away: preempted by the scheduler, or lost with their node. They have not failed. Pure.

Spot nodes are taken back, drained nodes evict their pods, deleted nodes take theirs along. Kubernetes marks such pods,
but Jobs count some of them as failures: those that the kubelet of a node that shuts down rejects, and with a restart
policy other than Never all of them. The cache remembers these by their Job, because they are deleted once counted.
"""

from collections.abc import Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import has_operator, launch_choices_of
from fairlead.engines.kubernetes.observe.signalled_ends import JOB_UID
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, podset_of
from fairlead.model.pods.podset import PodSet

#: What the reasons of Kubernetes' condition mean, except for preemption by a scheduler.
_OF_NODES = {
    "DeletionByPodGC": "Node {} no longer exists",
    "DeletionByTaintManager": "Node {} is unreachable or being removed: its taints evict pods",
    "EvictionByEvictionAPI": "Evicted from node {}, as by a drain",
    "TerminationByKubelet": "Node {} ended the pod",
}
#: Reasons of pods that failed because of their node, and do not have the condition.
_REJECTED = frozenset({"NodeLost", "NodeShutdown", "Shutdown"})
_EXCEEDED = "BackoffLimitExceeded"


class Disruption(msgspec.Struct, frozen=True):
    """Why a pod was taken away."""

    reason: str
    message: str
    #: The node goes away, or does not keep its pods.
    is_of_node: bool


def find_disruption(pod: objects.Pod) -> Disruption | None:
    node, status = pod.spec.node_name or "(none)", pod.status
    condition = objects.condition(status.conditions, "DisruptionTarget")
    if condition is None:
        if status.phase != "Failed" or status.reason not in _REJECTED:
            return None
        return Disruption(status.reason, f"Node {node} is shutting down: {status.message or status.reason}", True)
    if condition.reason not in _OF_NODES:
        return Disruption(condition.reason, condition.message or condition.reason, False)
    message = _OF_NODES[condition.reason].format(node)
    return Disruption(condition.reason, f"{message} ({condition.message})" if condition.message else message, True)


def job_that_counts(pod: objects.Pod) -> str:
    """The uid of the Job that counts the loss of this pod as a failure; empty if none does."""
    is_over = pod.status.phase == "Failed" or pod.metadata.deletion_timestamp is not None
    if not is_over or pod.status.phase == "Succeeded" or find_disruption(pod) is None:
        return ""
    # Jobs whose pods never restart have a rule that ignores the condition.
    has_condition = objects.condition(pod.status.conditions, "DisruptionTarget") is not None
    is_ignored = has_condition and pod.spec.restart_policy == "Never"
    return "" if is_ignored else pod.metadata.labels.get(JOB_UID, "")


def count_failures_of_job(job: objects.Runner, seen: ObservedWorkload) -> int:
    """In this Job and those before it, which were deleted to be created again; without pods that were taken away."""
    lost = seen.lost.count(job.metadata.uid)
    return launch_choices_of(job.metadata).failures + max(0, job.status.failed - lost)


def has_exceeded_limit(job: objects.Runner) -> bool:
    """Whether it is a Job that has failed because of the number of its failures."""
    failed = objects.condition(job.status.conditions, "Failed")
    return failed is not None and failed.reason == _EXCEEDED and not has_operator(job)


def is_wrongly_failed(podsets: Sequence[PodSet], job: objects.Runner, seen: ObservedWorkload) -> bool:
    """Whether it would not have failed without the pods that were taken away."""
    if not has_exceeded_limit(job) or job.metadata.uid not in seen.lost:
        return False
    own = podset_of(podsets, job)
    return own is not None and count_failures_of_job(job, seen) <= own.backoff_limit
