"""Training: independent pods that run to completion, some at a time, until enough of them have succeeded."""

from typing import Annotated

from msgspec import UNSET

from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.kind import Kind, KindSwitch
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
from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Int32, Maybe, value_or
from fairlead.model.spec.lifecycle import PreemptionLimit
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.model.spec.run_fields import RunFields, run_violations

ROLE = "worker"
#: Fields that are not part of the container.
_COUNTS = frozenset({"completions", "parallelism", "preemption_limit"})


class TrainingSpec(RunFields, frozen=True, kw_only=True):
    completions: Annotated[
        Maybe[Int32],
        FieldInfo(
            text="The number of pods that must succeed.",
            is_common=True,
            default=1,
            origin="prose",
            yaml="completions",
            yaml_kinds="TJ",
            flags=(FlagDeclaration(name="--runs", aliases=("--completions",)),),
        ),
    ] = UNSET
    parallelism: Annotated[
        Maybe[Int32],
        FieldInfo(
            text="The number of pods that run at the same time; at most completions.",
            is_common=True,
            default=1,
            origin="prose",
            yaml="parallelism",
            yaml_kinds="TJ",
            flags=(FlagDeclaration(name="--parallelism"),),
        ),
    ] = UNSET
    preemption_limit: PreemptionLimit = UNSET


def podsets(spec: TrainingSpec) -> tuple[PodSet, ...]:
    """One set of equal pods without a gang: each starts when a node has room for it."""
    completions = value_or(spec.completions, 1)
    return (
        PodSet(
            role=ROLE,
            container=running_container(spec, _COUNTS),
            request=request_of(spec.compute),
            count=min(value_or(spec.parallelism, 1), completions),
            completions=completions,
            restart=restart_policy(spec),
            backoff_limit=backoff_limit(spec),
        ),
    )


def _violations(spec: TrainingSpec, path: str, limits: SubmissionLimits) -> list[Violation]:
    completions, parallelism = value_or(spec.completions, 1), value_or(spec.parallelism, 1)
    broken = run_violations(spec, path)
    if not 1 <= completions <= limits.completions:
        details = f"is {completions}; it must be between 1 and {limits.completions}"
        broken.append(Violation(f"{path}.completions", details))
    if completions > 1 and spec.restart_policy == "Always":
        details = f"is {completions}, but with restartPolicy Always no pod ever completes; use OnFailure or Never"
        broken.append(Violation(f"{path}.completions", details))
    if not 1 <= parallelism <= max(completions, 1):
        details = f"is {parallelism}; it must be between 1 and completions ({completions})"
        broken.append(Violation(f"{path}.parallelism", details))
    return broken


TRAINING = Kind(
    key="training",
    title="Training",
    rest="trainings",
    resource="TrainingWorkload",
    older_policy="TrainingPolicy",
    letter="T",
    older_resources=(("Job", "J"), ("RunaiJob", "J")),
    switch=KindSwitch(("mpi", "processes", "slotsPerWorker"), DISTRIBUTED.key, ("distributedFramework", "MPI")),
    command=("training",),
    meant_for="training",
    resource_type="trainings",
    category="Train",
    priority="low",
    can_suspend=True,
    spec=TrainingSpec,
    podsets=podsets,
    outcome=outcome_of_one,
    violations=_violations,
    lifetime_after_end=lifetime_after_end,
    max_preemptions=max_preemptions,
)
