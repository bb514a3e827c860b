"""Pods on nodes that are drained: who is evicted with whom, and what becomes of the workload."""

from typing import Any

import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.engines.base import PodReport, PodState, Start, Stop
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.records.organization import Node, with_cordon_by_cluster, with_cordon_by_us
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod
from tests import builders

NOW = 1_000_000
RULES = builders.rules(is_draining=lambda node: node == "node-a")


def turn(*pods: Pod, podset: PodSet | None = None, reports: tuple[PodReport, ...] = (), **members: Any) -> Draft:
    given: dict[str, Any] = {"phase": Phase.RUNNING, "started_at": 1}
    workload = builders.workload(**(given | members))
    podsets = (podset or builders.podset(count=len(pods), completions=len(pods)),)
    return builders.decide_pods(WorkloadEntry(workload=workload, pods=pods, podsets=podsets), reports, NOW, RULES)


def stopped(draft: Draft) -> set[str]:
    return {order.pod_id for order in builders.orders(draft) if isinstance(order, Stop)}


def test_a_pod_is_evicted_once_and_its_workload_waits_again() -> None:
    pod = builders.pod()
    evicted = turn(pod)
    assert stopped(evicted) == {pod.id}
    assert (evicted.workload.phase, evicted.workload.preemptions) == (Phase.TERMINATING, 1)
    note = evicted.workload.last_eviction
    assert note is not None
    assert (note.rule, note.node, note.message) == ("drained", "node-a", "Evicted: node node-a is being drained")
    leaving = evicted.pods[pod.id]
    assert stopped(turn(leaving, phase=Phase.TERMINATING)) == set()
    end = PodReport(pod_id=pod.id, workload_id="id-train", attempt=1, state=PodState.EXITED, exit_code=143)
    after = turn(leaving, reports=(end,), phase=Phase.TERMINATING, preemptions=1)
    assert (after.workload.phase, after.workload.preemptions) == (Phase.PENDING, 1)


def test_pods_on_other_nodes_stay() -> None:
    here, there = builders.pod("train-0-0"), builders.pod("train-0-1", index=1, node="node-b")
    draft = turn(here, there)
    assert (stopped(draft), draft.workload.phase) == ({here.id}, Phase.RUNNING)


@pytest.mark.parametrize(("scope", "want"), [(RestartScope.GROUP, 2), (RestartScope.POD, 1)])
def test_a_group_that_restarts_together_is_evicted_together(scope: RestartScope, want: int) -> None:
    here, there = builders.pod("train-0-0"), builders.pod("train-0-1", index=1, node="node-b")
    other = builders.pod("train-1-0", group=1, node="node-b")
    podset = builders.podset(count=2, groups=2, completions=4, restart_scope=scope)
    assert len(stopped(turn(here, there, other, podset=podset))) == want


def test_a_pod_that_waits_for_its_restart_is_not_restarted_there() -> None:
    pod = builders.pod(phase=PodPhase.STARTING, restart_at=NOW + 5_000)
    draft = turn(pod)
    assert (draft.workload.phase, draft.pods[pod.id].phase) == (Phase.PENDING, PodPhase.STOPPED)
    assert not [order for order in builders.orders(draft) if isinstance(order, Start | Stop)]


def node(**members: Any) -> Node:
    return Node(id="n", name="n", cpu_milli=1, memory_bytes=1, **members)


def test_an_engine_that_cannot_cordon_follows_the_record() -> None:
    asked = with_cordon_by_us(node(), node(cordon_request=True, draining=True))
    assert (asked.cordoned, asked.cordon_request, asked.draining) == (True, None, True)
    assert with_cordon_by_us(node(), asked) == asked
    assert not with_cordon_by_us(node(), node(cordoned=True, cordon_request=False)).cordoned


@pytest.mark.parametrize(
    ("is_cordoned", "before", "want"),
    [
        (False, {"cordon_request": True, "draining": True}, (False, True, True)),
        (True, {"cordon_request": True, "draining": True}, (True, None, True)),
        (True, {"cordoned": True, "draining": True}, (True, None, True)),
        (False, {"cordoned": True, "draining": True}, (False, None, False)),
        (True, {}, (True, None, False)),
    ],
    ids=["asked for", "carried out", "unchanged", "uncordoned by somebody", "cordoned by somebody"],
)
def test_a_cluster_says_whether_a_node_is_cordoned(is_cordoned: bool, before: dict[str, bool], want: object) -> None:
    found = with_cordon_by_cluster(node(cordoned=is_cordoned), node(**before))
    assert (found.cordoned, found.cordon_request, found.draining) == want
