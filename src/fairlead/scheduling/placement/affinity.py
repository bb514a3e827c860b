"""Pod affinity and anti-affinity, inside the cycle: leaving pods count on their old node, placed ones on the new.

Anti-affinity is symmetric. An affinity that no pod in the cluster meets does not keep out a pod that meets it itself.
A preferred affinity keeps nobody out: it scores the nodes, as Kubernetes' InterPodAffinity does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.snapshot import PodTerm
from fairlead.scheduling.placement.predicates import matches

TermKey = tuple[object, ...]
#: What KAI multiplies the score of the domain with the most selected pods (100) by.
PREFERRED = 1_000_000


def _namespace(task: LiveTask) -> str:
    return task.spec.namespace or task.job.spec.namespace


def _namespaces(term: PodTerm, owner: LiveTask) -> tuple[str, ...]:
    return term.namespaces or (_namespace(owner),)


class Term:
    """One term with the namespaces it looks into; equal terms of several tasks are one."""

    def __init__(self, spec: PodTerm, namespaces: tuple[str, ...]) -> None:
        self.spec = spec
        self.namespaces = namespaces
        self.key: TermKey = (repr(spec), namespaces)

    def selects(self, task: LiveTask) -> bool:
        if _namespace(task) not in self.namespaces:
            return False
        labels = task.spec.labels
        if any(labels.get(key) != value for key, value in self.spec.match_labels.items()):
            return False
        return all(matches(requirement, labels) for requirement in self.spec.match_expressions)


class DomainCounts:
    """How many booked tasks that a test counts are in each domain of a label; follows the changes of nodes."""

    def __init__(self, label: str, counts: Callable[[LiveTask], bool], nodes: Sequence[LiveNode]) -> None:
        self.label = label
        self.counts = counts
        self.nodes = nodes
        self.on_node: dict[int, int] = {}
        self.in_domain: dict[str, int] = {}
        self.total = 0
        self.read = -1

    def update(self, touched: Sequence[int]) -> None:
        indices = range(len(self.nodes)) if self.read < 0 else set(touched[self.read :])
        self.read = len(touched)
        for index in indices:
            node = self.nodes[index]
            now = sum(self.counts(task) for task in node.tasks.values())
            change = now - self.on_node.get(index, 0)
            if change:
                self.on_node[index] = now
                self.total += change
                domain = node.spec.labels.get(self.label)
                if domain is not None:
                    self.in_domain[domain] = self.in_domain.get(domain, 0) + change

    def near(self, node: LiveNode) -> int:
        domain = node.spec.labels.get(self.label)
        return 0 if domain is None else self.in_domain.get(domain, 0)


class Affinities:
    """All terms of a session. `concerns` is cheap and nearly always false; only then is anything counted."""

    def __init__(self, nodes: Sequence[LiveNode], touched: Sequence[int]) -> None:
        self.nodes = nodes
        self.touched = touched
        self.avoided: dict[TermKey, Term] = {}
        self.selected: dict[TermKey, DomainCounts] = {}
        self.holding: dict[TermKey, DomainCounts] = {}

    def add(self, task: LiveTask) -> None:
        """Learn the anti-affinity of a task: others must keep away from it."""
        for spec in task.spec.pod_anti_affinity:
            term = Term(spec, _namespaces(spec, task))
            self.avoided.setdefault(term.key, term)

    def concerns(self, task: LiveTask) -> bool:
        spec = task.spec
        if spec.pod_affinity or spec.pod_anti_affinity or spec.preferred_pod_affinity:
            return True
        return bool(self.avoided) and any(term.selects(task) for term in self.avoided.values())

    def cause(self, task: LiveTask, node: LiveNode) -> str | None:
        """None if the task may go there, else podAffinity or podAntiAffinity."""
        for spec in task.spec.pod_anti_affinity:
            if self._census(self.selected, Term(spec, _namespaces(spec, task))).near(node):
                return "podAntiAffinity"
        for term in self.avoided.values():
            if term.selects(task) and self._holders(term).near(node):
                return "podAntiAffinity"
        terms = [Term(spec, _namespaces(spec, task)) for spec in task.spec.pod_affinity]
        if any(term.spec.topology_key not in node.spec.labels for term in terms):
            return "podAffinity"
        if all(self._census(self.selected, term).near(node) for term in terms):
            return None
        alone = not any(self._census(self.selected, term).total for term in terms)
        return None if alone and all(term.selects(task) for term in terms) else "podAffinity"

    def scores(self, task: LiveTask, nodes: Sequence[LiveNode]) -> list[int]:
        """For each node how near it is to the pods that the task prefers; the best 100 times `PREFERRED`."""
        terms = [Term(spec, _namespaces(spec, task)) for spec in task.spec.preferred_pod_affinity]
        near = [sum(self._census(self.selected, term).near(node) for term in terms) for node in nodes]
        low, high = min(near), max(near)
        return [100 * (count - low) // (high - low) * PREFERRED for count in near] if high > low else [0] * len(near)

    def _census(self, known: dict[TermKey, DomainCounts], term: Term) -> DomainCounts:
        census = known.get(term.key)
        if census is None:
            census = known[term.key] = DomainCounts(term.spec.topology_key, term.selects, self.nodes)
        census.update(self.touched)
        return census

    def _holders(self, term: Term) -> DomainCounts:
        census = self.holding.get(term.key)
        if census is None:
            key = term.key

            def holds(task: LiveTask) -> bool:
                return any(Term(spec, _namespaces(spec, task)).key == key for spec in task.spec.pod_anti_affinity)

            census = self.holding[key] = DomainCounts(term.spec.topology_key, holds, self.nodes)
        census.update(self.touched)
        return census
