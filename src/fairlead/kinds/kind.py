"""What every kind of workload says about itself. A kind is one file with one `Kind` in it, listed in `KINDS`.

Routes, commands, SDK methods, schemas and reference pages come from walking `KINDS`; engines and scheduling see pod
sets only.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import build, fields_of
from fairlead.model.spec.rules import SubmissionLimits, Violation, violations


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
    #: Pods that were told to end and have not ended yet.
    ending: int = 0
    succeeded: int = 0
    failed: int = 0
    #: The words of the last pod that failed.
    last_failure: str = ""
    #: Whether the scheduler has said why something of the workload waits.
    blocked: bool = False
    #: One per group of the set, in their order.
    groups: tuple[GroupState, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """What the pods' states mean for the workload: a phase and why."""

    phase: Phase
    message: str = ""


class KindSwitch(msgspec.Struct, frozen=True):
    """Fields of workload YAML that make a document one of another kind."""

    #: Their YAML names; the key of the other kind; the member of its spec that follows, and its value.
    fields: tuple[str, ...]
    kind: str
    sets: tuple[str, Any]


def _no_framework(spec: Any) -> str:
    return ""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    #: The name by which records refer to it; never shown.
    key: str
    #: The workload type in lists: `Training`.
    title: str
    #: What one of it is called in sentences; empty: its title in small letters.
    noun: str = ""
    #: The segment of its REST path: `trainings`.
    rest: str
    #: The kind of its custom resource, or of the object that stands for it: `TrainingWorkload`.
    resource: str
    #: Its letter among the kinds that have a YAML name (`About.yaml_kinds`); empty for those that have none.
    letter: str = ""
    #: Older kinds of custom resource that mean this kind too, with their letters.
    resources_before: tuple[tuple[str, str], ...] = ()
    #: What makes a document of it one of another kind.
    turn: KindSwitch | None = None
    #: The words of its command: ("training",).
    command: tuple[str, ...]
    #: Further commands that mean it, each with what it sets: (member of the spec, value).
    subtypes: tuple[tuple[tuple[str, ...], tuple[str, Any]], ...] = ()
    #: On the command line: where the words after `--` belong; and what is in a member like in another one, as far as
    #: flags do not say it. Like the spec itself (empty), if they say anything of it.
    command_member: str = ""
    mirrored_members: tuple[tuple[str, str], ...] = ()
    #: Its word where assets say for which workloads they are meant.
    meant_for: str
    #: Build, Train or Deploy.
    category: str
    #: The priority class it has when none is given.
    priority: str
    can_suspend: bool
    #: The msgspec struct of its spec.
    spec: type
    #: Members of it that REST has beside `spec`, and the struct of what is left there; None where there are none.
    outside_spec: tuple[str, ...] = ()
    rest_spec: type | None = None
    #: The struct of what PATCH can change, with members named as in the spec; None where nothing can be changed.
    changes: type | None = None
    #: Whether a change that means other pods rolls out as a revision: the pods before it serve until its own are ready.
    has_revisions: bool = False
    #: Whether a refused submission lists its violations as entries; otherwise they stand in the text alone.
    lists_issues: bool = True
    #: From its spec to the framework by which its pods find each other; empty where none is.
    framework: Callable[[Any], str] = _no_framework
    #: From its spec (defaults not yet applied) to the pods it means.
    podsets: Callable[[Any], tuple[PodSet, ...]]
    #: From the state of its pod sets to the phase they amount to; None while they wait for a place.
    outcome: Callable[[Sequence[SetState]], Outcome | None]
    #: Rules of its own between the members of its spec: (spec, path of the spec, what is allowed at most).
    violations: Callable[[Any, str, SubmissionLimits], list[Violation]]
    #: How many seconds after its end the workload is deleted by itself; None for never.
    lifetime_after_end: Callable[[Any], int | None]
    #: How many preemptions a workload outlives; one more is its end. None for any number.
    max_preemptions: Callable[[Any], int | None]


def noun_of(kind: Kind) -> str:
    return kind.noun or kind.title.lower()


def outside_spec_names(kind: Kind) -> tuple[str, ...]:
    """The REST names of what stands beside the spec."""
    spec: Any = kind.spec
    named = dict(zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True))
    return tuple(named[name] for name in kind.outside_spec)


def spec_violations(kind: Kind, spec: Any, path: str, limits: SubmissionLimits) -> list[Violation]:
    """Every broken rule of a spec, the nouns' and the kind's own."""
    found = violations(spec, path) + kind.violations(spec, path, limits)
    if not kind.outside_spec:
        return found
    names = [f"{path}.{field.rest}" for field in fields_of(kind.spec) if field.attribute in kind.outside_spec]
    moved = {each.path: each.path.removeprefix(f"{path}.") for each in found if each.path.startswith(tuple(names))}
    return [msgspec.structs.replace(each, path=moved.get(each.path, each.path)) for each in found]


@cache
def _decoder(spec: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(spec)


def read_stored_spec(kind: Kind, raw: bytes) -> Any:
    """The spec of a stored workload. One that was accepted with remarks may lie outside the contract's bounds."""
    try:
        return _decoder(kind.spec).decode(raw)
    except msgspec.ValidationError:
        return build(kind.spec, msgspec.json.decode(raw))
