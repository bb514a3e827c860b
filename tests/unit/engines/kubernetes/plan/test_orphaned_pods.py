"""Pods that are left of what somebody removed, and what is to be done before anything runs beside them."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.recreate import find_orphaned_pods
from fairlead.model.records.phase import PodPhase

LABELS = {"fairlead/workload-id": "w", "fairlead/run": "1", "fairlead/role": "main"}
JOB = msgspec.convert({"metadata": {"name": "j", "labels": LABELS}}, objects.Runner)


def pod(owner: str, *, phase: str = "Running", ends: bool = False, labels: dict[str, str] | None = None) -> objects.Pod:
    metadata: dict[str, Any] = {"name": "p", "uid": "u", "labels": LABELS | (labels or {})}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "j", "uid": "gone", "controller": True}]
    if ends:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}, objects.Pod)


@pytest.mark.parametrize(
    ("left", "is_fresh", "want"),
    [
        (pod("Job"), False, "ending"),
        (pod("Job", ends=True), False, "ending"),
        (pod("Job", phase="Succeeded"), True, ""),
        (pod("Job", phase="Failed", ends=True), False, "ending"),
        (pod("PyTorchJob"), False, "ending"),
        (pod("ReplicaSet"), True, "ending"),
        (pod("ReplicaSet"), False, ""),
        (pod("ReplicaSet", ends=True), False, "ending"),
        (pod(""), False, "orphan"),
        (pod("", ends=True), False, "ending"),
        (pod("", labels={"fairlead/index": "0"}), True, ""),
        (pod("Job", labels={"fairlead/run": "2"}), True, ""),
    ],
    ids=[
        *(
            "its Job is gone",
            "it ends",
            "ended",
            "ended and leaves",
            "an operator's",
            "a Deployment's",
            "left to the next Deployment",
        ),
        *("a Deployment's that ends", "nobody's", "nobody's that ends", "of our own group", "of another run"),
    ],
)
def test_what_is_left(left: objects.Pod, is_fresh: bool, want: str) -> None:
    orphans = find_orphaned_pods(ObservedWorkload(pods=(left,)), 1, is_fresh=is_fresh)
    assert (len(orphans.ending), len(orphans.orphans)) == (want == "ending", want == "orphan")


def test_while_what_makes_pods_is_there_nothing_is_left_over() -> None:
    orphans = find_orphaned_pods(ObservedWorkload(pods=(pod("Job", ends=True),), runners=(JOB,)), 1, is_fresh=True)
    assert not orphans.ending


def test_what_was_removed_is_reported_until_its_pods_are_gone() -> None:
    report = render_report("w", ObservedWorkload(pods=(pod("Job", ends=True),)))
    assert (report.run, [seen.phase for seen in report.pods]) == (1, [PodPhase.STOPPING])
    assert render_report("w", ObservedWorkload(pods=(pod("Job", phase="Failed"),))).run == 0
