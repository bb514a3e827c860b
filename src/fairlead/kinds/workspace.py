"""Workspace: one interactive pod. It is not preempted, and keeps its claims while it is suspended."""

from fairlead.kinds.kind import Kind
from fairlead.kinds.pods import request_of
from fairlead.kinds.runs import (
    backoff_limit,
    lifetime_after_end,
    max_preemptions,
    outcome_of_one,
    restart_policy,
    running_container,
)
from fairlead.model.pods.podset import PodSet
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.model.spec.run_fields import RunFields, run_violations

ROLE = "workspace"


class WorkspaceSpec(RunFields, frozen=True, kw_only=True):
    """The spec of a workspace."""


def podsets(spec: WorkspaceSpec) -> tuple[PodSet, ...]:
    return (
        PodSet(
            role=ROLE,
            container=running_container(spec),
            request=request_of(spec.compute),
            restart=restart_policy(spec),
            backoff_limit=backoff_limit(spec),
        ),
    )


def _violations(spec: WorkspaceSpec, path: str, limits: SubmissionLimits) -> list[Violation]:
    return run_violations(spec, path)


WORKSPACE = Kind(
    key="workspace",
    title="Workspace",
    rest="workspaces",
    resource="InteractiveWorkload",
    older_policy="InteractivePolicy",
    letter="W",
    command=("workspace",),
    meant_for="workspace",
    resource_type="workspaces",
    category="Build",
    priority="high",
    can_suspend=True,
    spec=WorkspaceSpec,
    podsets=podsets,
    outcome=outcome_of_one,
    violations=_violations,
    lifetime_after_end=lifetime_after_end,
    max_preemptions=max_preemptions,
)
