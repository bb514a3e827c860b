"""The rules of a project: its own settings and its department's together, and what follows from them for a workload.

Called where projects are changed and shown, and for every submission. A workload keeps the rules that it was submitted
under: a later change of the project does not reach it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead.admission.admit import Admitted
from fairlead.kinds.kind import Kind, outside_spec_names
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.workload import Condition
from fairlead.model.spec.fields import Spec, is_given
from fairlead.model.spec.pod_fields import pods_of


class NodeTypes(msgspec.Struct, frozen=True):
    """The node types on which workloads of a project may run; empty for any."""

    training: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()


class LimitNames(NamedTuple):
    """The scheduling rules that apply to one category of workloads."""

    time: str
    #: For idle GPUs, of workloads that cannot be preempted and of those that can.
    idle: str
    idle_preemptible: str


#: Other categories (Deploy) have no such rules.
LIMITS = {
    "Train": LimitNames(
        "trainingJobTimeLimitSeconds", "trainingJobMaxIdleDurationSeconds", "trainingJobMaxIdleDurationSeconds"
    ),
    "Build": LimitNames(
        "interactiveJobTimeLimitSeconds",
        "interactiveJobMaxIdleDurationSeconds",
        "interactiveJobPreemptIdleDurationSeconds",
    ),
}
#: A whole GPU, in thousandths.
_WHOLE = 1000
RULE_NAMES = tuple(dict.fromkeys(name for names in LIMITS.values() for name in names))

Rules = Mapping[str, int | None]


def effective_rules(project: Department, department: Department | None) -> dict[str, int]:
    """For each rule the stricter value: a project can tighten a rule of its department, not loosen it."""
    limits_by_rule = {}
    for name in RULE_NAMES:
        given = [rules.get(name) for rules in (project.scheduling_rules, _rules_of(department))]
        limits = [limit for limit in given if limit is not None]
        if limits:
            limits_by_rule[name] = min(limits)
    return limits_by_rule


def _rules_of(department: Department | None) -> Rules:
    return department.scheduling_rules if department else {}


def effective_node_pools(project: Department, department: Department | None) -> tuple[str, ...]:
    """The node pools to try, in order, for workloads that name none."""
    return project.default_node_pools or (department.default_node_pools if department else ())


def effective_node_types(project: Department, department: Department | None) -> dict[str, object]:
    return project.node_types or (department.node_types if department else {})


def rule_issues(rules: Rules, above: Rules, path: str) -> list[ComplianceIssue]:
    """The violations in a set of rules, given those of the department."""
    issues = []
    for name, limit in rules.items():
        ceiling = above.get(name)
        if limit is not None and ceiling is not None and limit > ceiling:
            details = f"is {limit}; the department allows at most {ceiling}"
            issues.append(ComplianceIssue(f"{path}.{name}", details))
    for names in LIMITS.values():
        longest = rules.get(names.time) or above.get(names.time)
        for name in dict.fromkeys((names.idle, names.idle_preemptible)):
            idle = rules.get(name)
            if longest is not None and idle is not None and idle >= longest:
                details = f"is {idle}; it must be less than {names.time}, which is {longest}"
                issues.append(ComplianceIssue(f"{path}.{name}", details))
    return issues


def allowed_node_types(project: Project, department: Department | None, category: str) -> tuple[str, ...]:
    """The node types on which a workload of this category may run; empty for any.

    Projects have two lists: one for workspaces, and one for everything else.
    """
    types = msgspec.convert(effective_node_types(project, department), NodeTypes)
    return types.workspace if category == "Build" else types.training


def time_limit(rules: Rules, category: str) -> int | None:
    """The total run time in seconds after which a workload of this category is stopped."""
    names = LIMITS.get(category)
    return rules.get(names.time) if names else None


def idle_limit(rules: Rules, category: str, *, preemptible: bool) -> tuple[str, int] | None:
    """The rule on idle GPUs that applies to a workload of this category, with its seconds."""
    names = LIMITS.get(category)
    if names is None:
        return None
    name = names.idle_preemptible if preemptible else names.idle
    limit = rules.get(name)
    return None if limit is None else (name, limit)


def pool_issues(named: Sequence[str], known: Sequence[str], path: str) -> list[ComplianceIssue]:
    """Node pools that do not exist."""
    return [
        ComplianceIssue(f"{path}[{number}]", f"there is no node pool {name}; known are {', '.join(known)}")
        for number, name in enumerate(named)
        if name not in known
    ]


def has_project_rules(project: Project, department: Department | None) -> bool:
    """Whether the project or its department has any such settings; most have none."""
    owners = (project, department) if department else (project,)
    return any(owner.default_node_pools or owner.scheduling_rules or owner.node_types for owner in owners)


def apply_project_rules(
    project: Project,
    department: Department | None,
    kind: Kind,
    spec: Spec,
    admitted: Admitted,
    *,
    measures_gpus: bool = False,
) -> Admitted:
    """What follows from the spec together with the project's rules; raises Invalid for a forbidden node type.

    `measures_gpus`: whether it will be known how busy its GPUs are.
    """
    node_types = allowed_node_types(project, department, kind.category)
    issues = _node_type_issues(node_types, project, kind, spec)
    if issues:
        raise Invalid(issues=issues)
    rules = effective_rules(project, department)
    seconds = time_limit(rules, kind.category)
    idle, conditions = _idle_rule(rules, kind, spec, admitted, measures_gpus=measures_gpus)
    return msgspec.structs.replace(
        admitted,
        node_pools=admitted.node_pools or effective_node_pools(project, department),
        node_types=node_types,
        time_limit=min(
            (limit for limit in (admitted.time_limit, seconds and seconds * SECOND) if limit is not None), default=None
        ),
        idle_limit=idle,
        conditions=conditions,
    )


def _idle_rule(
    rules: Rules, kind: Kind, spec: Spec, admitted: Admitted, *, measures_gpus: bool
) -> tuple[Millis | None, tuple[Condition, ...]]:
    """How long GPUs may be idle; or the condition that this is not enforced."""
    idle = idle_limit(rules, kind.category, preemptible=admitted.preemptible)
    if idle is None:
        return None, ()
    name, limit = idle
    requests = [podset.request for podset in kind.podsets(spec) if podset.request.gpu_devices]
    if not requests:
        return None, ()
    if measures_gpus and all(request.gpu_portion == _WHOLE and not request.gpu_memory_bytes for request in requests):
        return limit * SECOND, ()
    what = "of parts of GPUs " if measures_gpus else ""
    message = f"The limit of {limit} s on idle GPUs is not enforced, because GPU utilization {what}is not measured"
    return None, (Condition(type="NotEnforced", status="True", reason=name, message=message),)


def _node_type_issues(allowed: tuple[str, ...], project: Project, kind: Kind, spec: Spec) -> list[ComplianceIssue]:
    """Node types that the project does not allow, of the workload and of its roles."""
    if not allowed:
        return []
    issues = []
    for pod, path in pods_of(spec):
        if is_given(pod.node_type) and pod.node_type not in allowed:
            whole = path if path in outside_spec_names(kind) else f"spec.{path}".rstrip(".")
            details = f"is '{pod.node_type}'; project {project.name} allows {', '.join(allowed)}"
            issues.append(ComplianceIssue(f"{whole}.nodeType", details))
    return issues
