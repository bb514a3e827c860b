"""Objects of a workload that was never submitted: what Services lead to, and what no object says."""

from typing import Any

import pytest

from fairlead.engines.kubernetes.render import render_spec
from fairlead.kinds import KINDS

PORTS = [{"container": 8080, "serviceType": "NodePort", "external": 30080}]
POD = {"image": "i", "ports": PORTS}
GROUPS = {
    "leader": {"image": "i"},
    "worker": {"image": "i"},
    "workers": 2,
    "servingPort": {"port": 8000},
}


def printed(kind: str, spec: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    objects, losses = render_spec(KINDS[kind], "x", "team-a", spec)
    return objects, [loss.path for loss in losses]


def taken(service: dict[str, Any], labels: dict[str, str]) -> bool:
    return bool(service["spec"]["selector"].items() <= labels.items())


def test_requests_go_to_leaders_alone() -> None:
    objects, _ = printed("distributed-inference", GROUPS)
    [service] = [one for one in objects if one["kind"] == "Service"]
    template = objects[-1]["spec"]["leaderWorkerTemplate"]
    assert taken(service, template["leaderTemplate"]["metadata"]["labels"])
    assert not taken(service, template["workerTemplate"]["metadata"]["labels"])


@pytest.mark.parametrize("framework", ["PyTorch", "MPI", "TF", "XGBoost"])
def test_ports_of_a_role_lead_to_its_pods_alone(framework: str) -> None:
    spec = {"distributedFramework": framework, "image": "i", "numWorkers": 2, "masterSpec": POD}
    objects, _ = printed("distributed-training", spec)
    [service] = [one for one in objects if one["kind"] == "Service" and one["spec"].get("clusterIP") != "None"]
    pods = [one for one in objects if one["kind"] == "Pod"]
    [found] = [pod["metadata"]["name"] for pod in pods if taken(service, pod["metadata"]["labels"])]
    assert len(pods) == 3
    assert found.startswith(service["metadata"]["name"].removesuffix("-nodeport"))


def test_pods_of_a_group_find_each_other_through_one_service() -> None:
    objects, _ = printed("distributed-training", {"image": "i", "numWorkers": 2})
    [service] = [one for one in objects if one["kind"] == "Service"]
    pods = [one for one in objects if one["kind"] == "Pod"]
    assert all(taken(service, pod["metadata"]["labels"]) for pod in pods)
