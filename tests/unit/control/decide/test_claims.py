"""When the storage of a workload goes."""

from typing import Any, NamedTuple

import pytest

from fairlead.control.decide.claims import makes_claims, releases_ephemeral_claims
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.model.pods.podset import PodContainer, PodSet
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders

EPHEMERAL = {"path": "/a", "ephemeral": True}
NEW = {"path": "/a", "claimInfo": {"size": "1G"}}
EXISTING = {"path": "/a", "existingPvc": True, "claimName": "shelf"}


def podset(*claims: dict[str, Any]) -> PodSet:
    return builders.podset(
        container=PodContainer(image="x", fields=builders.container_fields({"storage": {"pvc": list(claims)}}))
    )


class Case(NamedTuple):
    name: str
    claims: list[dict[str, Any]]
    before: Phase
    after: Phase
    pod: PodPhase | None
    want: bool


CASES = [
    Case("stopped", [EPHEMERAL], Phase.STOPPING, Phase.STOPPED, None, True),
    Case("completed", [EPHEMERAL], Phase.RUNNING, Phase.COMPLETED, None, True),
    Case("completed-while-a-pod-ends", [EPHEMERAL], Phase.RUNNING, Phase.COMPLETED, PodPhase.STOPPING, False),
    Case("the-last-pod-has-ended", [EPHEMERAL], Phase.COMPLETED, Phase.COMPLETED, PodPhase.SUCCEEDED, True),
    Case("long-since-completed", [EPHEMERAL], Phase.COMPLETED, Phase.COMPLETED, None, False),
    Case("runs", [EPHEMERAL], Phase.INITIALIZING, Phase.RUNNING, None, False),
    Case("others-alone", [NEW, EXISTING], Phase.STOPPING, Phase.STOPPED, None, False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ephemeral_claims_go_when_no_pod_is_left(case: Case) -> None:
    pods = () if case.pod is None else (builders.pod(phase=case.pod),)
    entry = WorkloadEntry(workload=builders.workload(phase=case.before), podsets=(podset(*case.claims),), pods=pods)
    draft = Draft(entry, 1000)
    draft.set(phase=case.after)
    assert releases_ephemeral_claims(draft) is case.want


@pytest.mark.parametrize(("claim", "want"), [(NEW, True), (EXISTING, False), (EPHEMERAL, False)])
def test_only_new_claims_go_with_their_workload(claim: dict[str, Any], want: bool) -> None:
    assert makes_claims([podset(claim)]) is want
