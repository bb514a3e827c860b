"""The state of one workload on the cluster: what is desired, how far it is, and the table of legal moves. Pure.

`apply/reconciler.py` holds one value per workload and replaces it by what these functions return. Tasks and events are
the reconciler's own.
"""

from enum import Enum

import msgspec

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices
from fairlead.engines.kubernetes.render.runners import is_group
from fairlead.model.pods.podset import PodSet


class State(Enum):
    #: Nothing was ordered yet.
    ABSENT = "absent"
    #: Its objects are being applied; also while something is in the way, and that is retried.
    APPLYING = "applying"
    APPLIED = "applied"
    #: The cluster does not accept its objects. Retrying would not help.
    REFUSED = "refused"
    #: A controller of it was deleted by somebody else; the next order applies everything again.
    LOST = "lost"
    DELETING = "deleting"
    DELETED = "deleted"


class StateEvent(Enum):
    APPLY_ORDERED = "apply ordered"
    DELETE_ORDERED = "delete ordered"
    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    #: A step failed and is retried.
    FAILED = "failed"
    #: A controller disappeared from the cluster.
    CONTROLLER_LOST = "controller lost"


_ORDERS = {StateEvent.APPLY_ORDERED: State.APPLYING, StateEvent.DELETE_ORDERED: State.DELETING}
#: What happens, by state. An order is legal in every state.
_MOVES: dict[State, dict[StateEvent, State]] = {
    State.ABSENT: {StateEvent.CONTROLLER_LOST: State.ABSENT},
    State.APPLYING: {
        StateEvent.SUCCEEDED: State.APPLIED,
        StateEvent.REFUSED: State.REFUSED,
        StateEvent.FAILED: State.APPLYING,
        StateEvent.CONTROLLER_LOST: State.APPLYING,
    },
    # Its pod group is looked after from then on, which may fail or be refused too.
    State.APPLIED: {
        StateEvent.REFUSED: State.REFUSED,
        StateEvent.FAILED: State.APPLYING,
        StateEvent.CONTROLLER_LOST: State.LOST,
    },
    State.REFUSED: {
        StateEvent.REFUSED: State.REFUSED,
        StateEvent.FAILED: State.APPLYING,
        StateEvent.CONTROLLER_LOST: State.LOST,
    },
    State.LOST: {
        StateEvent.REFUSED: State.REFUSED,
        StateEvent.FAILED: State.APPLYING,
        StateEvent.CONTROLLER_LOST: State.LOST,
    },
    State.DELETING: {
        StateEvent.SUCCEEDED: State.DELETED,
        StateEvent.FAILED: State.DELETING,
        StateEvent.CONTROLLER_LOST: State.DELETING,
    },
    State.DELETED: {StateEvent.CONTROLLER_LOST: State.DELETED},
}

Desired = DesiredWorkload | DeleteWorkload


class WorkloadState(msgspec.Struct, frozen=True, kw_only=True):
    state: State = State.ABSENT
    #: The latest orders of either kind.
    workload: DesiredWorkload | None = None
    deletion: DeleteWorkload | None = None
    #: The last deletion that succeeded, until the next workload is ordered.
    deleted: DeleteWorkload | None = None
    #: Why the cluster does not accept the workload, and why the order is retried.
    refused: str = ""
    retrying_because: str = ""
    launch: LaunchChoices = NO_LAUNCH_CHOICES
    #: Whether its objects may have been in the cluster before this server started.
    may_predate_server: bool = True
    #: How many controllers somebody deleted since everything was last applied, and when that last happened.
    lost: int = 0
    lost_at: float = float("-inf")
    #: The run of which our own pod group completed, although nothing in the cluster may say so any more.
    completed_run: int = 0
    #: The error after which the cluster was asked whether it would ever accept the pods.
    dry_run_for: str = ""

    @property
    def desired(self) -> Desired | None:
        return self.deletion if self.state in (State.DELETING, State.DELETED) else self.workload

    @property
    def podsets(self) -> tuple[PodSet, ...]:
        return self.workload.podsets if self.workload is not None else ()

    @property
    def is_pending(self) -> bool:
        """Whether an order is still to be carried out."""
        return self.state in (State.APPLYING, State.DELETING)

    @property
    def needs_upkeep(self) -> bool:
        """Whether the engine itself creates its pods, or moves it between node pools."""
        workload = self.workload
        if self.state is not State.APPLIED or workload is None:
            return False
        return is_group(workload.podsets) or len(workload.node_pools) > 1

    @property
    def is_removed(self) -> bool:
        """Whether not even claims are left."""
        return self.deleted is not None and not self.deleted.keeps_claims


class IllegalMove(Exception):
    """The workload's state does not allow the event."""


def _move(before: WorkloadState, event: StateEvent) -> State:
    after = _ORDERS.get(event) or _MOVES[before.state].get(event)
    if after is None:
        raise IllegalMove(f"'{event.value}' in state '{before.state.value}' of {before.desired}")
    return after


def is_current(state: WorkloadState, desired: Desired) -> bool:
    """Whether the order changes nothing, because it is carried out or under way."""
    return state.desired == desired and state.state not in (State.ABSENT, State.LOST)


def order(before: WorkloadState, desired: Desired) -> WorkloadState:
    replace = msgspec.structs.replace
    if isinstance(desired, DeleteWorkload):
        return replace(before, state=_move(before, StateEvent.DELETE_ORDERED), deletion=desired)
    after = _move(before, StateEvent.APPLY_ORDERED)
    # Objects may exist from now on, whatever the last deletion left.
    return replace(before, state=after, workload=desired, deleted=None, refused="", dry_run_for="")


def succeed(before: WorkloadState) -> WorkloadState:
    after = _move(before, StateEvent.SUCCEEDED)
    deleted = before.deletion if after is State.DELETED else before.deleted
    return msgspec.structs.replace(before, state=after, deleted=deleted, retrying_because="", lost=0)


def refuse(before: WorkloadState, message: str) -> WorkloadState:
    return msgspec.structs.replace(
        before, state=_move(before, StateEvent.REFUSED), refused=before.refused or message, retrying_because=""
    )


def fail(before: WorkloadState, message: str) -> WorkloadState:
    """The order is retried from its beginning."""
    after = _move(before, StateEvent.FAILED)
    is_new_try = after is State.APPLYING and before.state is not State.APPLYING
    refused = "" if is_new_try else before.refused
    dry_run_for = "" if is_new_try else before.dry_run_for
    return msgspec.structs.replace(
        before, state=after, retrying_because=message, refused=refused, dry_run_for=dry_run_for
    )


def lose(before: WorkloadState, now: float) -> WorkloadState:
    """Somebody, perhaps this engine, deleted a controller of the workload."""
    after = _move(before, StateEvent.CONTROLLER_LOST)
    return msgspec.structs.replace(before, state=after, lost=before.lost + 1, lost_at=now)
