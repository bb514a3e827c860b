"""The fields that workspaces, trainings and the roles of distributed trainings have in common.

`AROUND` names those that say how pods are run, which `kinds/pods.py` leaves out of the container.
"""

from typing import Annotated

from msgspec import UNSET

from fairlead.model.spec.fields import FieldInfo, Maybe
from fairlead.model.spec.lifecycle import (
    AutoDeletionTime,
    BackoffLimit,
    RestartPolicyField,
    Stdin,
    TerminateAfterPreemption,
    TerminationGracePeriod,
    Tty,
)
from fairlead.model.spec.metadata import Username
from fairlead.model.spec.network import ExposedUrls, Ports, RelatedUrls
from fairlead.model.spec.placement import Category, NodePools, Preemptibility, PriorityClass
from fairlead.model.spec.pod_fields import PodFields
from fairlead.model.spec.rules import Violation, class_violations, pod_violations
from fairlead.model.spec.security import Security
from fairlead.model.spec.storage import Storage

#: A century.
MAX_SECONDS = 3_155_760_000
#: What a Job can count.
MAX_RETRIES = 2**31 - 1


class RunFields(PodFields, frozen=True, kw_only=True):
    storage: Annotated[Maybe[Storage], FieldInfo(text="The volumes of each pod.")] = UNSET
    security: Annotated[Maybe[Security], FieldInfo(text="The user and the privileges of the pods.")] = UNSET
    node_pools: NodePools = UNSET
    priority_class: PriorityClass = UNSET
    preemptibility: Preemptibility = UNSET
    category: Category = UNSET
    tty: Tty = UNSET
    stdin: Stdin = UNSET
    ports: Ports = UNSET
    exposed_urls: ExposedUrls = UNSET
    related_urls: RelatedUrls = UNSET
    backoff_limit: BackoffLimit = UNSET
    restart_policy: RestartPolicyField = UNSET
    termination_grace_period_seconds: TerminationGracePeriod = UNSET
    terminate_after_preemption: TerminateAfterPreemption = UNSET
    auto_deletion_time_after_completion_seconds: AutoDeletionTime = UNSET
    username: Username = UNSET


#: Members that say how pods are run rather than what is in them.
RUN_FIELD_NAMES = frozenset(
    {
        "tty",
        "stdin",
        "termination_grace_period_seconds",
        "backoff_limit",
        "restart_policy",
        "terminate_after_preemption",
        "auto_deletion_time_after_completion_seconds",
        "priority_class",
        "preemptibility",
        "category",
        "username",
    }
)


def run_violations(spec: RunFields, path: str) -> list[Violation]:
    """The rules between these members."""
    broken = pod_violations(spec, path) + class_violations(spec, path)
    for rest, value, maximum in (
        ("backoffLimit", spec.backoff_limit, MAX_RETRIES),
        ("terminationGracePeriodSeconds", spec.termination_grace_period_seconds, MAX_SECONDS),
        ("autoDeletionTimeAfterCompletionSeconds", spec.auto_deletion_time_after_completion_seconds, MAX_SECONDS),
    ):
        if isinstance(value, int) and not 0 <= value <= maximum:
            broken.append(Violation(f"{path}.{rest}", f"is {value}; it must be between 0 and {maximum}"))
    if spec.tty is True and spec.stdin is not True:
        broken.append(Violation(f"{path}.tty", "is true, but stdin is not; a terminal needs stdin"))
    return broken
