"""What a workload is called: as was asked for, or with random characters behind it."""

from typing import Any

from tests.contract.api.api_server import ApiServer


def create(api: ApiServer, name: str, **members: Any) -> dict[str, Any]:
    body = {"name": name, "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "i"}, **members}
    made = api.call("POST", "/api/v1/workloads/trainings", body)
    assert made.status == 202, made
    answer: dict[str, Any] = made.json
    return answer


def test_a_name_is_kept(api: ApiServer) -> None:
    made = create(api, "as-it-is")
    assert (made["name"], made["requestedName"]) == ("as-it-is", "as-it-is")


def test_a_prefix_is_followed_by_random_characters(api: ApiServer) -> None:
    made = [create(api, "begins", useGivenNameAsPrefix=True) for _ in range(3)]
    assert {one["requestedName"] for one in made} == {"begins"}
    names = {one["name"] for one in made}
    assert len(names) == 3
    assert all(name.startswith("begins-") and len(name) > len("begins-") for name in names)
