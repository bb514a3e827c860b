"""A real server compares its scheduler with the one of a cluster: an API server in memory plays pods that all start."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.e2e.server import Server, until
from tests.memory_api.process import running_api

MORE_NODES = {"changes": [{"change": "addNodes", "like": "node-0", "count": 1}]}


def submit(server: Server, name: str, gpus: int) -> None:
    [row] = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    spec = {"image": "busybox", "command": "sleep", "compute": {"gpuDevicesRequest": gpus}}
    body = {"name": name, "projectId": row["id"], "clusterId": row["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer


def count(server: Server, result: str) -> int:
    text = server.call("GET", "/metrics").body.decode()
    match = re.search(rf'^fairlead_kai_comparisons_total{{what="placement",result="{result}"}} (\d+)$', text, re.M)
    return int(match[1]) if match else 0


def test_the_share_is_in_metrics_and_answers(make_server: Callable[..., Server], tmp_path: Path) -> None:
    with running_api(tmp_path / "lab", nodes=2) as api:
        server = make_server("--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig))

        def first_assumption() -> str:
            answer = server.call(
                "POST",
                "/api/v1/scheduling/what-if",
                MORE_NODES,
            ).json
            return str(answer["assumptions"][0])

        assert "have not been compared" in first_assumption()
        # More GPUs than any node has: ours leaves it waiting, and the cluster in memory starts everything.
        submit(server, "large", 1000)
        until(lambda: count(server, "differ") == 1, "the first comparison")
        assert "both agreed in 0 of 1 placements and 0 of 0 evictions" in first_assumption()
