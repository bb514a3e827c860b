"""Members that were removed from a file: `apply` removes them from the workload, or says that it cannot."""

import json
from pathlib import Path
from typing import Any

from tests.contract.api.api_server import ApiServer
from tests.unit.cli.calling import Called, call

INFERENCES = "/api/v1/workloads/inferences"


def document(name: str, **members: Any) -> str:
    spec = {
        "name": {"value": name},
        "image": {"value": "i"},
        "command": {"value": "serve"},
        "ports": {"items": {"web": {"value": {"container": 8000}}}},
        **members,
    }
    metadata = {"name": name, "namespace": "runai-default"}
    return json.dumps(
        {"apiVersion": "run.ai/v2alpha1", "kind": "InferenceWorkload", "metadata": metadata, "spec": spec}
    )


def apply(api: ApiServer, home: Path, text: str) -> Called:
    url = f"http://127.0.0.1:{api.port}"
    return call("apply", "-f", "-", home=home, stdin=text, FAIRLEAD_URL=url, FAIRLEAD_TOKEN=api.token)


def spec_of(api: ApiServer, name: str) -> dict[str, Any]:
    [row] = api.get(f"/api/v1/workloads?filterBy=name=={name}")["workloads"]
    spec: dict[str, Any] = api.get(f"{INFERENCES}/{row['id']}")["spec"]
    return spec


def test_a_member_of_an_object_an_object_and_a_list_are_removed(api: ApiServer, tmp_path: Path) -> None:
    environment = {"items": {"A": {"value": "a"}}}
    size = {"cpu": {"value": "1"}, "memory": {"value": "1Gi"}}
    text = document("shrinks", environment=environment, **size)
    assert apply(api, tmp_path, text).out == "shrinks: submitted\n"
    fewer = document("shrinks", cpu=size["cpu"])
    done = apply(api, tmp_path, fewer)
    assert done.out.startswith("shrinks: changed ("), done
    spec = spec_of(api, "shrinks")
    assert spec["compute"] == {"cpuCoreRequest": 1}
    assert spec["environmentVariables"] == []
    assert apply(api, tmp_path, fewer).out == "shrinks: unchanged\n"
    fewest = document("shrinks")
    assert apply(api, tmp_path, fewest).out == "shrinks: changed (compute.cpuCoreRequest)\n"
    assert spec_of(api, "shrinks")["compute"] == {}
    assert apply(api, tmp_path, fewest).out == "shrinks: unchanged\n"


def test_a_value_that_cannot_be_removed_is_named(api: ApiServer, tmp_path: Path) -> None:
    assert apply(api, tmp_path, document("stays", workingDir={"value": "/srv"})).out == "stays: submitted\n"
    refused = apply(api, tmp_path, document("stays"))
    assert (refused.code, refused.out) == (1, ""), refused
    assert "cannot change; these members differ: workingDir." in refused.err
    assert spec_of(api, "stays")["workingDir"] == "/srv"


def test_members_that_files_do_not_have_stay(api: ApiServer, tmp_path: Path) -> None:
    scale = {"metric": {"value": "concurrency"}, "maxScale": {"value": 2}}
    assert apply(api, tmp_path, document("keeps", **scale)).out == "keeps: submitted\n"
    [row] = api.get("/api/v1/workloads?filterBy=name==keeps")["workloads"]
    more = {"spec": {"autoscaling": {"scaleDownDelaySeconds": 5}}}
    assert api.call("PATCH", f"{INFERENCES}/{row['id']}", more).status == 202
    wider = document("keeps", **scale | {"maxScale": {"value": 3}})
    assert apply(api, tmp_path, wider).out == "keeps: changed (autoscaling.maxReplicas)\n"
    autoscaling = spec_of(api, "keeps")["autoscaling"]
    assert (autoscaling["maxReplicas"], autoscaling["scaleDownDelaySeconds"]) == (3, 5)


def test_null_removes_a_member_inside_an_object_only(api: ApiServer) -> None:
    body = {
        "name": "nulls",
        "projectId": "1",
        "clusterId": api.cluster_id,
        "spec": {
            "image": "i",
            "command": "serve",
            "servingPort": {"container": 8000},
            "compute": {"cpuCoreRequest": 1, "cpuMemoryRequest": "1G"},
        },
    }
    made = api.call("POST", INFERENCES, body)
    assert made.status == 202, made
    path = f"{INFERENCES}/{made.json['workloadId']}"
    changes = {"image": None, "compute": {"cpuMemoryRequest": None}, "autoscaling": {"metric": None}}
    assert api.call("PATCH", path, {"spec": changes}).status == 202
    spec = api.get(path)["spec"]
    assert (spec["image"], spec["compute"], spec["autoscaling"]) == ("i", {"cpuCoreRequest": 1}, {})


def test_a_file_without_a_workload_is_pointed_out(api: ApiServer, tmp_path: Path) -> None:
    empty = apply(api, tmp_path, "# nothing\n")
    assert (empty.code, empty.out) == (1, "")
    assert "No workload, template or policy found in" in empty.err
