"""Waiting pods of which no part of KAI has taken notice, and those that are no concern."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.unacknowledged import find_unacknowledged_pod
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload

POOL = "kai.scheduler/node-pool"


def pod(*, node: str = "", **metadata: Any) -> objects.Pod:
    body = {"name": "p", "annotations": {"pod-group-name": "g"}, **metadata}
    return msgspec.convert({"metadata": body, "spec": {"nodeName": node}}, objects.Pod)


def group(*refusing: str, **labels: str) -> objects.PodGroup:
    said = [{"type": "UnschedulableOnNodePool", "status": "True", "nodePool": pool} for pool in refusing]
    metadata = {"name": "g", "labels": labels}
    return msgspec.convert({"metadata": metadata, "status": {"schedulingConditions": said}}, objects.PodGroup)


@pytest.mark.parametrize(
    ("pods", "groups", "want"),
    [
        ([pod()], [], "pod grouper"),
        ([pod(annotations={})], [group()], "pod grouper"),
        ([pod()], [group()], "node pool default"),
        ([pod()], [group(**{POOL: "h100"})], "node pool h100"),
        ([pod()], [group("default", **{POOL: "h100"})], "node pool h100"),
        ([pod()], [group("h100", **{POOL: "h100"})], ""),
        ([pod()], [group("default")], ""),
        ([pod(node="n")], [], ""),
        ([pod(deletionTimestamp="2026-01-01T00:00:00Z")], [], ""),
        ([], [], ""),
    ],
    ids=[
        "no group",
        "in no group",
        "nothing said in the default pool",
        "nothing said in its pool",
        "something said in another pool",
        "refused in its pool",
        "refused in the default pool",
        "has a node",
        "is ending",
        "no pods",
    ],
)
def test_who_takes_no_notice(pods: list[objects.Pod], groups: list[objects.PodGroup], want: str) -> None:
    found = find_unacknowledged_pod(ObservedWorkload(pods=pods, groups=groups))
    message = found.message if found is not None else ""
    assert (bool(message), want in message) == (bool(want), True), message
