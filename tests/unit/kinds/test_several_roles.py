"""What the states of several sets and groups amount to, and what distributed specs mean."""

from typing import Any

import pytest

from fairlead.kinds import KINDS
from fairlead.kinds.kind import GroupState, SetState, spec_violations
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import build
from fairlead.model.spec.rules import SubmissionLimits

TRAINING, GROUPS = KINDS["distributed-training"], KINDS["distributed-inference"]


def podsets(kind: Any, **spec: Any) -> tuple[PodSet, ...]:
    found: tuple[PodSet, ...] = kind.podsets(build(kind.spec, spec))
    return found


def groups(*ready: tuple[int, int], **members: Any) -> Phase | None:
    """The phase of a service with one worker per group; per group how many leaders and workers are ready."""
    leader, worker = podsets(GROUPS, leader={"image": "x"}, worker={"image": "x"}, workers=1, replicas=len(ready))
    states = [
        SetState(
            role=each.role,
            podset=each,
            groups=tuple(GroupState(running=pair[side], ready=pair[side]) for pair in ready),
            **members,
        )
        for side, each in enumerate((leader, worker))
    ]
    outcome = GROUPS.outcome(states)
    return None if outcome is None else outcome.phase


@pytest.mark.parametrize(
    ("ready", "members", "want"),
    [
        pytest.param([(1, 1), (1, 1)], {}, Phase.RUNNING, id="all"),
        pytest.param([(1, 1), (1, 0)], {}, Phase.INITIALIZING, id="one on its way"),
        pytest.param([(1, 1), (0, 0)], {}, Phase.INITIALIZING, id="one not asked for yet"),
        pytest.param([(1, 1), (0, 0)], {"blocked": True}, Phase.DEGRADED, id="one without room"),
        pytest.param([(1, 1), (1, 1), (1, 0)], {"lapsed": 1}, Phase.DEGRADED, id="one no longer ready"),
        pytest.param([(0, 0), (0, 0)], {}, None, id="none"),
        pytest.param([], {}, Phase.RUNNING, id="none wanted"),
    ],
)
def test_the_phase_of_a_service_of_groups(ready: Any, members: dict[str, Any], want: Phase | None) -> None:
    assert groups(*ready, **members) == want


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({}, "Scaled to 0 groups"),
        ({"running": 1}, "Scaled to 0 groups; 2 of its pods are still stopping"),
        ({"ending": 1}, "Scaled to 0 groups; 2 of its pods are still stopping"),
    ],
    ids=["gone", "not told yet", "told to end"],
)
def test_what_was_scaled_to_nothing_says_what_still_runs(members: dict[str, Any], want: str) -> None:
    sets = podsets(GROUPS, leader={"image": "x"}, worker={"image": "x"}, workers=1, replicas=0)
    outcome = GROUPS.outcome([SetState(role=each.role, podset=each, **members) for each in sets])
    assert outcome is not None
    assert (outcome.phase, outcome.message) == (Phase.RUNNING, want)


@pytest.mark.parametrize(
    ("counts", "want"),
    [
        pytest.param([{"ready": 1, "running": 1}, {"ready": 2, "running": 2}], Phase.RUNNING, id="all run"),
        pytest.param([{"ready": 1, "running": 1}, {"starting": 2}], Phase.INITIALIZING, id="workers start"),
        pytest.param([{"succeeded": 1}, {"running": 2, "ready": 2}], Phase.COMPLETED, id="the master decides"),
        pytest.param([{"running": 1, "ready": 1}, {"succeeded": 2}], Phase.RUNNING, id="workers are done"),
        pytest.param([{"failed": 3}, {"failed": 4}], Phase.FAILED, id="failures add up"),
        pytest.param([{"running": 1, "ready": 1}, {"running": 1, "ready": 1}], Phase.DEGRADED, id="one is missing"),
        pytest.param([{}, {}], None, id="nothing yet"),
    ],
)
def test_the_phase_of_a_distributed_training(counts: list[dict[str, Any]], want: Phase | None) -> None:
    both = podsets(TRAINING, image="x", numWorkers=2)
    states = [SetState(role=each.role, podset=each, **given) for each, given in zip(both, counts, strict=True)]
    outcome = TRAINING.outcome(states)
    assert (None if outcome is None else outcome.phase) == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"distributedFramework": "JAX"}, ["worker"]),
        ({"distributedFramework": "MPI"}, ["launcher", "worker"]),
        ({"masterSpecSameAsWorker": False}, ["worker"]),
        ({}, ["master", "worker"]),
    ],
)
def test_who_takes_part(spec: dict[str, Any], want: list[str]) -> None:
    assert [each.role for each in podsets(TRAINING, image="x", **spec)] == want


@pytest.mark.parametrize(
    ("policy", "framework", "want"),
    [(None, "PyTorch", True), (None, "MPI", False), ("All", "PyTorch", False), ("None", "MPI", True)],
)
def test_who_runs_on_after_the_end(policy: str | None, framework: str, want: bool) -> None:
    leader, worker = podsets(TRAINING, image="x", cleanPodPolicy=policy, distributedFramework=framework)
    assert (leader.keeps_running, worker.keeps_running) == (False, want)


def test_elastic_workers_need_their_minimum() -> None:
    *_, worker = podsets(TRAINING, image="x", numWorkers=3, minReplicas=2, maxReplicas=5)
    assert (worker.count, worker.minimum, worker.variables["PET_NNODES"]) == (5, 2, "3:6")


def test_a_restart_policy_in_place_leaves_the_others_alone() -> None:
    leader, worker = podsets(TRAINING, image="x", restartPolicy="OnFailure")
    assert {each.restart_scope for each in (leader, worker)} == {RestartScope.POD}
    assert worker.restart is RestartPolicy.ON_FAILURE


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({}, {"spec.leader"}),
        ({"leader": {"image": "x"}, "workers": 1}, {"spec.worker"}),
        ({"leader": {"image": "x"}, "servingPort": {}}, {"spec.servingPort.port"}),
        (
            {
                "leader": {"image": "x"},
                "servingPort": {"port": 1, "authorizedUsers": ["a"], "authorizedGroups": ["b"]},
            },
            {"spec.servingPort"},
        ),
        (
            {"leader": {"image": "x"}, "servingPort": {"port": 1, "authorizationType": "authorizedUsers"}},
            {"spec.servingPort.authorizedUsers"},
        ),
        ({"leader": {"image": "x"}, "servingPort": {"port": 1, "authorizedUsers": [], "authorizedGroups": []}}, set()),
    ],
)
def test_what_a_service_of_groups_must_say(spec: dict[str, Any], want: set[str]) -> None:
    violations = spec_violations(GROUPS, build(GROUPS.spec, spec), "spec", SubmissionLimits())
    assert {violation.path for violation in violations} == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"slotsPerWorker": 10_001}, ["spec.slotsPerWorker"]),
        ({"numWorkers": 20_000}, ["spec.numWorkers"]),
        ({"numWorkers": 2, "maxReplicas": 1}, ["spec.maxReplicas"]),
    ],
    ids=["slots", "workers alone", "below the workers"],
)
def test_numbers_of_a_distributed_training(spec: dict[str, Any], want: list[str]) -> None:
    framework = {"distributedFramework": "MPI" if "slotsPerWorker" in spec else "PyTorch"}
    built = build(TRAINING.spec, {"image": "x", **framework, **spec})
    violations = spec_violations(TRAINING, built, "spec", SubmissionLimits())
    assert [violation.path for violation in violations] == want
