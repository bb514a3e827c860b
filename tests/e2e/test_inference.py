"""Inference services and workspaces on real processes."""

import shlex
from typing import Any

from tests.e2e.server import Server, until
from tests.e2e.web import fetch

ANSWERS = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["WHO"].encode())
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", PORT), Handler).serve_forever()
"""


def run(server: Server, kind: str, name: str, script: str, **spec: Any) -> str:
    body = {
        "name": name,
        "projectId": "1",
        "clusterId": server.credentials["clusterId"],
        "spec": {"image": "python:3", "command": "python3 -c", "args": shlex.quote(script)} | spec,
    }
    answer = server.call("POST", f"/api/v1/workloads/{kind}", body)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def test_a_service_answers_with_all_its_pods(server: Server) -> None:
    who = {"name": "WHO", "podFieldRef": {"path": "metadata.name"}}
    probe = {"readiness": {"handler": {"httpGet": {"port": 8021}}}}
    workload_id = run(
        server,
        "inferences",
        "model",
        ANSWERS.replace("PORT", "8021"),
        environmentVariables=[who],
        probes=probe,
        servingPort={"container": 8021},
    )
    running = server.until_phase(workload_id, "Running")
    assert (running["type"], running["preemptible"], running["actionsSupport"]["suspend"]) == (
        "Inference",
        False,
        False,
    )
    [url] = running["urls"]
    assert fetch(url).body == b"model-0-0"
    assert server.call("POST", f"/api/v1/workloads/inferences/{workload_id}/suspend").status == 404
    assert server.call("DELETE", f"/api/v1/workloads/inferences/{workload_id}").status == 202
    until(lambda: fetch(url).status != 200, "the URL's end")


def test_a_metric_must_be_named_where_the_number_of_pods_may_vary(server: Server) -> None:
    spec = {"image": "x", "autoscaling": {"minReplicas": 1, "maxReplicas": 2}}
    body = {"name": "m", "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/inferences", body)
    assert answer.status == 400
    assert "spec.autoscaling.metric: is missing" in answer.json["details"]


def test_a_workspace_is_not_preempted_and_can_be_suspended(server: Server) -> None:
    path = "/api/v1/workloads/workspaces"
    workload_id = run(server, "workspaces", "desk", "import time; time.sleep(600)")
    running = server.until_phase(workload_id, "Running")
    assert (running["type"], running["preemptible"], running["category"]) == ("Workspace", False, "Build")
    assert server.call("POST", f"{path}/{workload_id}/suspend").status == 202
    server.until_phase(workload_id, "Stopped")
    assert server.call("POST", f"{path}/{workload_id}/resume").status == 202
    server.until_phase(workload_id, "Running")
    listed = server.call("GET", "/api/v1/workloads?filterBy=type==Workspace").json["workloads"]
    assert [each["name"] for each in listed] == ["desk"]
    assert server.call("DELETE", f"{path}/{workload_id}").status == 202
