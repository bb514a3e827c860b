"""What each operation of the API needs, and a request for it: the rows of the matrix in `test_access_matrix.py`.

Written down here a second time, independently of the table in the code: an operation without a row fails the test.
"""

import json
import re
from typing import Any, NamedTuple

from fairlead.api.unsupported import UNSUPPORTED_FEATURES
from tests.contract.api.test_assets import SPECS

#: Where the permission must be held. TARGET: in the project of the record. ANY: in any scope. WIDE: for the whole
#: installation. DEPARTMENT: like WIDE, but the department can be seen from a project in it. EVERYBODY: nowhere.
#: FOREIGN: the record is of somebody else, so nobody finds it.
TARGET, ANY, WIDE, DEPARTMENT, EVERYBODY, FOREIGN = "target", "any", "wide", "department", "everybody", "foreign"


class Need(NamedTuple):
    place: str
    #: A type of resource and an action of 2.24.
    permission: str = ""


_KINDS = {
    "trainings": "trainings",
    "workspaces": "workspaces",
    "distributed": "trainings",
    "inferences": "inferences",
    "distributed-inferences": "inferences",
}
_ASSETS = {
    "environment": "environments",
    "compute": "compute-resources",
    "credentials": "credentials",
    "datasource": "pvc-assets",
    "datasource/git": "git-assets",
    "datasource/host-path": "host-path-assets",
    "datasource/nfs": "nfs-assets",
    "datasource/pvc": "pvc-assets",
    "datasource/s3": "s3-assets",
    "datasource/config-map": "cm-volume-assets",
    "datasource/secrets": "secret-volume-assets",
}
_OBJECTS = {
    "secrets": "credentials",
    "config-maps": "cm-volume-assets",
    "persistent-volume-claims": "pvc-assets",
    "datavolumes": "datavolumes",
}
_ACTIONS = {"GET": "read", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}

#: A Job that can be submitted as a workload.
MANIFEST = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "python:3"}]}}},
}

#: (method and path, place, permission); `{action}` is the action of the method. The first that matches counts.
_ROWS: tuple[tuple[str, str, str], ...] = (
    (r"GET /api/v1/access-keys", EVERYBODY, ""),
    (r"POST /api/v1/access-keys", EVERYBODY, ""),
    (r"\w+ /api/v1/access-keys/.*", FOREIGN, ""),
    (r"GET /api/v1/administration/access-keys", ANY, "users:update"),
    (r"DELETE /api/v1/administration/access-keys/.*", TARGET, "users:update"),
    (r"GET /api/v1/(apps|service-accounts)", ANY, "service-account:read"),
    (r"POST /api/v1/(apps|service-accounts)", ANY, "service-account:create"),
    (r"POST /api/v1/(apps|service-accounts)/.*", TARGET, "service-account:update"),
    (r"\w+ /api/v1/(apps|service-accounts)/.*", TARGET, "service-account:{action}"),
    (r"(GET|DELETE) /api/v1/me/sessions", EVERYBODY, ""),
    (r"(DELETE /api/v1/session|POST /api/v1/session/links)", EVERYBODY, ""),
    (r"DELETE /api/v1/me/sessions/.*", FOREIGN, ""),
    (r"GET /api/v1/notification-rules(/errors)?", EVERYBODY, ""),
    (r"POST /api/v1/notification-rules", EVERYBODY, ""),
    (r"\w+ /api/v1/notification-rules/.*", FOREIGN, ""),
    (r"GET /api/v1/users(/count)?", ANY, "users:read"),
    (r"POST /api/v1/users", ANY, "users:create"),
    (r"POST /api/v1/users/.*", TARGET, "users:update"),
    (r"\w+ /api/v1/users/.*", TARGET, "users:{action}"),
    (r"GET /api/v1/audit/.*", WIDE, "events-history:read"),
    (r"GET /api/v1/authorization/access-rules(/count)?", ANY, "access_rules:read"),
    (r"POST /api/v1/authorization/access-rules(/batch-create)?", TARGET, "access_rules:create"),
    (r"POST /api/v1/authorization/access-rules/batch", ANY, "access_rules:delete"),
    (r"\w+ /api/v1/authorization/access-rules/.*", TARGET, "access_rules:{action}"),
    (r"GET /api/v[12]/authorization/.*", EVERYBODY, ""),
    (r"POST /api/v1/authorization/permitted-scopes", EVERYBODY, ""),
    (r"\w+ /api/v2/authorization/roles.*", WIDE, "roles:{action}"),
    (r"GET /api/v1/clusters(/\{clusterUuid\}(/cluster-install-info)?)?", EVERYBODY, ""),
    (r"\w+ /api/v1/clusters(/\{clusterUuid\})?", WIDE, "cluster:{action}"),
    (r"GET /api/v1/(clusters/.*|nodes.*)", ANY, "nodes:read"),
    (r"GET /api/v1/org-unit/departments(/count|/telemetry)?", ANY, "department:read"),
    (r"POST /api/v1/org-unit/departments", WIDE, "department:create"),
    (r"\w+ /api/v1/org-unit/departments/.*", DEPARTMENT, "department:{action}"),
    (r"GET /api/v1/org-unit/priorities", EVERYBODY, ""),
    (r"GET /api/v1/org-unit/projects(/count|/telemetry)?", ANY, "project:read"),
    (r"POST /api/v1/org-unit/projects", WIDE, "project:create"),
    (r"\w+ /api/v1/org-unit/projects/.*", TARGET, "project:{action}"),
    (r"POST /api/v1/nodes/.*", WIDE, "nodes:update"),
    (r"GET /api/v1/node-pools.*", ANY, "nodepools:read"),
    (r"\w+ /api/v1/node-pools.*", WIDE, "nodepools:{action}"),
    (r"GET /api/v1/network-topologies.*", ANY, "network-topologies:read"),
    (r"\w+ /api/v1/network-topologies.*", WIDE, "network-topologies:{action}"),
    (r"GET /api/v1/scheduling/suggestions", ANY, "workloads:read"),
    (r"GET /api/v1/scheduling/questions", EVERYBODY, ""),
    (r"GET /api/v1/scheduling/shares", ANY, "project:read"),
    (r"\w+ /api/v1/scheduling/.*", WIDE, "cluster-config:read"),
    (r"GET /api/v[12]/storage-classes", EVERYBODY, ""),
    (r"GET /api/v1/user-credentials", EVERYBODY, ""),
    (r"POST /api/v1/user-credentials", EVERYBODY, ""),
    (r"\w+ /api/v1/user-credentials/.*", FOREIGN, ""),
    (r"POST /api/v1/(caller-environments|conversions|me/password)", EVERYBODY, ""),
    (r"(POST|PUT|DELETE) /api/v1/workload-types.*", WIDE, "workload-types:{action}"),
    (r"GET /v1/k8s/setting.*", EVERYBODY, ""),
    (r"GET /api/v1/security/settings.*", ANY, "cluster-config:read"),
    (r"PUT /(v1/k8s/setting|api/v1/security/settings/.*)", WIDE, "cluster-config:update"),
    (r"GET /v1/k8s/clusters/\{\w+\}/(installfile|storage-classes)", EVERYBODY, ""),
    (r"GET /v1/k8s/clusters/\{\w+\}/(metrics|projects(/metrics)?)", ANY, "project:read"),
    (r"POST /v1/k8s/clusters/\{clusterId\}/projects", WIDE, "project:create"),
    (r"\w+ /v1/k8s/clusters/\{\w+\}/projects/.*", TARGET, "project:{action}"),
    (r"GET /v1/k8s/clusters/\{\w+\}/departments(/metrics)?", ANY, "department:read"),
    (r"GET /v1/k8s/clusters/\{\w+\}/departments/.*", DEPARTMENT, "department:read"),
    # It only says which operation to use.
    (r"PUT /v1/k8s/clusters/\{clusterId\}/departments/.*", EVERYBODY, ""),
    (r"GET /v1/k8s/clusters/\{clusterId\}/node-pools", ANY, "nodepools:read"),
    (r"\w+ /v1/k8s/clusters/\{clusterId\}/node-pools.*", WIDE, "nodepools:{action}"),
    (r"GET /api/v2/workloads/.*", TARGET, "workloads:read"),
    (r"\w+ /api/v2/workloads.*", TARGET, "trainings:{action}"),
    # It answers for each workload; `test_deprecated_api.py` looks into the answers.
    (r"POST /api/v1/workloads/batch", EVERYBODY, ""),
    (r"GET /api/v1/workload-(categories|priorities|types).*", EVERYBODY, ""),
    (r"GET /api/v1/workload-templates(/count|/name-availability|/[a-z-]+)?", ANY, "templates:read"),
    (r"PUT /api/v1/workload-templates/manifests", TARGET, "templates:create"),
    (r"\w+ /api/v1/workload-templates.*", TARGET, "templates:{action}"),
    (r"GET /api/v1/workloads(/pods)?(/count|/telemetry)?", ANY, "workloads:read"),
    (r"GET /api/v1/workloads/pods", ANY, "workloads:read"),
    (r"GET /api/v1/usage", ANY, "workloads:read"),
    (r"GET /api/v1/scheduling/shares", ANY, "projects:read"),
    (r"GET /api/v2/policy", ANY, "policies:read"),
    (r"(PUT|PATCH) /api/v2/policy/.*", TARGET, "policies:update"),
    (r"\w+ /api/v2/policy/.*", TARGET, "policies:{action}"),
    (r"GET /api/v1/datavolumes/(count|name-availability)", ANY, "datavolumes:read"),
)
#: Operations without a row: they answer anybody, or stream until they are cut (`test_stream_rights.py`).
_PUBLIC = (
    r"\w+ /(api/docs|api/openapi.json|api/v[12]/token|v1/k8s/auth/oauth/apptoken|api/v1/password-reset|docs.*|"
    r"healthz|metrics|readyz|url-access|api/v1/workloads/watch|api/v1/sign-on.*)"
)

#: Signing a browser in, and asking who is signed in.
_BROWSER = ("GET /api/v1/session", "POST /api/v1/session")
#: Operations of features that the installation lacks: they show and change nothing.
_ABSENT = frozenset((route[0], route[1]) for feature in UNSUPPORTED_FEATURES for route in feature.routes)


def need_of(method: str, path: str) -> Need | None:
    """What an operation needs; None for one that has no access check. Raises for an operation without a row."""
    text = f"{method} {path}"
    if text in _BROWSER or re.fullmatch(_PUBLIC, text) or (method, path) in _ABSENT:
        return None
    for pattern, place, permission in _ROWS:
        if re.fullmatch(pattern, text):
            return Need(place, permission.format(action=_ACTIONS[method]))
    parts = path.removeprefix("/api/v1/").split("/")
    action = _ACTIONS[method]
    if parts[0] == "asset":
        kind = "/".join(part for part in parts[1:3] if "{" not in part)
        type = "credentials" if kind.startswith("credentials") else _ASSETS[kind]
        is_list = method == "GET" and "{" not in path
        return Need(ANY if is_list else TARGET, f"{type}:{action}")
    if parts[0] in _OBJECTS:
        return Need(ANY if path.count("/") == 3 and method == "GET" else TARGET, f"{_OBJECTS[parts[0]]}:{action}")
    if parts[0] == "workloads" and parts[1] in _KINDS:
        is_change = method == "POST" and "{" in path
        return Need(TARGET, f"{_KINDS[parts[1]]}:{'update' if is_change else action}")
    if parts[0] == "workloads" and parts[-1] in ("exec", "attach", "port-forward"):
        return Need(TARGET, "trainings:update")
    if parts[0] == "workloads":
        return Need(TARGET, "workloads:read")
    raise KeyError(f"{text} has no row: say in access_rows.py which permission it needs")


def body_of(method: str, path: str, ids: dict[str, Any]) -> Any:
    """A body that the description accepts; None for none."""
    project, last = ids["projectId"], path.rsplit("/", 1)[-1]
    named = {"name": "fresh-one", "clusterId": ids["clusterUuid"]}
    meta = {"name": "fresh-one", "scope": "project", "projectId": int(project)}
    rule = {"subjectId": "crew", "subjectType": "group", "roleId": 8}
    scope = {"scopeType": "project", "scopeId": project}
    exact: dict[str, Any] = {
        "/api/v1/clusters": {"name": "fresh-one"},
        "/api/v1/clusters/{clusterUuid}": {"name": "fresh-one"},
        "/api/v1/workloads/batch": {"action": "suspend", "ids": [ids["workloads/trainings"]]},
        "/api/v2/workloads": {"metadata": {"name": "fresh-one", "projectId": project}, "manifest": MANIFEST},
        "/v1/k8s/setting": {"key": "policies", "value": True},
        "/v1/k8s/clusters/{clusterId}/projects": {"name": "fresh-one", "departmentId": int(ids["departmentId"])},
        "/v1/k8s/clusters/{clusterId}/node-pools": {"name": "fresh-one", "labelKey": "a", "labelValue": "b"},
        "/api/v1/workload-types": {
            "name": "RayJob",
            "group": "ray.io",
            "categoryId": ids["categoryId"],
            "priorityId": ids["priorityId"],
        },
        "/api/v1/access-keys": {"name": "fresh-one"},
        "/api/v1/notification-rules": {"channel": "slack", "target": "https://example.com/", "on": ["failed"]},
        "/api/v1/apps": {"name": "fresh-one"},
        "/api/v1/service-accounts": {"name": "fresh-one"},
        "/api/v1/users": {"email": "fresh@example.com"},
        "/api/v1/authorization/access-rules": rule | scope,
        "/api/v1/authorization/access-rules/batch": {"action": "validate_delete", "ids": [ids["accessRuleId"]]},
        "/api/v1/authorization/access-rules/batch-create": {
            "payload": {"subjects": [{"subjectId": "crew", "subjectType": "group"}], "roleId": 8, "scopes": [scope]}
        },
        "/api/v1/authorization/permitted-scopes": {"resourceType": "project"},
        "/api/v2/authorization/roles": {"name": "fresh", "description": "", "permissionSets": []},
        "/api/v2/authorization/roles/{roleId}": {"name": "fresh", "description": "", "permissionSets": []},
        "/api/v1/org-unit/departments": named | {"resources": []},
        "/api/v1/org-unit/projects": named | {"resources": [], "parentId": ids["departmentId"]},
        "/api/v1/node-pools": named | {"labelKey": "a", "labelValue": "b"},
        "/api/v1/network-topologies": named | {"levels": ["rack"]},
        "/api/v1/scheduling/what-if": {"changes": []},
        "/api/v1/caller-environments": {"names": ["A"], "values": {"A": "1"}},
        "/api/v1/me/password": {"currentPassword": "a", "newPassword": "b"},
        "/api/v1/workload-templates/manifests": {"manifest": json.dumps(_document(ids["namespace"]))},
        "/api/v1/secrets": {"name": "fresh-one", "projectId": project, "data": {"k": "v"}},
        "/api/v1/config-maps": {"name": "fresh-one", "projectId": project, "data": {"k": "v"}},
        "/api/v1/user-credentials": {"name": "fresh-one", "data": {"k": "v"}},
        "/api/v1/persistent-volume-claims": {"name": "fresh-one", "projectId": project, "size": "1G"},
        "/api/v1/datavolumes": {"name": "fresh-one", "originPvcName": "c", "projectId": project},
    }
    if path in exact:
        return exact[path]
    if path.endswith("/resources"):
        return []
    if path.startswith("/api/v1/org-unit/") or "/node-pools/" in path:
        return {"resources": []} if "node-pools" not in path else {}
    if path.endswith(("/service-accounts/{serviceAccountId}", "/apps/{appId}")):
        return {"enabled": True}
    if path.startswith(("/api/v1/secrets/", "/api/v1/config-maps/", "/api/v1/user-credentials/")):
        return {"data": {"k": "v"}}
    if "/asset/" in path:
        kind = path.removeprefix("/api/v1/asset/").split("/{")[0]
        return {"meta": meta if method == "POST" else {"name": "fresh-one"}, "spec": SPECS[kind]}
    if "/api/v2/policy/" in path:
        return {"meta": meta, "policy": {"defaults": {}, "rules": {}}}
    if "/workload-templates/" in path:
        place = {"name": "fresh-one"} | (scope if method == "POST" else {})
        return {"meta": place, "spec": spec_of(last, path)}
    if "/workloads/" in path and method == "POST" and "{" not in path:
        return {"name": "fresh-one", "projectId": project, "clusterId": ids["clusterUuid"], "spec": spec_of(last, path)}
    return {}


def _document(namespace: str) -> dict[str, Any]:
    head = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload"}
    spec = {"usage": "Template", "image": {"value": "a"}}
    return {**head, "metadata": {"name": "fresh-one", "namespace": namespace}, "spec": spec}


def spec_of(kind: str, path: str) -> dict[str, Any]:
    """The smallest spec of a kind."""
    if "distributed-inferences" in path:
        return {"workers": 0, "leader": {"image": "python:3"}}
    if "distributed" in path:
        return {"image": "python:3", "distributedFramework": "PyTorch", "numWorkers": 1}
    return {"image": "python:3"}
