"""What every kind of workload says about itself. A kind is one file with one `Kind` in it, listed in `KINDS`.

Routes, commands, SDK methods, schemas and reference pages come from walking `KINDS`; engines and scheduling see pod
sets only.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fairlead.model.phase import Phase
from fairlead.model.podset import PodSet


class SetState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one pod set has come, counted over the pods of the workload's present run."""

    role: str
    podset: PodSet
    starting: int = 0
    running: int = 0
    #: Running pods whose readiness probe passes.
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    #: The words of the last pod that failed.
    last_failure: str = ""


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
    #: The words of its command: ("training",).
    command: tuple[str, ...]
    #: Build, Train or Deploy.
    category: str
    #: The priority class it has when none is given.
    priority: str
    can_suspend: bool
    #: The msgspec struct of its spec.
    spec: type
    #: From the workload's name and its spec (defaults not yet applied) to the pods it means.
    podsets: Callable[[str, Any], tuple[PodSet, ...]]
    #: From the state of its pod sets to the phase they amount to; None while they wait for a place.
    outcome: Callable[[Sequence[SetState]], Outcome | None]
