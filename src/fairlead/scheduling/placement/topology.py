"""Topology: a group of tasks goes into one domain (rack, zone ...) if it must, and close together if it can.

For a constrained group the nodes at hand are narrowed to domains, the best first; the caller tries one after another.
Free is what is idle or being released; shared GPUs are only estimated here, the placement itself is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.live import LiveGroup, LiveNode, LivePodSet, LiveTask
from fairlead.scheduling.model.requests import KIND_MEMORY, KIND_PORTION
from fairlead.scheduling.model.snapshot import Topology, TopologyConstraint
from fairlead.scheduling.placement import gpus

ROOT = "root"
#: Ratio of a request to nothing free.
NOTHING_FREE = 1000.0
SCORE = 100_000

Amounts = dict[str, float]
Scores = dict[int, int]


class Domain:
    __slots__ = ("children", "free", "hosts", "id", "level", "nodes")

    def __init__(self, domain_id: str, level: str) -> None:
        self.id = domain_id
        self.level = level
        self.children: list[Domain] = []
        self.nodes: list[LiveNode] = []
        self.free: Amounts = {}
        #: How many of the tasks at hand fit here; None if they are too different to say.
        self.hosts: int | None = None


class TopologyTree:
    """All domains of a topology; a node without one of the labels is outside."""

    def __init__(self, spec: Topology, nodes: Iterable[LiveNode]) -> None:
        self.name = spec.name
        self.levels = spec.levels
        self.root = Domain(ROOT, ROOT)
        self.domains: dict[str, dict[str, Domain]] = {ROOT: {ROOT: self.root}, **{level: {} for level in spec.levels}}
        for node in nodes:
            if self.holds(node):
                self._add(node)

    def holds(self, node: LiveNode) -> bool:
        return all(level in node.spec.labels for level in self.levels)

    def _add(self, node: LiveNode) -> None:
        parent = self.root
        parent.nodes.append(node)
        values: list[str] = []
        for level in self.levels:
            values.append(node.spec.labels[level])
            domain_id = ".".join(values)
            domain = self.domains[level].get(domain_id)
            if domain is None:
                domain = self.domains[level][domain_id] = Domain(domain_id, level)
                parent.children.append(domain)
            domain.nodes.append(node)
            parent = domain

    def start(self, nodes: Sequence[LiveNode], preferred: str | None) -> Domain:
        """The longest label path that all nodes share, not deeper than the preferred level."""
        values: list[str] = []
        for level in self.levels:
            names = {node.spec.labels[level] for node in nodes}
            if len(names) != 1 or "" in names:
                break
            values.extend(names)
            if level == preferred:
                break
        if not values:
            return self.root
        return self.domains[self.levels[len(values) - 1]][".".join(values)]


class CandidateDomains:
    """Node sets to try, best first, and scores of nodes for the preferred level, if there is one."""

    __slots__ = ("reason", "scores", "sets")

    def __init__(self, sets: list[list[LiveNode]], scores: Scores | None = None, reason: Reason | None = None) -> None:
        self.sets = sets
        self.scores = scores
        self.reason = reason


def narrow(
    trees: dict[str, TopologyTree], member: LiveGroup | LivePodSet, tasks: Sequence[LiveTask], nodes: Sequence[LiveNode]
) -> CandidateDomains:
    constraint = member.topology
    if constraint is None or not constraint.topology or not tasks:
        return CandidateDomains([list(nodes)])
    tree = trees.get(constraint.topology)
    if tree is None:
        return _refused(constraint, member, f"Topology {constraint.topology} does not exist.")
    levels = _candidate_levels(tree, constraint)
    if levels is None:
        return _refused(constraint, member, f"Topology {tree.name} has no such level.")
    valid = {node.index for node in nodes if tree.holds(node)}
    start = tree.start([node for node in nodes if node.index in valid], constraint.preferred)
    totals = _measure(tree, start, tasks)
    if not _fits(start, totals, len(tasks)):
        where = "in the cluster" if start is tree.root else f"in {start.id}"
        return _refused(constraint, member, f"Not enough resources {where}.", _lines([start], len(tasks)))
    _sort(start, totals, constraint.preferred or constraint.required or ROOT)
    scores = _scores(start, constraint.preferred) if constraint.preferred else None
    pinned = _pinned(tree, constraint, tasks)
    sets: list[list[LiveNode]] = []
    for domain in _deepest_first(tree, start, levels):
        if pinned is not None and not _inside(domain, pinned):
            continue
        if _fits(domain, totals, len(tasks)):
            sets.append([node for node in domain.nodes if node.index in valid])
    if not sets:
        top = [domain for domain in tree.domains[levels[-1]].values() if pinned is None or _inside(domain, pinned)]
        return _refused(constraint, member, "No domain is large enough.", _lines(top, len(tasks)))
    return CandidateDomains(sets, scores)


def _refused(
    constraint: TopologyConstraint, member: LiveGroup | LivePodSet, detail: str, lines: Sequence[str] = ()
) -> CandidateDomains:
    wanted = constraint.required or constraint.preferred
    where = f", subgroup {member.name}" if member.name else ""
    text = f"{detail} Topology {constraint.topology}, level {wanted}{where}."
    return CandidateDomains([], reason=Reason(code="Topology", detail=" ".join([text, *lines])))


def _lines(domains: Sequence[Domain], count: int) -> list[str]:
    return [
        f"{domain.id} can take {domain.hosts} of {count} pods."
        for domain in sorted(domains, key=lambda domain: domain.id)[:10]
        if domain.hosts is not None
    ]


def _candidate_levels(tree: TopologyTree, constraint: TopologyConstraint) -> list[str] | None:
    """Deepest first: from the preferred level up to the required one, or to the root if none is required."""
    upwards = [*reversed(tree.levels), ROOT]
    for wanted in (constraint.required, constraint.preferred):
        if wanted and wanted not in upwards:
            return None
    first = constraint.preferred or constraint.required
    if not first:
        return None
    begin = upwards.index(first)
    if not constraint.required:
        return upwards[begin:]
    end = upwards.index(constraint.required)
    # A preferred level above the required one is never reached: as in KAI that is an error.
    return upwards[begin : end + 1] if begin <= end else None


def _measure(tree: TopologyTree, start: Domain, tasks: Sequence[LiveTask]) -> Amounts:
    """Fill in what is free under the start domain; elsewhere nothing is."""
    for level in tree.domains.values():
        for domain in level.values():
            domain.free = {}
            domain.hosts = None
    totals: Amounts = {}
    largest: Amounts = {}
    for task in tasks:
        for name, amount in _request(task).items():
            totals[name] = totals.get(name, 0) + amount
            largest[name] = max(largest.get(name, 0), amount)
    alike = _are_alike(tasks)
    _add_up(start, totals, largest if alike else None, len(tasks))
    return totals


def _request(task: LiveTask) -> Amounts:
    """Amounts of one task; a request by GPU memory counts no GPUs."""
    gpu = task.gpu if task.kind not in (KIND_PORTION, KIND_MEMORY) else 0
    amounts: Amounts = {"cpu": task.cpu, "memory": task.memory, "gpu": gpu}
    if task.kind == KIND_PORTION:
        amounts["gpu"] = task.request[2] / 1000
    for name, amount in task.ext:
        amounts[name] = amount
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _are_alike(tasks: Sequence[LiveTask]) -> bool:
    """GPUs and every extended resource are asked for by all tasks or by none."""
    counts: dict[str, int] = {}
    for task in tasks:
        for name in _request(task):
            if name not in ("cpu", "memory"):
                counts[name] = counts.get(name, 0) + 1
    return all(count == len(tasks) for count in counts.values())


def _add_up(domain: Domain, totals: Amounts, largest: Amounts | None, count: int) -> None:
    if domain.children:
        for child in domain.children:
            _add_up(child, totals, largest, count)
        for name in totals:
            domain.free[name] = sum(child.free[name] for child in domain.children)
        if largest is not None:
            domain.hosts = sum(child.hosts or 0 for child in domain.children)
        return
    for name in totals:
        domain.free[name] = sum(_free(node, name) for node in domain.nodes)
    if largest is not None:
        domain.hosts = sum(_hosts(node, largest, count) for node in domain.nodes)


def _free(node: LiveNode, name: str) -> float:
    if name == "cpu":
        return node.idle_cpu + node.releasing_cpu
    if name == "memory":
        return node.idle_memory + node.releasing_memory
    if name == "gpu":
        return node.idle_gpu + node.releasing_gpu
    return node.idle_ext.get(name, 0) + node.releasing_ext.get(name, 0)


def _hosts(node: LiveNode, largest: Amounts, count: int) -> int:
    """How many tasks of the largest size a node takes, pod slots included."""
    if not largest:
        return count
    max_hosts = node.idle_pods + node.releasing_pods
    if max_hosts < 1:
        return 0
    for name, amount in largest.items():
        free = _free(node, name)
        if name == "gpu" and amount < 1:
            free += gpus.idle_sum(node) - node.idle_gpu
        if amount > free:
            return 0
        max_hosts = min(max_hosts, int(free / amount))
    return max_hosts


def _ratio(domain: Domain, totals: Amounts) -> float:
    """Largest part of what is free that the request takes."""
    ratio = 0.0
    for name, amount in totals.items():
        free = domain.free.get(name, 0)
        ratio = max(ratio, NOTHING_FREE if free <= 0 else amount / free)
    return ratio


def _fits(domain: Domain, totals: Amounts, count: int) -> bool:
    return _ratio(domain, totals) <= 1 if domain.hosts is None else domain.hosts >= count


def _sort(domain: Domain, totals: Amounts, deepest: str) -> None:
    """Under every parent the fullest child first, then by id."""
    domain.children.sort(key=lambda child: (-_ratio(child, totals), child.id))
    if domain.level != deepest:
        for child in domain.children:
            _sort(child, totals, deepest)


def _scores(start: Domain, level: str) -> Scores:
    """The emptiest domain of the preferred level scores highest."""
    domains = _at_level(start, level)
    return {
        node.index: math.floor((position / len(domains)) * 10) * SCORE
        for position, domain in enumerate(domains, start=1)
        for node in domain.nodes
    }


def _at_level(domain: Domain, level: str) -> list[Domain]:
    if domain.level == level:
        return [domain]
    return [below for child in domain.children for below in _at_level(child, level)]


def _pinned(tree: TopologyTree, constraint: TopologyConstraint, tasks: Sequence[LiveTask]) -> list[Domain] | None:
    """Domains of the required level that already hold active tasks of the pod sets at hand; None if nothing pins."""
    if not constraint.required:
        return None
    pod_sets = {id(task.pod_set): task.pod_set for task in tasks}
    active = [
        task.node for pod_set in pod_sets.values() for task in pod_set.tasks if st.ACTIVE[task.status] and task.node
    ]
    if not active:
        return None
    node_indices = {node.index for node in active}
    return [
        domain
        for domain in tree.domains[constraint.required].values()
        if any(node.index in node_indices for node in domain.nodes)
    ]


def _inside(domain: Domain, pinned: Sequence[Domain]) -> bool:
    return any(domain is pin or any(domain is below for below in _below(pin)) for pin in pinned)


def _below(domain: Domain) -> list[Domain]:
    return [below for child in domain.children for below in (child, *_below(child))]


def _deepest_first(tree: TopologyTree, start: Domain, levels: Sequence[str]) -> list[Domain]:
    """Candidates of each level in the order of the sorted tree; what lies outside the start domain comes as it is."""
    ordered: list[Domain] = []
    for level in levels:
        under = _at_level(start, level)
        known = {id(domain) for domain in under}
        ordered += under
        ordered += [domain for domain in tree.domains[level].values() if id(domain) not in known]
    return ordered
