"""A Fairlead server on a cluster, and what tests ask of both: submit, wait, look into the cluster."""

import contextlib
import json
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy.cluster import build
from deploy.cluster import cluster as clusters
from deploy.cluster.api import MERGE, ApiError
from deploy.cluster.nodes import MARK
from deploy.cluster.options import add, drop
from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import api_version, custom_kinds
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_api_version, policy_plural
from tests.e2e.server import Answer, Server, until

#: A cluster on two busy cores takes its time.
PATIENCE = 180.0
#: How long pods run and how they end on nodes without a kubelet (docs/cluster.md).
SECONDS, CODE = "cluster.fairlead/run-seconds", "cluster.fairlead/exit-code"
#: The label by which a namespace holds its pods to a level of Pod Security.
ENFORCE = "pod-security.kubernetes.io/enforce"
#: The label by which objects are a workload's.
ID = "fairlead/workload-id"
#: The label that says which Fairlead's they are.
CLUSTER = "fairlead/cluster"
#: What the tests of fields ask for, and clusters refuse otherwise.
ALLOWED = (
    "host-path=/",
    "host-namespaces",
    *("capability=SYS_NICE", "capability=AUDIT_CONTROL", "capability=IPC_LOCK"),
)
#: Images that every node of the cluster has.
IMAGE, PYTHON = "busybox:1.35", "python:3.11"
PATHS = {
    "training": "trainings",
    "workspace": "workspaces",
    "distributed": "distributed",
    "inference": "inferences",
    "groups": "distributed-inferences",
}
TYPES = {
    "Training": "trainings",
    "Workspace": "workspaces",
    "Distributed": "distributed",
    "Inference": "inferences",
    "DistributedInference": "distributed-inferences",
}


#: The custom resources of workloads and policies, and where they are found in the API.
CUSTOM = {plural_of(kind): f"/apis/{api_version(kind)}" for kind in custom_kinds()} | {
    policy_plural(name): f"/apis/{policy_api_version(name)}" for name in LEGACY_KINDS
}
#: Where kinds are found in the API.
GROUPS = {
    **CUSTOM,
    **dict.fromkeys(("pods", "services", "secrets", "configmaps", "persistentvolumeclaims"), "/api/v1"),
    "jobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "leaderworkersets": "/apis/leaderworkerset.x-k8s.io/v1",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2",
}


def _nodes(operator: str) -> dict[str, Any]:
    """The nodes without a kubelet, or those with one."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": MARK, "operator": operator}]}]}


class ClusterHarness:
    def __init__(
        self,
        cluster: clusters.Cluster,
        folder: Path,
        kubeconfig: Path | None = None,
        arguments: Sequence[str] = (),
        allowed: Sequence[str] = ALLOWED,
    ) -> None:
        """The server reaches the cluster by a kubeconfig of its own where one is given."""
        self.cluster = cluster
        self.folder = folder
        self.api = cluster.api()
        reached = kubeconfig or cluster.kubeconfig
        flags = [f"--allow={word}" for word in allowed]
        self.server = Server(
            folder / "data", "--engine", "kubernetes", "--kubeconfig", str(reached), *flags, *arguments
        )
        self.project = f"p{zlib.crc32(str(folder).encode()) % 100_000}"
        self.project_id = ""
        self._asked = 0

    def open(self, definitions: Path) -> None:
        self._define(definitions)
        self.server.start()
        # What servers of earlier tests left, whose databases are gone.
        over = ("-l", CLUSTER, "--overwrite", f"{CLUSTER}={self.server.credentials['clusterId']}")
        assert self.kubectl("label", "queues.scheduling.run.ai,namespaces", *over).returncode == 0
        self.project_id = self.make_project(self.project, gpus=16)
        until(lambda: self.api.call("GET", f"/api/v1/namespaces/{self.namespace}"), "its namespace", PATIENCE)

    def _define(self, definitions: Path) -> None:
        """Install our custom resources unless they are there: kubectl takes seconds of processor time for it."""
        listed = self.api.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
        present = {one["metadata"]["name"] for one in listed if "deletionTimestamp" not in one["metadata"]}
        if {file.stem for file in definitions.glob("*.yaml")} <= present:
            return
        assert self.kubectl("apply", "-f", str(definitions)).returncode == 0
        waited = self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        assert waited.returncode == 0, waited.stderr

    def close(self) -> None:
        try:
            if self.server.process is not None and self.server.process.poll() is None:
                self.delete_all()
                until(self._is_released, "the end of all custom resources", PATIENCE)
                self.server.call("DELETE", f"/api/v1/org-unit/projects/{self.project_id}")
        finally:
            self.server.close()
            self.drop_finalizers(self.namespace)
            self.api.call("DELETE", f"/api/v1/namespaces/{self.namespace}")
            self.api.close()

    def drop_finalizers(self, namespace: str = "") -> str:
        """Let go of all custom resources, and tell which: a failed test must not become that of later ones.

        Without a server nobody else does it.
        """
        told = ""
        for plural in CUSTOM:
            for one in self.custom_resources(plural, namespace):
                told += f"\n{plural}: {json.dumps(one)}"
                metadata = one["metadata"]
                path = f"{CUSTOM[plural]}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
                # It may have gone meanwhile.
                with contextlib.suppress(ApiError):
                    self.api.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        return told

    def custom_resources(self, plural: str, namespace: str = "") -> list[dict[str, Any]]:
        """Those of a namespace, or all; none where their kind is not installed."""
        place = f"/namespaces/{namespace}" if namespace else ""
        listed = self.api.call("GET", f"{CUSTOM[plural]}{place}/{plural}")
        found: list[dict[str, Any]] = listed["items"] if listed else []
        return found

    @property
    def namespace(self) -> str:
        return f"runai-{self.project}"

    # The cluster

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [
            build.kubectl(),
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--cache-dir={self.folder / 'cache'}",
            *arguments,
        ]
        return subprocess.run(command, input=stdin, capture_output=True, text=True)

    def objects(self, kinds: str, *, namespace: str = "") -> list[dict[str, Any]]:
        """What the cluster has of these kinds in the project's namespace."""
        return [one for plural in kinds.split(",") for one in self._list(plural, namespace or self.namespace)]

    def _list(self, plural: str, namespace: str) -> list[dict[str, Any]]:
        """Asked directly where we know how: kubectl takes a fifth of a second of processor time for each look."""
        if plural in GROUPS:
            answer = self.api.call("GET", f"{GROUPS[plural]}/namespaces/{namespace}/{plural}")
            return [{"kind": answer["kind"].removesuffix("List"), **one} for one in answer["items"]]
        listed = self.kubectl("get", plural, "-n", namespace, "-o", "json")
        assert listed.returncode == 0, listed.stderr
        found: list[dict[str, Any]] = json.loads(listed.stdout)["items"]
        return found

    def names(self, kinds: str) -> list[str]:
        return sorted(f"{one['kind']}/{one['metadata']['name']}" for one in self.objects(kinds))

    @contextlib.contextmanager
    def no_pods(self) -> Iterator[None]:
        """No pod may be made in the project's namespace, by a quota called none."""
        made = self.kubectl("create", "quota", "none", "--hard=pods=0", "-n", self.namespace)
        assert made.returncode == 0, made.stderr
        try:
            path = f"/api/v1/namespaces/{self.namespace}/resourcequotas/none"
            until(lambda: self.api.call("GET", path).get("status", {}).get("hard"), "the quota to hold", PATIENCE)
            yield
        finally:
            self.kubectl("delete", "quota", "none", "-n", self.namespace)

    def enforce(self, level: str) -> None:
        """Have the cluster hold pods of the project to a level of Pod Security, or to none, and the server know it."""
        pair = f"{ENFORCE}={level}" if level else f"{ENFORCE}-"
        label = ("label", "namespace", self.namespace, pair, "--overwrite")
        until(lambda: self.kubectl(*label).returncode == 0, "the namespace", PATIENCE)
        if level == "restricted":
            until(self._refuses_root, "the server to know the level", PATIENCE)

    def _refuses_root(self) -> bool:
        """Whether it is the server that refuses, and not the cluster."""
        self._asked += 1
        security = {"uidGidSource": "custom", "runAsUid": 0}
        workload = self.submit("training", f"root-{self._asked}", self.spec(gpus=0, security=security))
        until(lambda: "Security" in self.server.message(workload), "a refusal", PATIENCE)
        return self.server.phase(workload) == "Failed"

    @contextlib.contextmanager
    def installed(self, option: str) -> Iterator[None]:
        """A part that not every cluster has, for a while; installed while the server runs."""
        add(self.cluster, option)
        try:
            yield
        finally:
            self.delete_all()
            drop(self.cluster, option)

    # The server

    def make_project(self, name: str, gpus: float, **quota: Any) -> str:
        pool = self.server.call("GET", "/api/v1/node-pools").json
        pools = pool["nodepools"] if isinstance(pool, dict) else pool
        resources = {
            "nodePool": {"id": str(pools[0]["id"])},
            "gpu": {"deserved": gpus, "overQuotaWeight": 2, **quota},
            "cpu": {"deserved": None},
            "memory": {"deserved": None, "units": "Mib"},
        }
        body = {"name": name, "clusterId": self.server.credentials["clusterId"], "resources": [resources]}
        answer = self.server.call("POST", "/api/v1/org-unit/projects", body)
        assert answer.status == 201, answer
        return str(answer.json["id"])

    def post(self, kind: str, name: str, spec: dict[str, Any], *, project: str = "", **members: Any) -> Answer:
        body = {
            "name": name,
            "projectId": project or self.project_id,
            "clusterId": self.server.credentials["clusterId"],
            "spec": spec,
            **members,
        }
        return self.server.call("POST", f"/api/v1/workloads/{PATHS[kind]}", body)

    def submit(self, kind: str, name: str, spec: dict[str, Any], *, project: str = "", **members: Any) -> str:
        answer = self.post(kind, name, spec, project=project, **members)
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])

    def train(self, name: str, *, gpus: int = 1, seconds: float | None = None, code: int = 0, **spec: Any) -> str:
        """A training on nodes without a kubelet, whose pods end after so many seconds, or never."""
        given = self.spec(gpus=gpus, seconds=seconds, code=code)
        return self.submit("training", name, given | spec)

    def spec(self, *, gpus: int = 1, seconds: float | None = None, code: int = 0, **spec: Any) -> dict[str, Any]:
        told = [] if seconds is None else [{"name": SECONDS, "value": f"{seconds:g}"}]
        if code:
            told.append({"name": CODE, "value": str(code)})
        found: dict[str, Any] = {
            "image": IMAGE,
            "command": "sleep 1000",
            "nodeAffinityRequired": _nodes("Exists"),
            **spec,
        }
        if gpus:
            found["compute"] = {"gpuDevicesRequest": gpus}
        if told:
            found["annotations"] = told
        return found

    def real(self, script: str) -> dict[str, Any]:
        """What runs a script in a real container, on the node that has a kubelet."""
        given = {"command": "sh -c", "args": json.dumps(script)} if script else {}
        return {"image": IMAGE if script else PYTHON, "nodeAffinityRequired": _nodes("DoesNotExist"), **given}

    def until_phase(self, workload: str, *phases: str) -> dict[str, Any]:
        return self.server.until_phase(workload, *phases, patience=PATIENCE)

    def act(self, verb: str, workload: str, kind: str = "training") -> None:
        path = f"/api/v1/workloads/{PATHS[kind]}/{workload}"
        answer = self.server.call("DELETE", path) if verb == "delete" else self.server.call("POST", f"{path}/{verb}")
        assert answer.status == 202, answer

    def pods(self, workload: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.call("GET", f"/api/v1/workloads/{workload}/pods").json["pods"]
        return found

    def delete_all(self) -> None:
        """Delete every workload, and wait until the server says that nothing is left."""
        listed = self.server.call("GET", "/api/v1/workloads?limit=500").json["workloads"]
        for one in listed:
            answer = self.server.call("DELETE", f"/api/v1/workloads/{TYPES[one['type']]}/{one['id']}")
            assert answer.status in (202, 404), answer
        until(self._is_empty, "the end of all workloads", PATIENCE)

    def _is_empty(self) -> bool:
        if not self._open():
            return True
        self._hurry()
        return False

    def _is_released(self) -> bool:
        """Whether no custom resource waits for the server any more."""
        return not any(self.custom_resources(plural, self.namespace) for plural in CUSTOM)

    def _open(self) -> list[str]:
        listed = self.server.call("GET", "/api/v1/workloads?limit=500").json["workloads"]
        if listed:
            return [one["name"] for one in listed]
        leaving = self.server.call("GET", "/api/v1/workloads?limit=500&deleted=true").json["workloads"]
        names = {one["id"]: one["name"] for one in leaving if one["phase"] == "Deleting"}
        return [names[id] for id in names.keys() & self._there()] if names else []

    def _hurry(self) -> None:
        """What is ending anyhow need not take all of its grace; a kubelet that has begun to wait does not wait less."""
        for pod in self.api.call("GET", f"/api/v1/pods?labelSelector={ID}")["items"]:
            metadata = pod["metadata"]
            if metadata.get("deletionGracePeriodSeconds", 0) > 0:
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                self.api.call("DELETE", path, {"gracePeriodSeconds": 0})

    def _there(self) -> set[str]:
        """The workloads of which the cluster has something, in whatever namespace."""
        kinds = ("pods", "jobs", "deployments", "services", "podgroups")
        listed = [self.api.call("GET", f"{GROUPS[plural]}/{plural}?labelSelector={ID}") for plural in kinds]
        return {one["metadata"]["labels"][ID] for found in listed for one in found["items"]}
