"""The environment of a caller: sealed, used by one workload of that caller, and shown by its names alone."""

import base64
from collections.abc import Callable

import pytest

from fairlead.control.assets.caller_environments import delete_unused, open_environment
from fairlead.model.records.workload import Workload
from fairlead.store.base import Query
from fairlead.store.collections import CALLER_ENVIRONMENTS, WORKLOADS
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

PATH = "/api/v1/caller-environments"
TRAININGS = "/api/v1/workloads/trainings"
CANARY = "canary-77aa"


def store(api: ApiServer, input: bytes = b"", **variables: str) -> str:
    answer = api.call("POST", PATH, {"variables": variables, "input": base64.b64encode(input).decode()})
    assert answer.status == 201, answer
    assert CANARY.encode() not in answer.body
    return str(answer.json["id"])


def test_values_are_sealed_and_only_names_are_shown(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    stored = store(api, b"line of " + CANARY.encode(), TOKEN=CANARY, HOME="/home/ann")
    made = api.call("POST", f"{TRAININGS}?callerEnvironment={stored}", api.training("train"))
    assert made.status == 202, made
    id = made.json["workloadId"]
    shown = api.get(f"/api/v1/workloads/{id}/caller-environment")
    assert (shown["names"], shown["inputBytes"]) == (["HOME", "TOKEN"], 19)
    database = b"".join(path.read_bytes() for path in api.folder.glob("fairlead.db*"))
    assert CANARY.encode() not in database
    workload = api.do(api.context.store.get(WORKLOADS, id))
    assert isinstance(workload, Workload)
    opened = api.do(open_environment(api.context, workload))
    assert opened.variables == {"TOKEN": CANARY, "HOME": "/home/ann"}
    assert base64.b64decode(opened.input) == b"line of " + CANARY.encode()


def test_it_is_used_once_and_by_its_own_caller(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    stored = store(api, A="1")
    refused = ada.call("POST", f"{TRAININGS}?callerEnvironment={stored}", api.training("theirs"))
    assert refused.status == 400, refused
    assert api.call("POST", f"{TRAININGS}?callerEnvironment={stored}", api.training("first")).status == 202
    again = api.call("POST", f"{TRAININGS}?callerEnvironment={stored}", api.training("second"))
    assert again.status == 400, again
    assert "no unused environment" in again.body.decode()


def test_a_workload_without_one_says_so(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    assert api.call("GET", f"/api/v1/workloads/{api.submit('plain')}/caller-environment").status == 404


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ({"variables": {"A=B": "1"}}, "variables"),
        ({"variables": {"A": "x" * 300_000}}, "variables"),
        ({"input": base64.b64encode(b"x" * 600_000).decode()}, "input"),
        ({"input": "*"}, "input"),
        ({"values": {}}, "values"),
    ],
    ids=["name", "too-many-bytes", "too-long-an-input", "not-base64", "unknown-member"],
)
def test_what_cannot_be_an_environment_is_refused(
    make_api: Callable[..., ApiServer], body: dict[str, object], want: str
) -> None:
    answer = make_api().call("POST", PATH, body)
    assert answer.status == 400, answer
    assert want in answer.body.decode()
    assert "xxxx" not in answer.body.decode()


def test_what_nothing_was_submitted_with_is_deleted_after_an_hour(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    kept, used = store(api, A="1"), store(api, A="2")
    assert api.call("POST", f"{TRAININGS}?callerEnvironment={used}", api.training("train")).status == 202
    everything = Query(collection=CALLER_ENVIRONMENTS)
    now = api.context.clock()
    api.do(delete_unused(api.context, now + 3_500_000))
    assert {record.id for record in api.do(api.context.store.find(everything))} == {kept, used}
    api.do(delete_unused(api.context, now + 3_700_000))
    assert [record.id for record in api.do(api.context.store.find(everything))] == [used]
