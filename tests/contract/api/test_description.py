"""The description is whole and true: no reference leads nowhere, every path of ours is in it, pages work offline."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.application import RequestSettings
from fairlead.api.server.health import check_metrics_token
from fairlead.model.errors import Refused
from tests.contract.api.agreement import CONTRACTS, load_contract
from tests.contract.api.api_server import ApiServer
from tests.contract.api.runapy_calls import client_operations, matches


@pytest.fixture(scope="module")
def description(api: ApiServer) -> dict[str, Any]:
    answer = api.call("GET", "/api/openapi.json", token="")
    assert answer.status == 200
    found: dict[str, Any] = answer.json
    return found


def test_references_lead_somewhere(description: dict[str, Any]) -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(description)))
    assert named
    assert named <= set(description["components"]["schemas"])


def test_every_operation_has_its_own_id_and_summary(description: dict[str, Any]) -> None:
    operations = [one for methods in description["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids))
    assert all(one["summary"] and one["responses"] for one in operations)


def test_operations_that_need_a_token_say_what_happens_without_one(description: dict[str, Any]) -> None:
    silent = [
        (method, path)
        for path, methods in description["paths"].items()
        for method, one in methods.items()
        if one.get("security", description.get("security")) and not {"401", "4XX", "default"} & set(one["responses"])
    ]
    assert silent == []


def test_paths_are_the_contracts_or_marked_as_ours(description: dict[str, Any]) -> None:
    known = {
        (path, method)
        for name in CONTRACTS
        for path, operations in load_contract(name)["paths"].items()
        for method in operations
    }
    of_client = [operation.request({}) for operation in client_operations()]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            is_known = (path, method) in known or any(
                request.method == method.upper() and matches(path, request) for request in of_client
            )
            assert operation.get("x-fairlead-addition", False) is not is_known, (method, path)


def test_all_reads_of_the_contract_are_served(description: dict[str, Any]) -> None:
    for path, operations in load_contract("neighbours-2.24.contract.json")["paths"].items():
        for method, operation in operations.items():
            ours = description["paths"][path][method]
            assert set(operation["responses"]) - {"409", "500", "default"} <= set(ours["responses"]), path
            wanted = [_name(one) for one in operation.get("parameters", [])]
            assert set(wanted) <= {one["name"] for one in ours.get("parameters", [])}, path


def test_what_we_add_to_a_path_of_the_contract_is_marked_too(description: dict[str, Any]) -> None:
    marked = set()
    for name in CONTRACTS:
        for path, operations in load_contract(name)["paths"].items():
            for method, operation in operations.items() if path.startswith("/api/v1/workloads") else ():
                known = {_name(one, name) for one in operation.get("parameters", [])}
                for one in description["paths"].get(path, {}).get(method, {}).get("parameters", []):
                    assert one.get("x-fairlead-addition", False) is (one["name"] not in known), (method, path, one)
                    marked |= set() if one["name"] in known else {one["name"]}
    assert marked == {"dryRun", "origin", "mustFit", "callerEnvironment", "planId", "times", "suspended"}
    pod = description["components"]["schemas"]["PodView"]["properties"]
    ours = {name for name, schema in pod.items() if schema.get("x-fairlead-addition")}
    assert ours == {"gpuDevices", "restarts", "exitCode", "signal", "reason", "message"}


def _name(parameter: dict[str, Any], contract: str = "neighbours-2.24.contract.json") -> str:
    if "$ref" in parameter:
        named = load_contract(contract)["components"]["parameters"]
        parameter = named[parameter["$ref"].rpartition("/")[2]]
    return str(parameter["name"])


def test_the_page_loads_nothing_from_elsewhere(api: ApiServer) -> None:
    answer = api.call("GET", "/api/docs", token="")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert b"//" not in re.sub(rb"<!doctype html>", b"", answer.body).replace(b"/api/", b"")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_health_and_metrics_need_no_token(api: ApiServer) -> None:
    api.call("GET", "/api/v1/workloads")
    assert api.call("GET", "/healthz", token="").json == {"status": "alive"}
    assert api.call("GET", "/readyz", token="").json == {"status": "ready"}
    metrics = api.call("GET", "/metrics", token="")
    assert metrics.headers["content-type"].startswith("text/plain")
    lines = metrics.body.decode().splitlines()
    assert any(
        re.fullmatch(r'fairlead_http_requests_total\{operation="get_workloads",status="200"\} \d+', x) for x in lines
    )
    sample = re.compile(r"[a-z_]+(\{[^}]*\})? [-+0-9.einf]+")
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines)


def test_metrics_can_ask_for_a_token(make_api: Callable[..., ApiServer], tmp_path: Path) -> None:
    """Its labels name projects and users, which not everybody who reaches the server may see."""
    file = tmp_path / "token"
    file.write_text("scrape-me\n")
    api = make_api(limits=RequestSettings(takeover_seconds=0, metrics_token_file=str(file)))
    statuses = [
        api.call("GET", "/metrics", token=token).status for token in ("", "wrong", api.token, "scrape-me", "scrape-mé")
    ]
    assert statuses == [401, 401, 401, 200, 401]
    file.write_text("another")
    assert api.call("GET", "/metrics", token="scrape-me").status == 401
    file.write_text("")
    with pytest.raises(Refused, match="is empty"):
        check_metrics_token(str(file))
    unread = api.call("GET", "/metrics", token="")
    assert (unread.status, str(file).encode() in unread.body) == (503, False)


def test_an_explanation_distinguishes_given_values_from_defaults(api: ApiServer) -> None:
    workload_id = api.submit("explained", spec={"image": "python:3", "backoffLimit": 2})
    explained = api.get(f"/api/v1/workloads/{workload_id}/explanation")
    values = {value["field"]: value for value in explained["values"]}
    assert (values["backoffLimit"]["value"], values["backoffLimit"]["origin"]) == (2, "given")
    assert values["completions"]["value"] == 1
    assert values["completions"]["origin"].startswith("default")
