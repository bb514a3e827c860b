"""Assets of every kind: made, read, changed and deleted as the contract says; what credentials and claims make."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.control.assets.kinds import ASSET_KINDS, AssetKind
from fairlead.control.references.resolve import load_secret
from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

CANARY = "canary-3f1b7c"
SPECS: dict[str, dict[str, Any]] = {
    "environment": {
        "image": "python:3",
        "command": "python",
        "environmentVariables": [{"name": "A", "value": "1"}],
        "connections": [
            {
                "name": "notebook",
                "internalToolInfo": {
                    "toolType": "jupyter-notebook",
                    "connectionType": "ExternalUrl",
                    "containerPort": 8888,
                },
            }
        ],
    },
    "compute": {"cpuCoreRequest": 0.5, "cpuMemoryRequest": "20M"},
    "datasource/git": {"repository": "https://example.com/a.git", "branch": "main", "path": "/code"},
    "datasource/host-path": {"path": "/data", "mountPath": "/data"},
    "datasource/nfs": {"path": "/export", "server": "nfs.example.com", "mountPath": "/data"},
    "datasource/pvc": {"path": "/claim", "claimName": "made", "claimInfo": {"size": "1G"}},
    "datasource/s3": {"bucket": "bucket", "path": "/s3"},
    "datasource/config-map": {"configMap": "settings", "mountPath": "/etc/settings"},
    "datasource/secrets": {"mountPath": "/etc/secret"},
    "credentials/access-key": {"accessKeyId": "id", "secretAccessKey": CANARY},
    "credentials/password": {"user": "ada", "password": CANARY},
    "credentials/docker-registry": {"user": "ada", "password": CANARY, "url": "registry.example.com"},
    "credentials/generic-secret": {"keyValuePairs": [{"key": "k", "value": CANARY}]},
    "credentials/ngc-api-key": {"ngc_api_key": CANARY},
}
WANT_SECRETS = {
    "credentials/access-key": ("accesskey-one", {"AccessKeyId": "id", "SecretKey": CANARY}),
    "credentials/password": ("password-one", {"User": "ada", "Password": CANARY}),
    "credentials/generic-secret": ("genericsecret-one", {"k": CANARY}),
    "credentials/ngc-api-key": ("genericsecret-ngcgs-one", {"NGC_API_KEY": CANARY}),
}


def body(kind: AssetKind, name: str = "one", **meta: Any) -> dict[str, Any]:
    head = {"name": name, "scope": "project", "projectId": 1} | meta
    return {"meta": head, "spec": SPECS[kind.path]}


def kind_of(path: str) -> AssetKind:
    return next(kind for kind in ASSET_KINDS if kind.path == path)


def values_of(api: ApiServer, name: str) -> dict[str, str]:
    """What a workload of project 1 would be given."""
    return api.do(load_secret(api.context, "1", name))


@pytest.mark.parametrize("kind", ASSET_KINDS, ids=lambda kind: kind.path)
def test_the_life_of_an_asset(make_api: Callable[..., ApiServer], kind: AssetKind) -> None:
    api = make_api()
    base = f"/api/v1/asset/{kind.path}"
    made = api.call("POST", base, body(kind))
    assert made.status == 202, made
    assert find_disagreements("post", base, 202, made.json) == []
    one = f"{base}/{made.json['meta']['id']}"
    assert api.get(one) == made.json
    assert find_disagreements("get", f"{base}/{{AssetId}}", 200, made.json) == []
    listed = api.get(base)
    assert listed["entries"] == [made.json]
    assert find_disagreements("get", base, 200, listed) == []
    assert api.call("POST", base, body(kind)).status == 409
    assert api.call("POST", base, body(kind, scope="tenant")).status == 202
    change = {"meta": {"name": "one", "description": "changed"}, "spec": SPECS[kind.path]}
    changed = api.call("PUT", one, change)
    assert changed.status == 202, changed
    assert find_disagreements("put", f"{base}/{{AssetId}}", 202, changed.json) == []
    assert changed.json["meta"]["description"] == "changed"
    assert changed.json["meta"]["updateCount"] == 1
    deleted = api.call("DELETE", one)
    assert (deleted.status, deleted.body) == (204 if kind.is_deleted_at_once else 202, b"")
    assert api.call("GET", one).status == 404
    assert api.call("DELETE", one).status == 404


@pytest.mark.parametrize("path", WANT_SECRETS)
def test_a_credential_makes_a_secret_under_its_prefix(api: ApiServer, path: str) -> None:
    want_name, want_values = WANT_SECRETS[path]
    made = api.call("POST", f"/api/v1/asset/{path}", body(kind_of(path)))
    assert made.status == 202, made
    assert made.json["clusterInfo"]["resources"] == [{"name": want_name}]
    assert values_of(api, want_name) == want_values
    secret = next(one for one in api.get("/api/v1/secrets")["items"] if one["name"] == want_name)
    assert api.call("DELETE", f"/api/v1/secrets/{secret['id']}").status == 400


def test_a_registrys_credential_is_what_container_runtimes_read(api: ApiServer) -> None:
    path = "credentials/docker-registry"
    assert api.call("POST", f"/api/v1/asset/{path}", body(kind_of(path))).status == 202
    values = json.loads(values_of(api, "dockerregistry-one")[".dockerconfigjson"])
    entry = values["auths"]["registry.example.com"]
    assert base64.b64decode(entry["auth"]) == f"ada:{CANARY}".encode()


def test_secret_values_are_in_no_answer_and_not_in_the_database(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    for kind in ASSET_KINDS:
        if kind.is_credential:
            answer = api.call("POST", f"/api/v1/asset/{kind.path}", body(kind))
            assert answer.status == 202, answer
            assert CANARY.encode() not in answer.body
    for path in ("/api/v1/asset/credentials", "/api/v1/secrets"):
        listed = api.call("GET", path)
        assert CANARY.encode() not in listed.body
    assert find_disagreements("get", "/api/v1/asset/credentials", 200, api.get("/api/v1/asset/credentials")) == []
    database = b"".join(path.read_bytes() for path in api.folder.glob("fairlead.db*"))
    assert CANARY.encode() not in database
    assert b"genericsecret-one" in database


def test_a_changed_credential_keeps_what_was_not_given(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    base = "/api/v1/asset/credentials/password"
    id = api.call("POST", base, body(kind_of("credentials/password"))).json["meta"]["id"]
    change = {"meta": {"name": "one"}, "spec": {"user": "grace"}}
    assert api.call("PUT", f"{base}/{id}", change).status == 202
    assert values_of(api, "password-one") == {"User": "grace", "Password": CANARY}


def test_what_is_in_use_stays(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    base = "/api/v1/asset/credentials/password"
    id = api.call("POST", base, body(kind_of("credentials/password"))).json["meta"]["id"]
    git = body(kind_of("datasource/git"))
    git["spec"] = git["spec"] | {"credentialId": id}
    made = api.call("POST", "/api/v1/asset/datasource/git", git)
    assert made.status == 202, made
    refused = api.call("DELETE", f"{base}/{id}")
    assert refused.status == 412, refused
    assert refused.json["message"] == "Precondition failed"
    assert find_disagreements("delete", f"{base}/{{AssetId}}", 412, refused.json) == []
    assert api.call("DELETE", f"/api/v1/asset/datasource/git/{made.json['meta']['id']}").status == 202
    variables = [{"name": "A", "secret": {"name": "password-one", "key": "User"}}]
    api.submit("user", spec={"image": "python:3", "environmentVariables": variables})
    assert api.call("DELETE", f"{base}/{id}").status == 412


def test_what_a_policy_imposes_stays_and_needs_no_credential(make_api: Callable[..., ApiServer]) -> None:
    """Without it no workload of the project could be submitted any more."""
    api = make_api()
    base, policy = "/api/v1/asset/datasource/git", "/api/v2/policy/trainings"
    git = body(kind_of("datasource/git"))
    id = api.call("POST", base, git).json["meta"]["id"]
    meta = {"name": "p", "scope": "project", "projectId": 1}
    assert api.call("PUT", policy, {"meta": meta, "policy": {"imposedAssets": [id.upper()]}}).status == 200
    refused = api.call("DELETE", f"{base}/{id}")
    assert (refused.status, "imposed on workloads by the policy p" in refused.json["details"]) == (412, True)
    credential = api.call("POST", "/api/v1/asset/credentials/password", body(kind_of("credentials/password")))
    git = {"meta": {"name": "one"}, "spec": git["spec"] | {"credentialId": credential.json["meta"]["id"]}}
    changed = api.call("PUT", f"{base}/{id}", git)
    assert (changed.status, "must not use a credential" in changed.json["details"]) == (400, True)
    assert api.call("DELETE", f"{policy}?scope=project&projectId=1").status == 204
    assert api.call("PUT", f"{base}/{id}", git).status == 202
    assert api.call("DELETE", f"{base}/{id}").status == 202


def test_a_claims_data_source_makes_the_claim(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    base = "/api/v1/asset/datasource/pvc"
    made = api.call("POST", base, body(kind_of("datasource/pvc")))
    claims = api.get("/api/v1/persistent-volume-claims")["items"]
    assert [(claim["name"], claim["size"], claim["storageClass"]) for claim in claims] == [("made", "1G", "local")]
    mount = {"storage": {"pvc": [{"path": "/data", "existingPvc": True, "claimName": "made"}]}}
    api.submit("mounts", spec={"image": "python:3"} | mount)
    assert api.call("DELETE", f"{base}/{made.json['meta']['id']}").status == 412
    existing = body(kind_of("datasource/pvc"), "two")
    existing["spec"] = {"path": "/x", "claimName": "nowhere", "existingPvc": True}
    assert api.call("POST", base, existing).status == 400


def test_a_workloads_new_claim_becomes_a_record(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    claim = {"path": "/data", "claimName": "fresh", "claimInfo": {"size": "2G"}}
    spec = {"image": "python:3", "storage": {"pvc": [claim]}}
    api.submit("first", spec=spec)
    api.submit("second", spec=spec)
    claims = api.get("/api/v1/persistent-volume-claims?projectId=1")["items"]
    assert [(one["name"], one["size"]) for one in claims] == [("fresh", "2G")]


def test_scopes_and_who_sees_them(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    base = "/api/v1/asset/compute"
    compute = kind_of("compute")
    assert api.call("POST", base, body(compute, "everywhere", scope="tenant")).status == 202
    assert api.call("POST", base, body(compute, "department", scope="department", departmentId="1")).status == 202
    assert api.call("POST", base, body(compute, "nowhere", scope="department", departmentId="9")).status == 400
    assert api.call("POST", base, body(compute, "secret", private=True)).status == 202
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    assert {one["meta"]["name"] for one in ada.get(base)["entries"]} == {"everywhere", "department"}
    assert ada.call("POST", base, body(compute, "own")).status == 202
    assert ada.call("POST", base, body(compute, "wide", scope="tenant")).status == 403
    named = ada.get(f"{base}?name=own")["entries"]
    assert [one["meta"]["createdBy"] for one in named] == ["ada@example.com"]
    assert ada.call("DELETE", f"{base}/{named[0]['meta']['id']}").status == 202
    wide = next(one for one in ada.get(base)["entries"] if one["meta"]["name"] == "everywhere")
    assert ada.call("DELETE", f"{base}/{wide['meta']['id']}").status == 403


def test_lists_of_several_kinds_name_the_kind(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    for path in ("datasource/nfs", "datasource/s3"):
        assert api.call("POST", f"/api/v1/asset/{path}", body(kind_of(path))).status == 202
    listed = api.get("/api/v1/asset/datasource")
    assert find_disagreements("get", "/api/v1/asset/datasource", 200, listed) == []
    assert {name for one in listed["entries"] for name in one["spec"]} == {"nfs", "s3"}


def test_who_uses_an_asset(make_api: Callable[..., ApiServer]) -> None:
    """Where it is asked for: workloads that name what it made, and assets that name it."""
    api = make_api()
    password = kind_of("credentials/password")
    made = api.call("POST", "/api/v1/asset/credentials/password", body(password)).json
    one = f"/api/v1/asset/credentials/password/{made['meta']['id']}"
    assert "usedBy" not in api.get(one)
    git = body(kind_of("datasource/git"), "code")
    git["spec"] = git["spec"] | {"passwordAssetId": made["meta"]["id"]}
    source = api.call("POST", "/api/v1/asset/datasource/git", git)
    assert source.status == 202, source
    variables = [{"name": "P", "secret": {"name": "password-one", "key": "Password"}}]
    workload = api.submit("user", spec={"image": "python:3", "environmentVariables": variables})
    seen = api.get(f"{one}?usageInfo=true")
    assert find_disagreements("get", "/api/v1/asset/credentials/password/{AssetId}", 200, seen) == []
    assert [(each["id"], each["name"]) for each in seen["usedBy"]["trainings"]] == [(workload, "user")]
    assert [each["name"] for each in seen["usedBy"]["assets"]["datasources"]] == ["code"]
    listed = api.get("/api/v1/asset/credentials?usageInfo=true")["entries"]
    assert listed[0]["usedBy"]["trainings"]


def test_the_history_of_a_claims_data_source(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    kind = kind_of("datasource/pvc")
    made = api.call("POST", "/api/v1/asset/datasource/pvc", body(kind)).json
    path = f"/api/v1/asset/datasource/pvc/{made['meta']['id']}/history"
    told = api.get(path)
    assert find_disagreements("get", "/api/v1/asset/datasource/pvc/{AssetId}/history", 200, told) == []
    assert ["was created" in each["spec"]["event"]["message"] for each in told["records"]] == [True]
    assert api.call("GET", path.replace(made["meta"]["id"][:8], "00000000")).status == 404


@pytest.mark.parametrize("key", ["..", "..data", ".", "a/b", ""])
def test_a_key_that_cannot_be_a_file_is_refused(api: ApiServer, key: str) -> None:
    for path in ("secrets", "config-maps"):
        body = {"name": "keys", "projectId": "1", "data": {key: "v"}}
        answer = api.call("POST", f"/api/v1/{path}", body)
        assert answer.status == 400, path
        assert "has the key" in answer.json["details"]
