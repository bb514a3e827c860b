"""What becomes of running pods that no record knows, as after the restore of an older database. Pure.

Called by the pod driver when a server starts, before anything is placed. The records that the engine kept beside a pod
are newer than those of the database, or the database would know the pod.
"""

from collections.abc import Sequence

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import LaunchRecord, Pod, Workload


class Adoption(msgspec.Struct, frozen=True):
    """The records to write: the workload, its running pods, and pods on record that do not run any more."""

    workload: Workload
    pods: tuple[Pod, ...]
    ended: tuple[Pod, ...]


def decide_adoption(
    launched: Sequence[LaunchRecord], known: Workload | None, recorded: Sequence[Pod], now: Millis
) -> Adoption | None:
    """Adopt the pods of one workload, or None if its record is newer than they are: then they must end.

    `launched`: what was kept beside its running, unknown pods. `recorded`: its pods on record that do not run.
    """
    newest = max((record.workload for record in launched), key=lambda workload: (workload.run, workload.version))
    if known is not None and known.version >= newest.version:
        return None
    workload = msgspec.structs.replace(newest, version=known.version + 1 if known else 1)
    pods = tuple(
        msgspec.structs.replace(record.pod, version=1) for record in launched if record.workload.run == newest.run
    )
    return Adoption(workload, pods, tuple(end_before_restore(pod, now) for pod in recorded))


def end_before_restore(pod: Pod, now: Millis) -> Pod:
    """A pod on record that does not run, and whose place may belong to an adopted pod: it is not restarted there."""
    return msgspec.structs.replace(
        pod,
        version=pod.version + 1,
        phase=PodPhase.FAILED,
        completed_at=now,
        reason="EndedBeforeRestore",
        message="It had ended when the database was restored",
    )
