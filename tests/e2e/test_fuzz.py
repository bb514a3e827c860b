"""Requests made up from the published contract and from our own description: whatever is sent, the answer is one that
is declared, in status, content type and shape, and never a 5xx. The server's node has no capacity, so nothing runs."""

import asyncio
import copy
import itertools
import json
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairlead.api.unsupported import UNSUPPORTED_OPERATIONS
from scripts.generate_docs import load_description
from tests.e2e.server import Server

CONTRACT = Path(__file__).parents[1] / "contract" / "data" / "workloads-2.24.contract.json"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 12
#: Of operations that read only their path: all made-up ids have the same answer.
EXAMPLES_OF_PATHS = 4
#: Operations of features that do not exist here share one handler, which reads nothing of the request.
ABSENT, EXAMPLES_OF_ABSENT = {operation.id for operation in UNSUPPORTED_OPERATIONS}, 2
#: What we answer beyond the contract, to requests that are wrong as HTTP or come too fast.
ADDED = ("405", "413", "415", "429")
#: A stream without an end; its own tests read it.
ENDLESS = {"watch_workloads"}
#: The others need a new token after it.
SIGNING_OUT = {"end_own_sessions"}
#: How many roles try each operation.
ROLES_AT_ONCE = 3
#: Whose requests the other tests send.
ADMINISTRATOR = "System administrator"
NUMBERS = itertools.count(1)
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose one node gives nothing: whatever is accepted waits."""
    server = Server(tmp_path_factory.mktemp("fuzz") / "data", "--personal", "--node", "none:cpu=0,memory=0,gpus=0")
    yield server.start()
    server.close()


@pytest.fixture(scope="module")
def session(idle: Server) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {idle.log_in()}"
        yield session


@cache
def contract() -> Any:
    """The trainings of the contract, with the statuses that we add."""
    document = json.loads(CONTRACT.read_text())
    error = {
        "description": "added",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    document["paths"] = {path: one for path, one in document["paths"].items() if "/trainings" in path}
    for operations in document["paths"].values():
        for operation in operations.values():
            for status in ADDED:
                operation["responses"].setdefault(status, copy.deepcopy(error))
    return schemathesis.openapi.from_dict(document)


def labels(schema: Any) -> list[str]:
    return [found.ok().label for found in schema.get_all_operations()]


@cache
def own_labels() -> list[str]:
    """The operations that a server describes; asked of the application's own declarations, without a server."""
    paths = asyncio.run(load_description())["paths"]
    return [
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method, operation in operations.items()
        if operation["operationId"] not in ENDLESS
    ]


@pytest.fixture(scope="module")
def own(idle: Server) -> Any:
    return schemathesis.openapi.from_dict(idle.call("GET", "/api/openapi.json").json)


class People:
    """Somebody in every role, by turns in the project, its department and everywhere; and somebody without a role."""

    def __init__(self, server: Server) -> None:
        self.server = server
        roles = server.call("GET", "/api/v1/authorization/roles").json
        tenant = str(server.call("GET", "/api/v1/clusters").json[0]["tenantId"])
        scopes = itertools.cycle((("project", "1"), ("department", "1"), ("tenant", tenant)))
        self._people = {"nobody": self._add("nobody")}
        for role in (role for role in roles if role["name"] != ADMINISTRATOR):
            name = f"role-{role['id']}"
            self._people[role["name"]] = self._add(name)
            scope_type, scope_id = next(scopes)
            rule = {"subjectId": f"{name}@example.com", "subjectType": "user", "roleId": role["id"]}
            scope = {"scopeType": scope_type, "scopeId": scope_id, "clusterId": server.credentials["clusterId"]}
            made = server.call("POST", "/api/v1/authorization/access-rules", {**rule, **scope})
            assert made.status == 201, made
        self._turns = itertools.cycle(sorted(self._people))
        self._tokens: dict[str, str] = {}
        self.sessions = [requests.Session() for _ in range(ROLES_AT_ONCE)]

    def _add(self, name: str) -> tuple[str, str]:
        mail = f"{name}@example.com"
        made = self.server.call("POST", "/api/v1/users", {"email": mail, "resetPassword": False})
        return mail, made.json["tempPassword"]

    def sign_in_next(self) -> None:
        for session in self.sessions:
            name = next(self._turns)
            if name not in self._tokens:
                mail, password = self._people[name]
                body = {"grantType": "password", "username": mail, "password": password}
                self._tokens[name] = self.server.call("POST", "/api/v1/token", body).json["accessToken"]
            session.headers["Authorization"] = f"Bearer {self._tokens[name]}"

    def sign_out(self) -> None:
        """An operation has ended their sessions."""
        self._tokens.clear()

    def close(self) -> None:
        for session in self.sessions:
            session.close()


def most_examples(operation: Any) -> int:
    raw = operation.definition.raw
    if raw["operationId"] in ABSENT:
        return EXAMPLES_OF_ABSENT
    has_headers = {one.definition["name"] for one in operation.headers} - {"Authorization"}
    return EXAMPLES if operation.query or has_headers or "requestBody" in raw else EXAMPLES_OF_PATHS


class Fuzz:
    """Sends made-up requests of one operation in each session; sometimes with real ids, so that they come through."""

    def __init__(self, server: Server, *sessions: requests.Session, examples: int = EXAMPLES) -> None:
        self.server = server
        self.sessions = sessions
        self.examples = examples

    def assert_conforms(self, operation: Any, mode: Any) -> None:
        strategy = operation.as_strategy(generation_mode=mode)

        @given(data=st.data())
        @settings(
            max_examples=min(self.examples, most_examples(operation)),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def check(data: st.DataObject) -> None:
            case = data.draw(strategy)
            if data.draw(st.sampled_from((True, True, False))):
                self._make_real(case, data)
            # The one project that all trainings here live in stays.
            assume(operation.method == "get" or "1" not in (case.path_parameters or {}).values())
            for session in self.sessions:
                case.call_and_validate(
                    base_url=self.server.url, session=session, checks=CHECKS, timeout=120, allow_redirects=False
                )

        check()

    @cached_property
    def _known(self) -> str:
        """A workload of this test's own: the request may delete it."""
        return self.server.run(f"known-{next(NUMBERS)}", "true", compute={"cpuCoreRequest": 1})

    def _make_real(self, case: Any, data: st.DataObject) -> None:
        """Real ids, and of the spec an image and a few members: many at once hardly ever keep all rules."""
        if "workloadId" in (case.path_parameters or {}):
            case.path_parameters["workloadId"] = self._known
        if isinstance(case.body, dict) and "projectId" in case.body:
            spec = case.body.get("spec")
            members = spec if isinstance(spec, dict) else {}
            kept = data.draw(st.sets(st.sampled_from(sorted(members)), max_size=3)) if members else set()
            case.body = {
                "name": f"fuzz-{next(NUMBERS)}",
                "useGivenNameAsPrefix": True,
                "projectId": "1",
                "clusterId": self.server.credentials["clusterId"],
                "spec": {"image": "python:3"} | {name: members[name] for name in kept},
            }


@pytest.mark.parametrize("mode", MODES, ids=["right", "wrong"])
@pytest.mark.parametrize("label", labels(contract()))
def test_the_contract(idle: Server, session: requests.Session, label: str, mode: Any) -> None:
    method, path = label.split(" ")
    Fuzz(idle, session).assert_conforms(contract()[path][method], mode)


@pytest.mark.parametrize("mode", MODES, ids=["right", "wrong"])
@pytest.mark.parametrize("label", own_labels())
def test_our_own_description(idle: Server, session: requests.Session, own: Any, label: str, mode: Any) -> None:
    method, path = label.split(" ")
    operation = own[path][method]
    if (
        mode is MODES[1]
        and not operation.definition.raw.get("parameters")
        and "requestBody" not in operation.definition.raw
    ):
        return
    Fuzz(idle, session).assert_conforms(operation, mode)
    if operation.definition.raw["operationId"] in SIGNING_OUT:
        session.headers["Authorization"] = f"Bearer {idle.log_in()}"


@pytest.fixture(scope="module")
def people(idle: Server) -> Iterator[People]:
    people = People(idle)
    yield people
    people.close()


@pytest.mark.parametrize("label", own_labels())
def test_our_own_description_for_people_of_every_role(idle: Server, people: People, own: Any, label: str) -> None:
    method, path = label.split(" ")
    operation = own[path][method]
    if operation.definition.raw["operationId"] in ABSENT:
        return
    people.sign_in_next()
    Fuzz(idle, *people.sessions, examples=EXAMPLES_OF_ABSENT).assert_conforms(operation, MODES[0])
    if operation.definition.raw["operationId"] in SIGNING_OUT:
        people.sign_out()


def test_no_operation_is_left_out(own: Any) -> None:
    described = {
        found.ok().label
        for found in own.get_all_operations()
        if found.ok().definition.raw["operationId"] not in ENDLESS
    }
    assert described == set(own_labels())
