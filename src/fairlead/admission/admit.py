"""Decides whether a submission may become a workload: the rules between fields, then the policy.

Called by `control` before it writes anything. It knows only the submission and the policy, not what exists.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import cast

import msgspec

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import NO_POLICY, Policy
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, spec_violations
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.after import ANNOTATION as AFTER
from fairlead.model.after import Dependency, read_after
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.pods.podset import longest_names
from fairlead.model.priority import PRIORITIES, is_preemptible
from fairlead.model.records.workload import Condition, Workload
from fairlead.model.spec.canonical import items
from fairlead.model.spec.fields import Spec, build, value_or
from fairlead.model.spec.names import LONGEST_NAME, SUFFIX_LENGTH, name_violations
from fairlead.model.spec.placement import PlacementFields
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.model.submission import Submission
from fairlead.model.time_limit import ANNOTATION as TIME_LIMIT

#: Names up to this length stay valid whatever a kind adds to them.
_CERTAINLY_SHORT = 40
#: The longest time limit of a workload, in seconds.
_LONGEST = 10 * 366 * 86_400
_POSITION = re.compile(r"\[\d+\]")


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a workload's record that follow from its spec and from the rules of its project."""

    priority_class: str
    priority: int
    preemptible: bool
    category: str
    node_pools: tuple[str, ...]
    #: The node types that the project allows; empty for any.
    node_types: tuple[str, ...] = ()
    framework: str
    #: The total run time that the workload asks for or its project allows; None for no limit.
    time_limit: Millis | None = None
    #: How long the project lets its GPUs be idle; None for no limit, or if that is not measured.
    idle_limit: Millis | None = None
    #: The spec with the defaults of the policy.
    spec: Spec = Spec()
    conditions: tuple[Condition, ...] = ()

    def record(self, workload: Workload) -> Workload:
        """The workload with these members, except conditions."""
        members = msgspec.structs.asdict(self)
        del members["conditions"], members["spec"]
        if self.time_limit is None:
            del members["time_limit"]
        return msgspec.structs.replace(workload, **members)


def admit(
    kind: Kind,
    submission: Submission,
    *,
    max_completions: int = 100_000,
    policy: Policy = NO_POLICY,
    may_fill: Collection[str] | None = None,
) -> Admitted:
    """What follows from the spec; raises Invalid with every issue.

    `may_fill` names the members that the policy's defaults may fill in; None for all.
    """
    spec, against = effective_spec(kind, submission.spec, policy, may_fill)
    broken = name_violations(submission.name, submission.use_given_name_as_prefix)
    broken += _spec_violations(kind, submission.sent or submission.spec, spec, max_completions)
    broken += pod_name_violations(kind, spec, submission.name, submission.use_given_name_as_prefix)
    if submission.dialect.is_lenient:
        broken = [violation for violation in broken if not violation.instead]
    if broken or against:
        issues = [ComplianceIssue(violation.path, violation.details) for violation in broken]
        raise Invalid(issues=(*issues, *against))
    placement = cast(PlacementFields, spec)
    priority_class = value_or(placement.priority_class, kind.priority)
    priority = PRIORITIES[priority_class]
    return Admitted(
        priority_class=priority_class,
        priority=priority,
        preemptible=is_preemptible(priority, value_or(placement.preemptibility, None)),
        category=value_or(placement.category, kind.category),
        node_pools=tuple(value_or(placement.node_pools, ())),
        framework=kind.framework(spec),
        time_limit=requested_time_limit(kind, spec),
        spec=spec,
    )


def requested_time_limit(kind: Kind, spec: Spec) -> Millis | None:
    """The run time after which the workload asks to be stopped; raises Invalid if it is not a number of seconds."""
    text = _find_annotation(kind, spec, TIME_LIMIT)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _LONGEST):
        raise invalid_annotation(f"{TIME_LIMIT} must be a number of seconds, not '{text}'")
    return int(text) * SECOND


def requested_dependencies(kind: Kind, spec: Spec) -> tuple[Dependency, ...]:
    """The workloads that must have ended before this one starts; raises Invalid if they are not a list of names."""
    text = _find_annotation(kind, spec, AFTER)
    if text is None:
        return ()
    try:
        return read_after(text)
    except ValueError as error:
        raise invalid_annotation(f"{AFTER}: {error}") from None


def invalid_annotation(details: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue("spec.annotations", details),))


def _find_annotation(kind: Kind, spec: Spec, name: str) -> str | None:
    annotations = items(spec.annotations) if hasattr(spec, "annotations") else []
    if kind.command_member:
        annotations = [each for podset in kind.podsets(spec) for each in podset.container.fields.annotations]
    return next((str(value_or(each.value, "")) for each in annotations if each.name == name), None)


def pod_name_violations(kind: Kind, spec: Spec, name: str, as_prefix: bool) -> list[Violation]:
    """Violations if names of pods, services or labels made from the workload's name would be too long."""
    whole = f"{name}-{'x' * SUFFIX_LENGTH}" if as_prefix else name
    if len(whole) <= _CERTAINLY_SHORT:
        return []
    return [
        Violation(
            "name",
            f"is too long: {what} would be {pod_name}, {len(pod_name)} characters; at most {LONGEST_NAME} are allowed",
        )
        for what, pod_name in longest_names(kind.podsets(spec), whole)
        if len(pod_name) > LONGEST_NAME
    ]


def _spec_violations(kind: Kind, given: Spec, effective: Spec, max_completions: int) -> list[Violation]:
    """The violations of the effective spec; items that the caller gave have the positions that they had in the request,
    not those behind items of the template or the policy."""
    broken = list(_cached_violations(kind.key, effective, max_completions))
    if not broken or effective is given:
        return broken
    places: dict[tuple[str, str], list[str]] = {}
    for violation in _cached_violations(kind.key, given, max_completions):
        places.setdefault((_POSITION.sub("", violation.path), violation.details), []).append(violation.path)
    for number, violation in enumerate(broken):
        own = places.get((_POSITION.sub("", violation.path), violation.details))
        if own:
            broken[number] = msgspec.structs.replace(violation, path=own.pop(0))
    return broken


@lru_cache(maxsize=512)
def _cached_violations(kind_key: str, spec: Spec, max_completions: int) -> tuple[Violation, ...]:
    """The violations of a spec. Cached, because sweeps and scripts send the same spec many times."""
    return tuple(spec_violations(KINDS[kind_key], spec, "spec", SubmissionLimits(completions=max_completions)))


def effective_spec(
    kind: Kind, spec: Spec, policy: Policy = NO_POLICY, may_fill: Collection[str] | None = None
) -> tuple[Spec, tuple[ComplianceIssue, ...]]:
    """The spec with the defaults of the policy, and its violations of the policy's rules.

    `may_fill` names the members that defaults may fill in; None for all.
    """
    if policy is NO_POLICY:
        return spec, ()
    return _cached_effective_spec(kind.key, spec, _PolicyKey(policy), None if may_fill is None else frozenset(may_fill))


class _PolicyKey:
    """A policy as a cache key. Merged policies are kept, so the same object has the same content."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __hash__(self) -> int:
        return id(self.policy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PolicyKey) and other.policy is self.policy


@lru_cache(maxsize=512)
def _cached_effective_spec(
    kind_key: str, spec: Spec, policy_key: _PolicyKey, may_fill: frozenset[str] | None
) -> tuple[Spec, tuple[ComplianceIssue, ...]]:
    """Cached, because sweeps and scripts send the same spec many times."""
    kind = KINDS[kind_key]
    sent: dict[str, object] = msgspec.json.decode(msgspec.json.encode(spec))
    plain, issues = apply_policy(POLICY_TYPE_OF_KIND[kind_key], sent, policy_key.policy)
    if may_fill is not None:
        plain = {**sent, **{name: value for name, value in plain.items() if name in may_fill}}
    if plain == sent:
        return spec, tuple(issues)
    try:
        return msgspec.convert(plain, kind.spec), tuple(issues)
    except msgspec.ValidationError:
        # A default is out of bounds, or accepted with a remark: the violations are found later, in the built spec.
        return build(kind.spec, plain), tuple(issues)
