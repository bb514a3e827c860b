"""Phases of workloads and pods, and the table of legal transitions."""

from enum import StrEnum


class DesiredPhase(StrEnum):
    """What the caller last requested."""

    RUNNING = "Running"
    STOPPED = "Stopped"
    DELETED = "Deleted"


class Phase(StrEnum):
    """The phase of a workload, as in the REST interface."""

    CREATING = "Creating"
    INITIALIZING = "Initializing"
    RESUMING = "Resuming"
    PENDING = "Pending"
    DELETING = "Deleting"
    RUNNING = "Running"
    UPDATING = "Updating"
    STOPPED = "Stopped"
    STOPPING = "Stopping"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    UNKNOWN = "Unknown"


TERMINAL = frozenset({Phase.COMPLETED, Phase.FAILED})

#: From each phase to those that may follow. Deleting and Unknown may follow every phase; anything may follow Unknown.
MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.CREATING: frozenset({Phase.PENDING, Phase.STOPPING}),
    Phase.PENDING: frozenset({Phase.INITIALIZING, Phase.DEGRADED, Phase.FAILED, Phase.STOPPING}),
    Phase.INITIALIZING: frozenset(
        {
            *(Phase.RUNNING, Phase.UPDATING, Phase.DEGRADED, Phase.COMPLETED, Phase.FAILED),
            *(Phase.TERMINATING, Phase.STOPPING),
        }
    ),
    Phase.RUNNING: frozenset(
        {Phase.COMPLETED, Phase.FAILED, Phase.DEGRADED, Phase.TERMINATING, Phase.STOPPING, Phase.UPDATING}
    ),
    Phase.DEGRADED: frozenset(
        {Phase.RUNNING, Phase.UPDATING, Phase.COMPLETED, Phase.FAILED, Phase.TERMINATING, Phase.STOPPING}
    ),
    Phase.UPDATING: frozenset({Phase.RUNNING, Phase.DEGRADED, Phase.FAILED, Phase.TERMINATING, Phase.STOPPING}),
    Phase.TERMINATING: frozenset({Phase.PENDING, Phase.FAILED, Phase.STOPPING}),
    Phase.STOPPING: frozenset({Phase.STOPPED}),
    Phase.STOPPED: frozenset({Phase.RESUMING}),
    Phase.RESUMING: frozenset({Phase.PENDING, Phase.STOPPING}),
    Phase.COMPLETED: frozenset(),
    Phase.FAILED: frozenset(),
    Phase.DELETING: frozenset(),
    Phase.UNKNOWN: frozenset(Phase),
}


def may_move(before: Phase, after: Phase) -> bool:
    """Whether `after` may follow `before`; staying in a phase is always legal."""
    return before == after or after in (Phase.DELETING, Phase.UNKNOWN) or after in MOVES[before]


class PodPhase(StrEnum):
    """The phase of a pod. A pod has a record from the moment it gets a node."""

    #: The decision to start it is stored; the engine may or may not know of it yet.
    STARTING = "Starting"
    RUNNING = "Running"
    #: It is being stopped (suspend, delete, eviction) and has not exited yet.
    STOPPING = "Stopping"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    #: It was stopped, or its supervisor or machine was lost: neither success nor failure.
    STOPPED = "Stopped"


ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.STOPPED})
