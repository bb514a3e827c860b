"""The table of rules, and `lint`, which applies them all."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairlead.foresight.lint import cluster_rules, policy_rules, workload_rules
from fairlead.foresight.lint.material import LintFinding, LintMaterial

_Find = Callable[[LintMaterial], Iterable[LintFinding]]


class LintRule(NamedTuple):
    id: str
    summary: str
    find: tuple[_Find, ...]


RULES: tuple[LintRule, ...] = (
    LintRule(
        "default-breaks-rule",
        "A policy's default is refused by a rule that holds for it",
        (policy_rules.find_broken_default,),
    ),
    LintRule(
        "quota-exceeds-pool", "A quota is larger than all nodes of its pool", (cluster_rules.find_quota_above_pool,)
    ),
    LintRule("unusable-pool", "No project may use a node pool, or its GPUs", (cluster_rules.find_unusable_pool,)),
    LintRule(
        "gang-exceeds-cluster",
        "A gang or a pod does not fit into the empty cluster",
        (cluster_rules.find_too_large_gang,),
    ),
    LintRule(
        "leader-waits-for-workers",
        "With startup policy LeaderReady, the leader is ready only with its workers",
        (workload_rules.find_waiting_leader,),
    ),
    LintRule(
        "non-preemptible-exceeds-quota",
        "Non-preemptible work asks for more than its quota",
        (cluster_rules.find_non_preemptible_over_quota,),
    ),
    LintRule(
        "requests-exceed-limits",
        "A request is above its limit",
        (workload_rules.find_above_limit, policy_rules.find_default_above_limit),
    ),
    LintRule("unknown-topology-level", "No node has a topology level", (cluster_rules.find_unknown_level,)),
    LintRule("name-too-long", "A name is too long once a suffix is added", (workload_rules.find_too_long_name,)),
    LintRule("invalid-spec", "The server refuses the workload", (workload_rules.find_invalid_spec,)),
)


def lint(material: LintMaterial) -> tuple[LintFinding, ...]:
    """Every finding, in the order of the files and of the table."""
    findings = [finding for rule in RULES for find in rule.find for finding in find(material)]
    order = {rule.id: number for number, rule in enumerate(RULES)}
    return tuple(
        sorted(findings, key=lambda each: (each.file, order[each.rule], each.subject, each.path, each.message))
    )
