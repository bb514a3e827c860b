"""Objects of a workload that was never submitted: what Services lead to, and what no object says."""

from typing import Any

import pytest

from fairlead.engines.kubernetes.render.workload import render_spec
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


def test_a_port_of_the_nodes_is_the_masters() -> None:
    """Two Services with one of them would be refused by the cluster."""
    objects, _ = printed("distributed-training", POD | {"numWorkers": 2})
    ports = {one["metadata"]["name"]: one["spec"].get("ports") for one in objects if one["kind"] == "Service"}
    assert ports["x-master-nodeport"] == [{"name": "port-8080", "port": 8080, "targetPort": 8080, "nodePort": 30080}]
    assert ports["x-worker-nodeport"] == [{"name": "port-8080", "port": 8080, "targetPort": 8080}]


def test_two_external_ports_can_lead_to_one_of_the_container() -> None:
    """A Service with two ports of one name would be refused by the cluster."""
    ports = [{"container": 8080, "serviceType": "LoadBalancer", "external": number} for number in (80, 443)]
    objects, _ = printed("training", {"image": "i", "ports": ports})
    [service] = [one for one in objects if one["kind"] == "Service"]
    named = {port["name"]: (port["port"], port["targetPort"]) for port in service["spec"]["ports"]}
    assert named == {"port-8080": (80, 8080), "port-8080-443": (443, 8080)}


def test_pods_of_a_group_find_each_other_through_one_service() -> None:
    objects, _ = printed("distributed-training", {"image": "i", "numWorkers": 2})
    [service] = [one for one in objects if one["kind"] == "Service"]
    pods = [one for one in objects if one["kind"] == "Pod"]
    assert all(taken(service, pod["metadata"]["labels"]) for pod in pods)


SCALED = {"minReplicas": 0, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 5}
AGAIN = {"image": "i", "restartPolicy": "Always", "completions": 3, "parallelism": 2, "backoffLimit": 0}


@pytest.mark.parametrize(
    ("kind", "spec", "want"),
    [
        pytest.param(
            "inference-service",
            {"image": "i", "autoscaling": SCALED},
            [f"autoscaling.{name}" for name in SCALED],
            id="scaling is the server's",
        ),
        pytest.param(
            "inference-service",
            {"image": "i", "servingPort": {"container": 80, "authorizationType": "public"}},
            ["servingPort.authorizationType"],
            id="serving port",
        ),
        pytest.param("inference-service", {"image": "i", "servingPort": {"container": 80}}, [], id="port alone"),
        pytest.param(
            "distributed-inference",
            GROUPS | {"servingPort": {"port": 80, "exposedUrl": "https://x"}},
            ["servingPort.exposedUrl"],
            id="serving port of groups",
        ),
        pytest.param(
            "distributed-inference",
            {"leader": {"image": "i"}, "worker": {"image": "i"}},
            ["worker.image"],
            id="a role without pods",
        ),
        pytest.param("training", AGAIN, ["completions", "backoffLimit"], id="a training that never ends"),
        pytest.param(
            "training",
            {"image": "i", "relatedUrls": [{"url": "u", "type": "t", "name": "n"}]},
            ["relatedUrls[0].url", "relatedUrls[0].type", "relatedUrls[0].name"],
            id="related URLs",
        ),
        pytest.param(
            "training",
            {"image": "i", "relatedUrls": [{"url": "u", "type": "t", "exclude": True}, {"url": "v", "type": "t"}]},
            [f"relatedUrls[0].{name}" for name in ("url", "type", "exclude")]
            + ["relatedUrls[1].url", "relatedUrls[1].type"],
            id="items behind an excluded one",
        ),
        pytest.param(
            "distributed-training",
            {"image": "i", "cleanPodPolicy": "All", "masterSpec": {"image": "i", "priorityClass": "low"}},
            ["cleanPodPolicy", "masterSpec.priorityClass"],
            id="what is the whole workload's",
        ),
    ],
)
def test_what_is_lost_is_listed_by_its_own_path(kind: str, spec: dict[str, Any], want: list[str]) -> None:
    assert printed(kind, spec)[1] == want


def test_node_pools_of_the_workload_reach_the_pods_of_groups() -> None:
    objects, lost = printed("distributed-inference", GROUPS | {"nodePools": ["a", "b"]})
    template = objects[-1]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert template["metadata"]["annotations"]["kai.scheduler/node-pools"] == "a b"
    assert lost == []
