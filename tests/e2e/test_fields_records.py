"""Fields for people, and fields that a workload says it has no use for here."""

from typing import Any

from tests.e2e.fields import conditions
from tests.e2e.server import Server


def test_category(server: Server) -> None:
    marked = server.run("marked", "/bin/true", category="Build")
    plain = server.run("plain", "/bin/true")
    assert server.workload(marked)["category"] == "Build"
    answer = server.call("GET", "/api/v1/workloads?filterBy=category==Build")
    found = {each["id"] for each in answer.json["workloads"]}
    assert marked in found
    assert plain not in found


def test_username(server: Server) -> None:
    workload = server.run("named", "/bin/true", username="Ada Lovelace")
    assert server.call("GET", f"/api/v1/workloads/trainings/{workload}").json["spec"]["username"] == "Ada Lovelace"


def test_description(server: Server) -> None:
    variables = [{"name": "DEPTH", "value": "3", "description": "how deep to dig"}]
    workload = server.run("described", "/bin/true", environmentVariables=variables)
    spec = server.call("GET", f"/api/v1/workloads/trainings/{workload}").json["spec"]
    assert spec["environmentVariables"][0]["description"] == "how deep to dig"


def test_tolerations_seconds(server: Server) -> None:
    toleration = {"name": "a", "key": "k", "operator": "Exists", "effect": "NoExecute", "seconds": 30}
    workload = server.run("tolerant", "/bin/true", tolerations=[toleration])
    server.until_phase(workload, "Completed")
    assert "while pods run" in conditions(server, workload, "NotEnforced")["tolerations[a].seconds"]


def test_image_fields_on_the_host_runtime(server: Server) -> None:
    """The process runs on the machine's own files, and the workload says so of each field."""
    kept = {"name": "registry", "projectId": "1", "data": {".dockerconfigjson": "{}"}}
    assert server.call("POST", "/api/v1/secrets", kept).status == 201
    spec: dict[str, Any] = {"imagePullPolicy": "Always", "imagePullSecrets": [{"name": "registry"}]}
    workload = server.run("no-image", "/bin/true", **spec)
    server.until_phase(workload, "Completed")
    told = conditions(server, workload, "NotEnforced")
    assert {"image", "imagePullPolicy", "imagePullSecrets"} <= told.keys()
