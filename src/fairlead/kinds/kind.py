"""The declaration of a kind of workload. A kind is one file with one `Kind`, listed in `KINDS`.

Routes, commands, SDK methods, schemas and reference pages come from walking `KINDS`; engines and scheduling see pod
sets only.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import Json, Spec, build, fields_of
from fairlead.model.spec.rules import SubmissionLimits, Violation, violations

#: An instance of the kind's own spec: each function of a kind is declared with that type.
AnySpec: TypeAlias = Any


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one group of a pod set."""

    starting: int = 0
    running: int = 0
    ready: int = 0
    #: Pods that are being stopped.
    ending: int = 0


class SetState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one pod set, counted over the pods of the workload's current run."""

    role: str
    podset: PodSet
    starting: int = 0
    running: int = 0
    #: Running pods whose readiness probe passes.
    ready: int = 0
    #: Running pods whose readiness probe passed before and fails now.
    lapsed: int = 0
    #: Pods that are being stopped and have not exited yet.
    ending: int = 0
    succeeded: int = 0
    failed: int = 0
    #: The message of the last failed pod.
    last_failure: str = ""
    #: Whether the scheduler has reported why a pod of the workload is pending.
    blocked: bool = False
    #: One per group of the set, in order.
    groups: tuple[GroupState, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """What the pods' states mean for the workload: a phase and why."""

    phase: Phase
    message: str = ""


class KindSwitch(msgspec.Struct, frozen=True):
    """Fields of workload YAML that turn a document into another kind."""

    #: Their YAML names; the key of the other kind; the member of its spec that is set, and its value.
    fields: tuple[str, ...]
    kind: str
    sets: tuple[str, Json]


def _no_framework(spec: Spec) -> str:
    return ""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    #: Its name in records; never shown.
    key: str
    #: The workload type in lists: `Training`.
    title: str
    #: Its name in sentences; empty for its title in lower case.
    noun: str = ""
    #: The segment of its REST path: `trainings`.
    rest: str
    #: Whether Run:ai does not have this kind; the API description then marks its operations as additions.
    is_addition: bool = False
    #: The kind of its custom resource: `TrainingWorkload`.
    resource: str
    #: The API group and version of its custom resource, if that is our own; its spec is the REST spec then.
    own_api: str = ""
    #: Its letter in `FieldInfo.yaml_kinds`; empty for kinds without workload YAML.
    letter: str = ""
    #: Older kinds of custom resources that mean this kind too, with their letters.
    older_resources: tuple[tuple[str, str], ...] = ()
    #: The older kind of custom resource with policies for this kind, such as `TrainingPolicy`; empty if there was none.
    older_policy: str = ""
    #: The fields that turn a document of this kind into another kind.
    switch: KindSwitch | None = None
    #: The words of its command: ("training",).
    command: tuple[str, ...]
    #: Further commands that mean it, each with what it sets: (member of the spec, value).
    subtypes: tuple[tuple[tuple[str, ...], tuple[str, Json]], ...] = ()
    #: On the command line: the member that gets the words after `--`; and pairs of members of which the first takes
    #: what flags do not set from the second. An empty second member is the spec itself.
    command_member: str = ""
    mirrored_members: tuple[tuple[str, str], ...] = ()
    #: Its word in assets that say for which workloads they are meant.
    meant_for: str
    #: Its type in roles; kinds that Run:ai 2.24 has no type for take a similar one.
    resource_type: str
    #: Build, Train or Deploy.
    category: str
    #: The default priority class.
    priority: str
    can_suspend: bool
    #: The msgspec struct of its spec.
    spec: type[Spec]
    #: Members that REST has outside `spec`, and the struct of the remaining members; None if there are none.
    outside_spec: tuple[str, ...] = ()
    rest_spec: type[Spec] | None = None
    #: The struct of what PATCH can change, with members named as in the spec; None if nothing can be changed.
    changes: type[Spec] | None = None
    #: Whether a change that needs new pods rolls out as a revision: the old pods serve until the new ones are ready.
    has_revisions: bool = False
    #: Whether the answer to an invalid submission lists the violations; otherwise they are only in the text.
    lists_issues: bool = True
    #: From its spec to the framework by which its pods find each other; empty for none.
    framework: Callable[[AnySpec], str] = _no_framework
    #: From its spec (defaults not yet applied) to its pod sets.
    podsets: Callable[[AnySpec], tuple[PodSet, ...]]
    #: From the state of its pod sets to the phase of the workload; None while they are pending.
    outcome: Callable[[Sequence[SetState]], Outcome | None]
    #: The kind's own rules between the members of its spec: (spec, path of the spec, limits) to violations.
    violations: Callable[[AnySpec, str, SubmissionLimits], list[Violation]]
    #: After how many seconds an ended workload is deleted automatically; None for never.
    lifetime_after_end: Callable[[AnySpec], int | None]
    #: How many preemptions a workload survives; one more ends it. None for any number.
    max_preemptions: Callable[[AnySpec], int | None]


def noun_of(kind: Kind) -> str:
    return kind.noun or kind.title.lower()


def outside_spec_names(kind: Kind) -> tuple[str, ...]:
    """The REST names of the members outside the spec."""
    rest_names = {field.attribute: field.rest for field in fields_of(kind.spec)}
    return tuple(rest_names[name] for name in kind.outside_spec)


def spec_violations(kind: Kind, spec: Spec, path: str, limits: SubmissionLimits) -> list[Violation]:
    """Every broken rule of a spec, general ones and the kind's own."""
    broken = violations(spec, path) + kind.violations(spec, path, limits)
    if not kind.outside_spec:
        return broken
    names = [f"{path}.{field.rest}" for field in fields_of(kind.spec) if field.attribute in kind.outside_spec]
    moved = {each.path: each.path.removeprefix(f"{path}.") for each in broken if each.path.startswith(tuple(names))}
    return [msgspec.structs.replace(each, path=moved.get(each.path, each.path)) for each in broken]


@cache
def _decoder(spec: type[Spec]) -> msgspec.json.Decoder[Spec]:
    return msgspec.json.Decoder(spec)


def read_stored_spec(kind: Kind, raw: bytes) -> Spec:
    """The spec of a stored workload. A spec that was accepted with remarks may violate the contract's bounds."""
    try:
        return _decoder(kind.spec).decode(raw)
    except msgspec.ValidationError:
        return build(kind.spec, msgspec.json.decode(raw))
