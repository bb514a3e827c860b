"""Inference services and workspaces on real processes."""

import json
import os
import shlex
import sys
import urllib.request
from typing import Any

from tests.e2e.cli_calls import Caller
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
    assert fetch(url).body == b"model-00001-0"
    assert server.call("POST", f"/api/v1/workloads/inferences/{workload_id}/suspend").status == 404
    assert server.call("DELETE", f"/api/v1/workloads/inferences/{workload_id}").status == 202
    until(lambda: fetch(url).status != 200, "the URL's end")


def test_a_metric_must_be_named_where_the_number_of_pods_may_vary(server: Server) -> None:
    spec = {"image": "x", "autoscaling": {"minReplicas": 1, "maxReplicas": 2}}
    body = {"name": "m", "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/inferences", body)
    assert answer.status == 400
    assert "spec.autoscaling.metric: is missing" in answer.json["details"]


def test_a_service_of_the_cluster_alone_has_a_port_and_no_url(server: Server) -> None:
    workload_id = run(
        server,
        "inferences",
        "inside",
        ANSWERS.replace("PORT", "8022"),
        environmentVariables=[{"name": "WHO", "value": "only here"}],
        servingPort={"container": 8022, "clusterLocalAccessOnly": True},
    )
    running = server.until_phase(workload_id, "Running")
    [connection] = running["externalConnections"]
    assert connection["connectionType"] == "ClusterIP"
    address = connection["url"].removeprefix("http://").rstrip("/")
    with urllib.request.urlopen(f"http://{address}/", timeout=30) as answer:
        assert answer.read() == b"only here"
    assert server.call("DELETE", f"/api/v1/workloads/inferences/{workload_id}").status == 202


def test_the_command_line_submits_updates_and_deletes(server: Server) -> None:
    fairlead = Caller(server.data_dir)
    words = ("--command", "--", sys.executable, "-c", ANSWERS.replace("PORT", "8023"))
    flags = ("-i", "python:3", "-e", "WHO=first", "-e", "KEPT=1", "--serving-port", "8023", "--min-replicas", "1")
    assert fairlead.ok("inference", "submit", "by-hand", *flags, *words).strip() == "by-hand"
    [listed] = json.loads(fairlead.ok("inference", "list", "--json"))
    assert (listed["name"], listed["type"]) == ("by-hand", "Inference")
    server.until_phase(listed["id"], "Running")
    [url] = server.workload(listed["id"])["urls"]
    assert fetch(url).body == b"first"
    if os.geteuid() == 0:
        fairlead.ok("inference", "update", "by-hand", "-e", "WHO=second", "--request-timeout-seconds", "20")
        until(lambda: fetch(url).body == b"second", "the update")
    spec = server.call("GET", f"/api/v1/workloads/inferences/{listed['id']}").json["spec"]
    assert {"name": "KEPT", "value": "1"} in spec["environmentVariables"]
    assert "by-hand" in fairlead.ok("inference", "describe", "by-hand")
    fairlead.ok("inference", "logs", "by-hand")
    nothing = fairlead("inference", "update", "by-hand")
    assert (nothing.code, "Nothing to change" in nothing.err) == (2, True)
    refused = fairlead("inference", "update", "by-hand", "--max-replicas", "3")
    assert (refused.code, "--metric: is missing" in refused.err) == (1, True), refused
    fairlead.ok("inference", "delete", "by-hand")
    until(lambda: fetch(url).status == 404, "its end")


def test_templates_of_services_can_be_made_and_used(server: Server) -> None:
    path = "/api/v1/workload-templates/inferences"
    spec: dict[str, Any] = {
        "image": "python:3",
        "command": "python3 -c",
        "args": shlex.quote(ANSWERS.replace("PORT", "8024")),
    }
    spec |= {"servingPort": {"container": 8024}, "autoscaling": {"minReplicas": 0}}
    body: dict[str, Any] = {"meta": {"name": "answers", "scopeType": "project", "scopeId": "1"}, "spec": spec}
    template = server.call("POST", path, body)
    assert template.status == 202, template
    identity = template.json["meta"]["id"]
    assert server.call("GET", f"{path}/{identity}").json["spec"]["autoscaling"] == {"minReplicas": 0}
    body = {
        "name": "from-template",
        "projectId": "1",
        "clusterId": server.credentials["clusterId"],
        "templateId": identity,
        "spec": {"environmentVariables": [{"name": "WHO", "value": "made of it"}]},
    }
    made = server.call("POST", "/api/v1/workloads/inferences", body)
    assert made.status == 202, made
    server.until_phase(made.json["workloadId"], "Running")
    [url] = server.workload(made.json["workloadId"])["urls"]
    assert fetch(url).body == b"made of it"
    assert server.call("DELETE", f"/api/v1/workloads/inferences/{made.json['workloadId']}").status == 202
    assert server.call("DELETE", f"{path}/{identity}").status == 204


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
