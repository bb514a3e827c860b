"""What is wrong with a request is answered with the right status and the one error shape; nothing is a 500."""

import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.api.application import RequestSettings
from fairlead.model.errors import Unavailable
from fairlead.store.base import Change
from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

CREATE = "/api/v1/workloads/trainings"


def assert_error(answer: Answer, want_status: int, want_message: str) -> None:
    assert answer.status == want_status, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["code"] == want_status
    assert answer.json["message"] == want_message
    assert isinstance(answer.json["details"], str)
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"name":"\\ud800"}',
        b'{"name":"\xed\xa0\x80"}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"name":1e999}',
    ],
    ids=["empty", "broken", "list", "null", "bytes", "surrogate", "raw-surrogate", "deep", "deep-objects", "infinite"],
)
def test_bodies_that_are_not_trainings(api: ApiServer, body: bytes) -> None:
    answer = api.call("POST", CREATE, body)
    assert answer.status == answer.json["code"] == 400
    assert answer.json["message"].startswith(("The body is", "The body must be one JSON object", "The request has "))
    assert find_disagreements("post", CREATE, 400, answer.json) == []


def test_every_violation_is_one_entry_with_its_path(api: ApiServer) -> None:
    body = {"name": "Bad Name", "projectId": "1", "spec": {"imag": "x", "compute": {"cpuCoreRequest": -1}}}
    answer = api.call("POST", CREATE, body)
    assert_error(answer, 400, "The request has 5 errors: spec.imag, spec.compute.cpuCoreRequest, clusterId and 2 more")
    fields = {issue["field"] for issue in answer.json["complianceIssues"]}
    assert {"name", "clusterId", "spec.imag", "spec.compute.cpuCoreRequest"} <= fields
    assert all(set(issue) == {"field", "details"} for issue in answer.json["complianceIssues"])
    assert find_disagreements("post", CREATE, 400, answer.json) == []


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("projectId", "99"),
        ("clusterId", "55555555-5555-4555-8555-555555555555"),
        ("templateId", "55555555-5555-4555-8555-555555555555"),
    ],
)
def test_what_does_not_exist_is_400_on_creation(api: ApiServer, member: str, value: str) -> None:
    answer = api.call("POST", CREATE, api.training("x", **{member: value}))
    assert answer.status == 400
    assert answer.json["message"].startswith(f"{member}: ")
    assert [issue["field"] for issue in answer.json["complianceIssues"]] == [member]


def test_a_taken_name_is_400(api: ApiServer) -> None:
    api.submit("taken")
    answer = api.call("POST", CREATE, api.training("taken"))
    assert_error(answer, 400, "name: a workload named taken already exists in project default")
    assert answer.json["complianceIssues"][0]["field"] == "name"


def test_only_a_missing_parameter_is_called_one(api: ApiServer) -> None:
    assert_error(api.call("POST", CREATE, api.training("x", spec={})), 400, "Required parameter is missing")


def test_content_types(api: ApiServer) -> None:
    body = json.dumps(api.training("typed")).encode()
    refused = api.call("POST", CREATE, body, {"Content-Type": "text/plain"})
    assert_error(refused, 415, "Unsupported content type.")
    assert api.call("POST", CREATE, body, {"Content-Type": "application/json; charset=utf-8"}).status == 202


def test_a_body_beyond_the_limit_is_413(api: ApiServer, make_api: Callable[..., ApiServer]) -> None:
    declared = api.call("POST", CREATE, b" " * (1024 * 1024 + 1))
    assert_error(declared, 413, "Request body is too large.")
    small = make_api(limits=RequestSettings(body_bytes=1000))
    assert_error(small.call("POST", CREATE, b" " * 1001), 413, "Request body is too large.")
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=120)
    headers = {"Authorization": f"Bearer {small.token}", "Content-Type": "application/json"}
    connection.request("POST", CREATE, iter([b" " * 600] * 2), headers, encode_chunked=True)
    assert_error(Answer(connection.getresponse()), 413, "Request body is too large.")
    connection.close()


@pytest.mark.parametrize(
    "path", ["/nowhere", "/api", "/api/v1/workload", "/api/v1/workloads/", "//api/v1/workloads", "/%00"]
)
def test_unknown_paths_are_404(api: ApiServer, path: str) -> None:
    assert_error(api.call("GET", path), 404, "Resource id not found.")


def test_other_methods_are_405_and_name_those_that_work(api: ApiServer) -> None:
    answer = api.call("PATCH", f"{CREATE}/55555555-5555-4555-8555-555555555555")
    assert_error(answer, 405, "Method not allowed.")
    assert answer.headers["allow"] == "DELETE, GET"


def test_changes_of_nothing_are_404_and_of_something_202(api: ApiServer) -> None:
    workload_id = api.submit("changing")
    for path, method in (("/suspend", "POST"), ("/resume", "POST"), ("", "DELETE")):
        answer = api.call(method, f"{CREATE}/{workload_id}{path}")
        assert answer.status == 202
        assert answer.json == {"code": 202, "message": "Request has been accepted."}
        for id in ("55555555-5555-4555-8555-555555555555", "x", "%00"):
            assert_error(api.call(method, f"{CREATE}/{id}{path}"), 404, "Resource id not found.")
    assert_error(api.call("DELETE", f"{CREATE}/{workload_id}"), 404, "Resource id not found.")
    shown = api.get(f"{CREATE}/{workload_id.upper()}")
    assert shown["desiredPhase"] == "Deleted"
    assert shown["deletedAt"] is not None


def test_too_many_requests_are_429(make_api: Callable[..., ApiServer]) -> None:
    api = make_api(limits=RequestSettings(requests_per_second=3))
    answers = [api.call("GET", "/api/v1/workloads/count") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert_error(answers[-1], 429, "Too many requests.")
    assert int(answers[-1].headers["retry-after"]) >= 1
    api.clock.now += 1000
    assert api.call("GET", "/api/v1/workloads/count").status == 200


class _Broken:
    """A store in front of the real one, whose writes fail as told."""

    def __init__(self, store: Any, error: Exception) -> None:
        self._store = store
        self._error = error

    async def commit(self, change: Change) -> int:
        raise self._error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_store_that_cannot_be_written_is_503_and_reads_continue(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    api.context.store = _Broken(api.context.store, Unavailable("the disk is full"))
    answer = api.call("POST", CREATE, api.training("x"))
    assert_error(answer, 503, "Please try again in few minutes.")
    assert answer.headers["retry-after"]
    assert find_disagreements("post", CREATE, 503, answer.json) == []
    assert api.call("GET", "/api/v1/workloads").status == 200


def test_a_stopping_server_is_503(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    api.context.stopping = True
    assert_error(api.call("POST", CREATE, api.training("x")), 503, "Please try again in few minutes.")
    assert_error(api.call("GET", "/readyz"), 503, "Please try again in few minutes.")
    assert api.call("GET", "/healthz").status == 200


def test_an_unexpected_error_shows_only_its_request_id(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    api.context.store = _Broken(api.context.store, RuntimeError("secret inside"))
    answer = api.call("POST", CREATE, api.training("x"), {"X-Request-Id": "my-id.1"})
    assert_error(answer, 500, "Something went wrong.")
    assert "my-id.1" in answer.json["details"]
    assert b"secret inside" not in answer.body
    assert answer.headers["x-request-id"] == "my-id.1"


def test_a_strange_request_id_is_replaced(api: ApiServer) -> None:
    answer = api.call("GET", "/healthz", headers={"X-Request-Id": "a b"})
    assert answer.headers["x-request-id"] != "a b"


def test_every_violation_is_reported_where_the_contract_has_no_list_for_them(api: ApiServer) -> None:
    spec: dict[str, Any] = {"workers": 2000, "replicas": 2000, "startupPolicy": "z", "restartPolicy": "q"}
    spec["worker"] = {"compute": {"cpuCoreRequest": 2, "cpuCoreLimit": 1}}
    body = api.training("x") | {"name": "Bad_Name", "spec": spec}
    answer = api.call("POST", "/api/v1/workloads/distributed-inferences", body)
    assert answer.status == 400
    assert answer.json["message"].startswith("The request has ")
    told = answer.json["details"]
    for path in ("name", "spec.workers", "spec.replicas", "spec.startupPolicy", "spec.restartPolicy", "spec.leader"):
        assert f"{path}: " in told, path
