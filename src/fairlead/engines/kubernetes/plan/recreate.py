"""Jobs all of whose pods were taken away: they are made anew, so that nobody waits without need. Pure.

A Job makes its next pod after 10 s, then 20 s, and so on to 10 minutes, whatever ended the one before. For a pod that
lost its place to others that is too long: it has not failed, and its place may be free again. `engine.py` removes such
a Job; its workload's next wish makes it again. Jobs that have counted an end are left as they are.
"""

from collections.abc import Iterable

from fairlead.engines.kubernetes.client.objects import Metadata, Pod, condition
from fairlead.engines.kubernetes.observe.report import WorkloadObjectsSeen

#: On its pods: which Job made them. One that was made anew has the same name.
_JOB_UID = "batch.kubernetes.io/controller-uid"


def find_fully_preempted_jobs(held: WorkloadObjectsSeen) -> list[Metadata]:
    """The Jobs of a workload that have no pod but such that were taken away, and have counted no end yet."""
    found = []
    for runner in held.runners:
        # An active pod is perhaps its next one, which the watch on pods has not brought yet.
        counted = runner.status.succeeded + runner.status.failed + runner.status.active
        if counted or runner.status.conditions or runner.metadata.deletion_timestamp is not None:
            continue
        pods = [pod for pod in held.pods if pod.metadata.labels.get(_JOB_UID) == runner.metadata.uid]
        if pods and _were_all_preempted(pods):
            found.append(runner.metadata)
    return found


def _were_all_preempted(pods: Iterable[Pod]) -> bool:
    """With another policy than Never the Job itself counts what was taken, and knows how often it restarted."""
    return all(
        pod.spec.restart_policy == "Never"
        and pod.status.phase == "Failed"
        and condition(pod.status.conditions, "DisruptionTarget") is not None
        for pod in pods
    )
