"""Every operation × every role × every place: own project, sibling project, other department, and no role at all.

The operations come from the API's description, what they need from `access_rows.py`, the roles from the server. All
requests are handled in this process, against a store that refuses to write: a request that is allowed to write ends
with 503, and the next one meets the same records.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest

from fairlead.kinds import KINDS
from fairlead.model.errors import Unavailable
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.revision import Revision
from fairlead.store.base import Change, Put, Store
from fairlead.store.collections import REVISIONS
from tests import builders
from tests.contract.api.access_rows import (
    ANY,
    DEPARTMENT,
    EVERYBODY,
    FOREIGN,
    MANIFEST,
    TARGET,
    Need,
    body_of,
    need_of,
    spec_of,
)
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_assets import SPECS
from tests.contract.api.test_people import Person, give_role

#: By place, the project and the department of its records, and the word that is in all their names.
PLACES = {"own": ("1", "1", "zz-own"), "sibling": ("2", "1", "zz-sibling"), "other": ("3", "2", "zz-other")}
NOBODY = "nobody"
#: Texts of a 404 that comes after the access check: the record has no such thing.
AFTERWARDS = (b"nothing runs in", b"nothing listens in", b"has no environment of its caller", b"no network topology")
UNKNOWN = "99999999-9999-4999-8999-999999999999"


class ReadOnlyStore:
    """Passes reads on. Lines of the audit are dropped, all other writes refused."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def commit(self, change: Change) -> int:
        if change.writes or change.events:
            raise Unavailable("nothing is written here")
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Scene:
    """A server with the same records in three projects, and one user per role who has it in the first project."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.ids = {place: self._fill(place) for place in PLACES}
        self.roles = {role["name"]: role for role in api.get("/api/v1/authorization/roles")}
        self.tokens = {NOBODY: Person(api, "nobody@example.com").token}
        for name, role in self.roles.items():
            if name != "System administrator":
                person = Person(api, f"{role['id']}@example.com")
                person.may(role["id"], "project", "1")
                self.tokens[name] = person.token

    def _made(self, method: str, path: str, body: Any) -> Any:
        answer = self.api.call(method, path, body)
        assert answer.status in (200, 201, 202), (path, answer)
        return answer.json

    def _fill(self, place: str) -> dict[str, Any]:
        project, department, word = PLACES[place]
        cluster = self.api.cluster_id
        if place == "other":
            self._made("POST", "/api/v1/org-unit/departments", {"name": word, "clusterId": cluster, "resources": []})
        if place != "own":
            body: dict[str, Any] = {"name": word, "clusterId": cluster, "resources": [], "parentId": department}
            self._made("POST", "/api/v1/org-unit/projects", body)
        member = Person(self.api, f"member@{word}.example.com")
        rule = member.may(2, "project", project)
        key = member.call("POST", "/api/v1/access-keys", {"name": f"{word}-key"}).json["id"]
        account = self._made("POST", "/api/v1/service-accounts", {"name": f"{word}-account"})
        give_role(self.api, account["name"], 2, "project", project, "service-account")
        found = {
            **dict.fromkeys(("clusterUuid", "clusterId", "cluster_uuid", "uuid"), cluster),
            "department-id": department,
            "priorityId": self.api.get("/api/v1/workload-priorities")["priorities"][0]["id"],
            "projectId": project,
            "namespace": "runai-default" if place == "own" else f"runai-{word}",
            "departmentId": department,
            "accessRuleId": str(rule),
            "userId": member.id,
            "accessKeyId": key,
            "serviceAccountId": account["id"],
            "appId": account["id"],
            "nodepoolId": "1",
            "nodepoolName": "default",
            "nodeId": self.api.get("/api/v1/nodes")["nodes"][0]["id"],
            "roleId": "2",
            "roleIdPath": "2",
            "permissionSetId": self.api.get("/api/v1/authorization/permission-sets")[0]["id"],
            "workloadTypeId": self.api.get("/api/v1/workload-types")["types"][0]["id"],
            "categoryId": self.api.get("/api/v1/workload-categories")["categories"][0]["id"],
            "dialect": "yaml",
        }
        for path, thing in (("secrets", "data"), ("config-maps", "data"), ("persistent-volume-claims", "size")):
            value = {"data": {"k": "v"}, "size": "1G"}[thing]
            body = {"name": f"{word}-{path}", "projectId": project, thing: value}
            found[path] = self._made("POST", f"/api/v1/{path}", body)["id"]
        claim = f"{word}-persistent-volume-claims"
        volume = {"name": f"{word}-volume", "originPvcName": claim, "projectId": project}
        found["datavolumeId"] = self._made("POST", "/api/v1/datavolumes", volume)["id"]
        meta = {"scope": "project", "projectId": int(project)}
        for kind, spec in SPECS.items():
            given = spec | ({"claimName": f"{word}-made"} if kind == "datasource/pvc" else {})
            body = {"meta": meta | {"name": f"{word}-asset"}, "spec": given}
            found[f"asset/{kind}"] = self._made("POST", f"/api/v1/asset/{kind}", body)["meta"]["id"]
        for kind in (one.rest for one in KINDS.values()):
            spec = spec_of(kind, kind)
            scope = {"name": f"{word}-{kind}", "scopeType": "project", "scopeId": project}
            body = {"meta": scope, "spec": spec}
            made = self._made("POST", f"/api/v1/workload-templates/{kind}", body)
            found[f"workload-templates/{kind}"] = (made.get("meta") or made)["id"]
            self._made("PUT", f"/api/v2/policy/{kind}", {"meta": meta | {"name": f"{word}-policy"}, "policy": {}})
            id, pod = self.api.context.new_id(), self.api.context.new_id()
            raw = msgspec.Raw(json.dumps(spec).encode())
            self.api.put(
                builders.workload(
                    f"{word}-{kind}",
                    id=id,
                    kind=next(key for key, one in KINDS.items() if one.rest == kind),
                    spec=raw,
                    project_id=project,
                    project_name=word,
                    department_id=department,
                    cluster_id=cluster,
                    created_by="somebody@example.com",
                    manifest=json.dumps(MANIFEST),
                ),
                builders.pod(f"{word}-{kind}-0", id=pod, workload_id=id, project_id=project, phase=PodPhase.RUNNING),
            )
            found |= {f"workloads/{kind}": id, f"pod/{kind}": pod}
        self._made("PUT", "/api/v2/policy/nim-services", {"meta": meta | {"name": f"{word}-policy"}, "policy": {}})
        found["WorkloadV2Id"] = found["workloads/trainings"]
        found["revisionId"] = self.api.context.new_id()
        revision = Revision(
            id=found["revisionId"],
            version=1,
            workload_id=found["workloads/inferences"],
            project_id=project,
            number=1,
            name=f"{word}-revision",
            spec=msgspec.Raw(b'{"image":"python:3"}'),
        )
        self.api.do(self.api.context.store.commit(Change(writes=(Put(REVISIONS, revision),))))
        return found

    def url(self, path: str, ids: dict[str, Any]) -> str:
        """The path with the ids of a place, and the parameters that it must have."""
        base = path.removeprefix("/api/v1/").split("/{")[0]
        one = ids.get(base) or ids["workloads/trainings"]
        if base == "workload-templates":
            one = ids["workload-templates/trainings"]
        pod = ids["pod/inferences" if "inferences" in path else "pod/trainings"]
        if path.startswith("/v1/k8s/"):
            one = ids["nodepoolId" if "node-pools" in path else "projectId"]
        special = {"AssetId": one, "id": one, "templateId": one, "workloadId": one, "podId": pod}
        for name in path.split("{")[1:]:
            key = name.split("}")[0]
            path = path.replace("{" + key + "}", str(special.get(key) or ids.get(key) or UNKNOWN))
        if "/policy/" in path:
            return f"{path}?scope=project&projectId={ids['projectId']}"
        if path.endswith("/metrics"):
            return f"{path}?start=2023-11-14T00:00:00Z&end=2023-11-14T01:00:00Z&metricType=GPU_ALLOCATION"
        if path.endswith("/telemetry"):
            types = {"nodes": "TOTAL_GPUS", "workloads": "WORKLOADS_COUNT"}
            return f"{path}?telemetryType={types.get(path.split('/')[-2], 'GPU_QUOTA')}"
        if path.endswith("/name-availability"):
            return f"{path}?dataName=free&name=free&scope=tenant"
        if path.endswith(("/exec", "/port-forward")):
            return f"{path}?command=ls&port=80"
        if "/audit/" in path:
            return f"{path}?start=2023-11-14T00:00:00Z&end=2023-11-14T01:00:00Z"
        return path


@pytest.fixture(scope="module")
def scene(api: ApiServer) -> Iterator[Scene]:
    scene = Scene(api)
    kept = api.context.store
    api.context.store = cast(Store, ReadOnlyStore(kept))
    yield scene
    api.context.store = kept


async def ask(scene: Scene, method: str, url: str, body: Any, token: str) -> tuple[int, bytes]:
    """The status and body of an answer, without a socket."""
    path, _, query = url.partition("?")
    content = b"" if body is None else json.dumps(body).encode()
    answered: dict[str, Any] = {"body": b""}
    received = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive() -> Any:
        return next(received, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answered["status"] = message["status"]
        else:
            answered["body"] += message.get("body", b"")

    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    headers.append((b"content-length", str(len(content)).encode()))
    await scene.api.application(
        {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "http_version": "1.1",
            "root_path": "",
        },
        receive,
        send,
    )
    return answered["status"], answered["body"]


def wanted(scene: Scene, need: Need, role: str, place: str, is_creation: bool) -> tuple[str, ...]:
    """What may happen in one cell of the matrix: `allowed`, `403` or `404`."""
    if need.place == EVERYBODY:
        return ("allowed",)
    if need.place == FOREIGN:
        return ("404",)
    if role == NOBODY:
        return ("403", "404")
    type, _, action = need.permission.partition(":")
    permissions = {one["resourceType"]: one["actions"] for one in scene.roles[role]["permissions"]}
    has_right = action in permissions.get(type, ())
    if need.place == DEPARTMENT:
        is_seen = place != "other"
        return (
            (("allowed",) if has_right else ("403",))
            if is_seen and action == "read"
            else ("403",)
            if is_seen
            else ("404",)
        )
    if need.place == ANY:
        return ("allowed",) if has_right else ("403",)
    if need.place == TARGET and place == "own":
        # What they may not even read does not exist for them.
        return ("allowed",) if has_right else ("403",) if "read" in permissions.get(type, ()) else ("403", "404")
    if need.place == TARGET:
        # Without the right anywhere, it is said before the record is looked up.
        return ("403",) if is_creation else ("404",) if has_right else ("403", "404")
    return ("403",)


def cells(scene: Scene) -> Iterator[tuple[str, str, Need, str, str]]:
    description = scene.api.get("/api/openapi.json")
    for path, operations in description["paths"].items():
        for method in operations:
            need = need_of(method.upper(), path)
            if need is not None:
                for role in scene.tokens:
                    for place in PLACES if role != NOBODY else ("own",):
                        yield method.upper(), path, need, role, place


async def run_cell(scene: Scene, method: str, path: str, need: Need, role: str, place: str) -> str:
    """What is wrong in one cell; empty if nothing is."""
    ids = scene.ids[place]
    body = body_of(method, path, ids) if method in ("POST", "PUT", "PATCH") else None
    status, content = await ask(scene, method, scene.url(path, ids), body, scene.tokens[role])
    is_afterwards = any(text in content for text in AFTERWARDS)
    happened = str(status) if status in (401, 403, 404) and not is_afterwards else "allowed"
    want = wanted(scene, need, role, place, "{" not in path and "policy" not in path)
    cell = f"{method} {path} as {role} in {place}: {status} {content[:200]!r}"
    if status >= 500 and status != 503:
        return f"{cell} (failed)"
    if happened not in want:
        return f"{cell}, but wanted {' or '.join(want)}"
    hidden = [word.encode() for name, (_, _, word) in PLACES.items() if name != "own"]
    # A creation answers with the names that were sent, never with others.
    return f"{cell} shows another project" if status < 300 and any(word in content for word in hidden) else ""


def test_every_cell_of_the_matrix(scene: Scene) -> None:
    async def run_all() -> list[str]:
        return [await run_cell(scene, *cell) for cell in matrix]

    matrix = list(cells(scene))
    assert len(matrix) > 9000
    wrong = [text for text in scene.api.do(run_all()) if text]
    assert not wrong, f"{len(wrong)} of {len(matrix)} cells are wrong:\n" + "\n".join(wrong)
