"""Under which terms a project takes a workload in: where it is tried, how long it may run, on which nodes. Pure.

Called by `submit` for projects that have terms. They hold for the workload from then on: a later change of the
project's rules does not reach it.
"""

from typing import Any

from fairlead.admission.project_rules import (
    allowed_node_types,
    effective_node_pools,
    effective_rules,
    idle_limit,
    time_limit,
)
from fairlead.kinds.kind import Kind
from fairlead.model.clock import SECOND
from fairlead.model.errors import MALFORMED, ComplianceIssue, Invalid
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.workload import Condition
from fairlead.model.spec.fields import is_given


def has_project_rules(project: Project, department: Department | None) -> bool:
    """Whether there is anything to settle; most projects have nothing."""
    owners = (project, department) if department else (project,)
    return any(owner.default_node_pools or owner.scheduling_rules or owner.node_types for owner in owners)


def apply_project_rules(
    project: Project, department: Department | None, kind: Kind, spec: Any, admitted: dict[str, Any]
) -> dict[str, Any]:
    """The members of the workload's record that follow; raises Invalid for a node type that is not allowed."""
    _check_node_type(project, department, kind, spec)
    rules = effective_rules(project, department)
    members: dict[str, Any] = {}
    if not admitted["node_pools"]:
        members["node_pools"] = effective_node_pools(project, department)
    seconds = time_limit(rules, kind.category)
    if seconds is not None:
        members["time_limit"] = seconds * SECOND
    idle = idle_limit(rules, kind.category, preemptible=admitted["preemptible"])
    if idle is not None and any(podset.request.gpu_devices for podset in kind.podsets(spec)):
        name, limit = idle
        message = f"The limit of {limit} s on idle GPUs is not enforced: how busy GPUs are is not measured here"
        members["conditions"] = (Condition(type="NotEnforced", status="True", reason=name, message=message),)
    return members


def _check_node_type(project: Project, department: Department | None, kind: Kind, spec: Any) -> None:
    allowed = allowed_node_types(project, department, kind.category)
    given = getattr(spec, "node_type", None)
    if allowed and is_given(given) and given not in allowed:
        details = f"is '{given}'; project {project.name} allows {', '.join(allowed)}"
        raise Invalid(MALFORMED, (ComplianceIssue("spec.nodeType", details),))
