"""Where a training runs: every placement field chooses among declared nodes, seen from inside."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.fields import look
from tests.e2e.server import Server, until

NODES = (
    "plain:cpu=4,memory=4Gi,gpus=0,labels=zone=a;age=9",
    "fast:cpu=4,memory=4Gi,gpus=0,labels=zone=b;run.ai/type=fast;age=10",
    "kept:cpu=4,memory=4Gi,gpus=0,labels=zone=c,taints=team=blue:NoSchedule",
)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = [flag for node in NODES for flag in ("--node", node)]
    server = Server(tmp_path_factory.mktemp("machines") / "data", "--personal", "--retry-delay", "20", *flags).start()
    yield server
    server.close()


def affinity(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": operator} | ({"values": list(values)} if values else {})
    return {"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def test_node_type(machines: Server) -> None:
    assert look(machines, "type", "echo $NODE_NAME", nodeType="fast") == "fast"


def test_node_affinity_required(machines: Server) -> None:
    assert look(machines, "affinity-in", "echo $NODE_NAME", **affinity("In", "b")) == "fast"
    assert look(machines, "affinity-not", "echo $NODE_NAME", **affinity("NotIn", "b", "c")) == "plain"
    younger, older = ({"key": "age", "operator": operator, "values": ["10"]} for operator in ("Lt", "Gt"))
    typed, untyped = ({"key": "run.ai/type", "operator": operator} for operator in ("Exists", "DoesNotExist"))
    nowhere, there = ({"key": "zone", "operator": "In", "values": [zone]} for zone in ("x", "b"))
    # Terms are ORed, expressions ANDed.
    for name, terms, want in (
        ("less", [[younger]], "plain"),
        ("exists", [[typed]], "fast"),
        ("lacks", [[untyped, younger]], "plain"),
        ("either", [[nowhere], [there]], "fast"),
    ):
        required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        assert look(machines, f"affinity-{name}", "echo $NODE_NAME", nodeAffinityRequired=required) == want
    for name, term in (("more", [older]), ("both", [nowhere, there])):
        required = {"nodeSelectorTerms": [{"matchExpressions": term}]}
        _waits(machines, machines.run(f"affinity-{name}", "/bin/true", nodeAffinityRequired=required))


def test_tolerations(machines: Server) -> None:
    toleration = {"name": "t", "operator": "Equal", "key": "team", "value": "blue", "effect": "NoSchedule"}
    want = affinity("In", "c")
    assert look(machines, "tolerates", "echo $NODE_NAME", tolerations=[toleration], **want) == "kept"
    for number, change in enumerate(({"value": "red"}, {"key": "other"}, {"effect": "NoExecute"})):
        workload = machines.run(f"tolerates-not-{number}", "/bin/true", tolerations=[{**toleration, **change}], **want)
        _waits(machines, workload)
    exists = {"name": "t", "operator": "Exists", "key": "team", "effect": "NoSchedule"}
    for number, change in enumerate(({}, {"effect": "Any"})):
        tolerated = [{**exists, **change}]
        assert look(machines, f"tolerates-any-{number}", "echo $NODE_NAME", tolerations=tolerated, **want) == "kept"


def _waits(machines: Server, workload: str) -> None:
    until(lambda: machines.workload(workload).get("phaseMessage"), "a reason to wait")
    assert machines.phase(workload) == "Pending"


def test_pod_affinity(machines: Server) -> None:
    compute, pair = {"cpuCoreRequest": 3}, {"completions": 2, "parallelism": 2}
    apart = machines.run("apart", "/bin/sleep", "600", compute=compute, **pair)
    until(lambda: len(_running(machines, apart)) == 2, "both pods run, on two nodes")
    assert machines.call("DELETE", f"/api/v1/workloads/trainings/{apart}").status == 202
    until(lambda: not _running(machines, apart), "both pods are gone")
    # Together in one zone there is room for one of them only.
    together = {"podAffinity": {"type": "Required", "key": "zone"}}
    pinned = machines.run("together", "/bin/sleep", "600", compute=compute, **pair, **together)
    until(lambda: len(_running(machines, pinned)) == 1, "one pod runs")
    small = machines.run("together-small", "/bin/true", compute={"cpuCoreRequest": 1})
    machines.until_phase(small, "Completed")
    assert len(_running(machines, pinned)) == 1
    machines.call("DELETE", f"/api/v1/workloads/trainings/{pinned}")


def _running(machines: Server, workload: str) -> list[Any]:
    pods = machines.call("GET", f"/api/v1/workloads/{workload}/pods").json["pods"]
    return [pod for pod in pods if pod["k8sPhase"] == "Running"]
