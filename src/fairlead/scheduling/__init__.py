"""Pure decisions: `decide(snapshot)` says what to bind, what to evict, what to keep for whom, and why the rest waits.

    from fairlead.scheduling import Job, Queue, QueueShares, Share, Snapshot, SnapshotNode, Task, decide, format_reason

    free = Share(limit=-1, quota=-1)                       # -1 is unlimited; a limit must always be given
    team = Queue(name="team-a", resources=QueueShares(gpu=Share(limit=-1, quota=4), cpu=free, memory=free))
    node = SnapshotNode(name="node-1", cpu_milli=32_000, memory_bytes=256 << 30, gpu=8, gpu_memory_mib=40_000)
    job = Job(id="train", queue="team-a", tasks=(Task(id="train-0", gpu=1, cpu_milli=1000),))
    decisions = decide(Snapshot(now=1_700_000_000, nodes=(node,), queues=(team,), jobs=(job,)))

    for bind in decisions.binds:                           # task, node, device indices, ids of shared GPUs
        print(bind.task, bind.node, bind.devices)
    for waiting in decisions.pending:                      # one reason per job that does not start
        print(waiting.job, waiting.reason.code, format_reason(waiting.reason))

It decides as KAI-Scheduler does, and it neither reads a clock nor acts: `now` is in the snapshot.
"""

from fairlead.scheduling.cycle import decide
from fairlead.scheduling.fairness.shares import (
    QueueDemand,
    QueueShare,
    Resources,
    SharesRequest,
    divide_queues,
    read_shares,
)
from fairlead.scheduling.messages import format_reason
from fairlead.scheduling.model.decisions import (
    Bind,
    Decisions,
    Eviction,
    FairShare,
    NodeCause,
    Pending,
    Pipelined,
    Reason,
)
from fairlead.scheduling.model.decode import read_snapshot
from fairlead.scheduling.model.snapshot import (
    ForeignUsage,
    Job,
    JobPodSet,
    NodeTaint,
    Placement,
    PodTerm,
    PoolSettings,
    Queue,
    QueueShares,
    QueueUsage,
    Requirement,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
    TaskToleration,
    Topology,
    TopologyConstraint,
)
from fairlead.scheduling.model.validate import SnapshotError, check
from fairlead.scheduling.simulate import advance, simulate

__all__ = [
    "Bind",
    "Decisions",
    "Eviction",
    "FairShare",
    "ForeignUsage",
    "Job",
    "JobPodSet",
    "NodeCause",
    "NodeTaint",
    "Pending",
    "Pipelined",
    "Placement",
    "PodTerm",
    "PoolSettings",
    "Queue",
    "QueueDemand",
    "QueueShare",
    "QueueShares",
    "QueueUsage",
    "Reason",
    "Requirement",
    "Resources",
    "Settings",
    "Share",
    "SharesRequest",
    "Snapshot",
    "SnapshotError",
    "SnapshotNode",
    "SubGroup",
    "Task",
    "TaskToleration",
    "Topology",
    "TopologyConstraint",
    "advance",
    "check",
    "decide",
    "divide_queues",
    "format_reason",
    "read_shares",
    "read_snapshot",
    "simulate",
]
