"""NVIDIA's own client calls each of its 391 operations: each works, or gets the answer for a missing feature."""

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.api.unsupported import UNSUPPORTED_FEATURES
from fairlead.control.serving.traffic import Traffic
from fairlead.control.usage_samples import UsageSampler
from tests.contract.api.api_server import ApiServer
from tests.contract.api.runapy_calls import (
    ApiClient,
    ApiException,
    ClientOperation,
    Configuration,
    SentRequest,
    client_operations,
    matches,
)

OPERATIONS = list(client_operations())
#: Its method takes the members of a form and sends none of them.
SENDS_NOTHING = {"TokensApi.grant_token_v2"}
#: Refused because the first cluster stays; `test_clusters.py` shows the reasons.
FIRST_CLUSTER = {"ClustersApi.delete_cluster"}


@pytest.fixture(scope="module")
def client(api: ApiServer) -> Iterator[ApiClient]:
    # The client renews tokens that its own clock calls expired.
    api.clock.now = int(time.time() * 1000)
    api.token = api.log_in()
    api.context.usage_samples = api.do(nothing_measured(api))
    configuration = Configuration(
        client_id=api.credentials.client_id,
        client_secret=api.credentials.client_secret,
        runai_base_url=f"http://127.0.0.1:{api.port}",
        # Its retries would repeat refused requests for seconds before they are raised.
        retry_enabled=False,
        logger=logging.getLogger("runapy"),
    )
    with ApiClient(configuration) as connection:
        yield connection


async def nothing_measured(api: ApiServer) -> UsageSampler:
    return UsageSampler(api.context.store, api.clock, Traffic(api.clock, lambda: 0.0))


def _existing(api: ApiServer) -> dict[str, object]:
    """The ids of records that exist, by the names of the client's arguments."""
    return {
        **dict.fromkeys(("cluster_id", "cluster_uuid", "uuid"), api.cluster_id),
        **dict.fromkeys(("project_id", "department_id", "nodepool_id", "id"), "1"),
        **dict.fromkeys(("access_rule_id", "role_id_path"), 1),
        **dict.fromkeys(("scope", "scope_type"), "tenant"),
        "nodepool_name": "default",
        "setting_key": "policies",
        "file_type": "JSON",
        "workload_id": api.submit("called"),
        "user_id": api.get("/api/v1/users")[0]["id"],
        "service_account_id": api.get("/api/v1/service-accounts")[0]["id"],
        "app_id": api.get("/api/v1/apps")[0]["id"],
        "node_id": api.get("/api/v1/nodes")["nodes"][0]["id"],
        "category_id": api.get("/api/v1/workload-categories")["categories"][0]["id"],
        "workload_type_id": api.get("/api/v1/workload-types")["types"][0]["id"],
    }


def _answer(operation: ClientOperation, client: ApiClient, values: dict[str, object]) -> tuple[int, Any]:
    try:
        answer = operation.call(client, values)
    except ApiException as error:
        return error.status, json.loads(error.body)
    return answer.status_code, answer.data


def _statuses(description: Any, request: SentRequest) -> set[int]:
    """The statuses that the operation of a request declares."""
    for path, methods in description["paths"].items():
        if request.method.lower() in methods and matches(path, request):
            return {int(status) for status in methods[request.method.lower()]["responses"]}
    raise AssertionError(f"no operation for {request}")


def _is_missing_feature(body: Any) -> bool:
    return isinstance(body, dict) and str(body.get("details", "")).startswith("This installation lacks")


def test_the_client_has_as_many_operations_as_it_had() -> None:
    assert len({str(operation) for operation in OPERATIONS}) == 391


def test_every_read_works_or_says_what_is_missing(api: ApiServer, client: ApiClient) -> None:
    values = _existing(api)
    wrong, works = [], 0
    for operation in OPERATIONS:
        request = operation.request(values)
        if request.method != "GET":
            continue
        status, body = _answer(operation, client, values)
        if status in (200, 204, 207):
            works += 1
        elif not (
            status == 404
            and (_is_missing_feature(body) or "no pod" in body["details"] or body["details"].startswith("There is no"))
        ):
            wrong.append((str(operation), request, status, body))
    assert wrong == []
    assert works > 100


def test_every_write_reaches_its_operation(api: ApiServer, client: ApiClient) -> None:
    """With ids of nothing and an empty body, the answer is one that the operation declares, with the error object."""
    description = api.get("/api/openapi.json")
    wrong = []
    for operation in OPERATIONS:
        request = operation.request({})
        if request.method == "GET" or str(operation) in SENDS_NOTHING:
            continue
        statuses = _statuses(description, request)
        status, body = _answer(operation, client, {})
        is_refused = status in (400, 404) or (status == 403 and str(operation) in FIRST_CLUSTER)
        if status not in statuses or status == 405 or not (status < 300 or (is_refused and body["details"])):
            wrong.append((str(operation), request, status, body))
    assert wrong == []


def test_missing_features_are_those_of_the_table(api: ApiServer, client: ApiClient) -> None:
    routes = [(method, path, shown) for feature in UNSUPPORTED_FEATURES for method, path, _, shown in feature.routes]
    called = set()
    for operation in OPERATIONS:
        request = operation.request({})
        found = [shown for method, path, shown in routes if method == request.method and matches(path, request)]
        if not found:
            continue
        status, body = _answer(operation, client, {})
        shown = found[0]
        assert _is_missing_feature(body) if shown is None else (status, body) == (200, shown), (operation, body)
        called.add(str(operation))
    assert len(called) == len(routes)
