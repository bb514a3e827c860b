"""`fairlead lint --server`: what a server has, as far as the caller may see it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli.exit_codes import FAILED
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import Person, add_projects
from tests.contract.api.test_roles import role_id
from tests.unit.cli.calling import Called, call


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    return add_projects(make_api())


def add_policy(api: ApiServer) -> None:
    """A default that breaks its own rule."""
    policy = {
        "defaults": {"compute": {"gpuDevicesRequest": 4}},
        "rules": {"compute": {"gpuDevicesRequest": {"max": 2}}},
    }
    body = {"meta": {"name": "small", "scope": "project", "projectId": 1}, "policy": policy}
    assert api.call("PUT", "/api/v2/policy/trainings", body).status < 300


def run(api: ApiServer, token: str, home: Path) -> Called:
    url = f"http://127.0.0.1:{api.port}"
    return call("lint", "--server", "-o", "json", home=home, FAIRLEAD_URL=url, FAIRLEAD_TOKEN=token)


def places(called: Called) -> set[tuple[str, str]]:
    assert called.code == FAILED, called
    return {(each["rule"], each["subject"]) for each in json.loads(called.out)["findings"]}


def test_a_server(api: ApiServer, tmp_path: Path) -> None:
    add_policy(api)
    called = run(api, api.token, tmp_path)
    assert ("default-breaks-rule", "policy small") in places(called)
    assert "Not checked" not in called.err
    assert "a cluster of" in called.err


def test_a_caller_with_fewer_rights(api: ApiServer, tmp_path: Path) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(role_id(api, "L1 researcher"), "project", "1")
    assert ada.submit("mine", "1").status == 202
    add_policy(api)
    # The counter-example.
    assert ada.submit("another", "1").status == 400
    called = run(api, ada.token, tmp_path)
    assert ("default-breaks-rule", "policy small") in places(called)
    assert "Not checked: the scheduler's snapshot" in called.err
    assert "Checked: 1 workload and 1 policy" in called.err
