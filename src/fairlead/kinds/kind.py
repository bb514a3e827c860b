"""What every kind of workload says about itself. A kind is one file with one `Kind` in it, listed in `KINDS`.

Routes, commands, SDK methods, schemas and reference pages come from walking `KINDS`; engines and scheduling see pod
sets only.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from fairlead.model.fields import build
from fairlead.model.phase import Phase
from fairlead.model.podset import PodSet
from fairlead.model.rules import Limits, Violation, violations


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one group of one pod set has come."""

    starting: int = 0
    running: int = 0
    ready: int = 0
    #: Pods of it that were told to end.
    ending: int = 0


class SetState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one pod set has come, counted over the pods of the workload's present run."""

    role: str
    podset: PodSet
    starting: int = 0
    running: int = 0
    #: Running pods whose readiness probe passes.
    ready: int = 0
    #: Running pods whose readiness probe passed once and passes no longer.
    lapsed: int = 0
    succeeded: int = 0
    failed: int = 0
    #: The words of the last pod that failed.
    last_failure: str = ""
    #: One per group of the set, in their order.
    groups: tuple[GroupState, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """What the pods' states mean for the workload: a phase and why."""

    phase: Phase
    message: str = ""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    #: The name by which records refer to it; never shown.
    key: str
    #: The workload type in lists: `Training`.
    title: str
    #: The segment of its REST path: `trainings`.
    rest: str
    #: The kind of its custom resource: `TrainingWorkload`.
    resource: str
    #: Its letter among the kinds that have a YAML name (`About.yaml_kinds`).
    letter: str = ""
    #: Older kinds of custom resource that mean this kind too, with their letters.
    resources_before: tuple[tuple[str, str], ...] = ()
    #: The words of its command: ("training",).
    command: tuple[str, ...]
    #: Build, Train or Deploy.
    category: str
    #: The priority class it has when none is given.
    priority: str
    can_suspend: bool
    #: The msgspec struct of its spec.
    spec: type
    #: From its spec (defaults not yet applied) to the pods it means.
    podsets: Callable[[Any], tuple[PodSet, ...]]
    #: From the state of its pod sets to the phase they amount to; None while they wait for a place.
    outcome: Callable[[Sequence[SetState]], Outcome | None]
    #: Rules of its own between the members of its spec: (spec, path of the spec, what is allowed at most).
    violations: Callable[[Any, str, Limits], list[Violation]]
    #: How many seconds after its end the workload is deleted by itself; None for never.
    lifetime_after_end: Callable[[Any], int | None]
    #: Whether a preempted workload ends instead of waiting for its next turn.
    ends_when_preempted: Callable[[Any], bool]


def spec_violations(kind: Kind, spec: Any, path: str, limits: Limits) -> list[Violation]:
    """Every broken rule of a spec, the nouns' and the kind's own."""
    return violations(spec, path) + kind.violations(spec, path, limits)


@cache
def _decoder(spec: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(spec)


def read_stored_spec(kind: Kind, raw: bytes) -> Any:
    """The spec of a stored workload. One that was accepted with remarks may lie outside the contract's bounds."""
    try:
        return _decoder(kind.spec).decode(raw)
    except msgspec.ValidationError:
        return build(kind.spec, msgspec.json.decode(raw))
