"""Workloads submitted as Kubernetes manifests, and the workload types that an administrator adds for them."""

import base64
import json
from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

PATH = "/api/v2/workloads"
ONE = f"{PATH}/{{WorkloadV2Id}}"
POD = {"containers": [{"name": "main", "image": "python:3", "command": ["python", "-c", "print('a b')"]}]}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "from-manifest", "labels": {"team": "vision"}},
    "spec": {"completions": 3, "parallelism": 2, "template": {"spec": {**POD, "restartPolicy": "Never"}}},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "server:1", "ports": [{"containerPort": 8080}]}]},
        },
    },
}


def _submit(api: ApiServer, manifest: dict[str, Any], name: str = "", **metadata: object) -> Answer:
    return api.call("POST", PATH, {"metadata": {"projectId": "1", "name": name, **metadata}, "manifest": manifest})


def _id(answer: Answer) -> str:
    assert answer.status == 202, answer
    assert find_disagreements("post", PATH, 202, answer.json) == []
    return str(answer.json["metadata"]["id"])


def test_a_job_becomes_a_training(api: ApiServer) -> None:
    made = _submit(api, JOB, priority="high", category="Build")
    id = _id(made)
    metadata = made.json["metadata"]
    assert metadata["name"] == "from-manifest"
    assert metadata["gvk"] == {"group": "batch", "version": "v1", "kind": "Job"}
    assert (metadata["priority"], metadata["category"]) == ("high", "Build")
    assert made.json["rawManifest"] == JOB
    assert made.json["workloadManifest"]["metadata"]["namespace"] == "runai-default"
    training = api.get(f"/api/v1/workloads/trainings/{id}")
    assert (training["spec"]["completions"], training["spec"]["parallelism"]) == (3, 2)
    assert (training["spec"]["command"], training["spec"]["restartPolicy"]) == (
        "python -c 'print('\"'\"'a b'\"'\"')'",
        "Never",
    )
    shown = api.call("GET", f"{PATH}/{id}")
    assert find_disagreements("get", ONE, 200, shown.json) == []
    assert shown.json["syncInfo"]["status"] == "Queued"
    gone = api.call("DELETE", f"{PATH}/{id}")
    assert (gone.status, gone.json["desiredPhase"]) == (202, "Deleted")
    assert find_disagreements("delete", ONE, 202, gone.json) == []
    assert api.get(f"{PATH}/{id}")["syncInfo"]["status"] == "Deleting"


def test_a_pod_is_not_replaced_and_its_metadata_is_that_of_its_template(api: ApiServer) -> None:
    annotations = {"gpu-fraction": "0.5", "note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    metadata = {"labels": {"app": "a"}, "annotations": annotations}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**POD, "restartPolicy": "Never"}}
    id = _id(_submit(api, pod, "bare-pod"))
    spec = api.get(f"/api/v1/workloads/trainings/{id}")["spec"]
    assert (spec["backoffLimit"], spec["compute"]["gpuPortionRequest"]) == (0, 0.5)
    assert spec["labels"] == [{"name": "app", "value": "a"}]
    assert spec["annotations"] == [{"name": "note", "value": "n"}]


def test_labels_of_an_object_are_those_of_its_workload(api: ApiServer) -> None:
    labels = {"team": "vision", "app": "other"}
    id = _id(_submit(api, {**DEPLOYMENT, "metadata": {"labels": labels}}, "labelled"))
    spec = api.get(f"/api/v1/workloads/inferences/{id}")["spec"]
    assert spec["labels"] == [{"name": "app", "value": "web"}, {"name": "team", "value": "vision"}]
    groups = {**LWS, "metadata": {"labels": labels}, "spec": _groups()}
    id = _id(_submit(api, groups, "labelled-groups"))
    spec = api.get(f"/api/v1/workloads/distributed-inferences/{id}")["spec"]
    for role in ("leader", "worker"):
        assert {"name": "team", "value": "vision"} in spec[role]["labels"]


def test_a_deployment_becomes_an_inference_and_can_change(api: ApiServer) -> None:
    id = _id(_submit(api, DEPLOYMENT))
    spec = api.get(f"/api/v1/workloads/inferences/{id}")["spec"]
    assert spec["autoscaling"] == {"minReplicas": 2, "maxReplicas": 2}
    assert spec["servingPort"] == {"container": 8080}
    changed = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 3}}  # type: ignore[dict-item]  # the spec is a dict
    answer = api.call("PUT", f"{PATH}/{id}", {"manifest": changed, "metadata": {"category": "Train"}})
    assert answer.status == 202, answer
    assert find_disagreements("put", ONE, 202, answer.json) == []
    assert answer.json["rawManifest"]["spec"]["replicas"] == 3
    spec = api.get(f"/api/v1/workloads/inferences/{id}")["spec"]
    assert (spec["autoscaling"]["maxReplicas"], spec["category"]) == (3, "Train")
    assert spec["labels"] == [{"name": "app", "value": "web"}]


def _replicas(count: int = 1, gpus: int = 1, **members: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"replicas": count, "template": {"spec": {"containers": [container]}}, **members}


LWS = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}


def _groups(ports: tuple[int, ...] = (), pod: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """The spec of a LeaderWorkerSet whose pods are all alike."""
    container = {"name": "main", "image": "server:1", "ports": [{"containerPort": port} for port in ports]}
    template = {"spec": {"containers": [container], "priorityClassName": "high", **(pod or {})}}
    return {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template, **members}}


def _kubeflow(kind: str, spec: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


@pytest.mark.parametrize(
    ("manifest", "want_spec", "want_outside"),
    [
        pytest.param(
            _kubeflow(
                "PyTorchJob",
                {
                    "nprocPerNode": "4",
                    "runPolicy": {"backoffLimit": 2, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60},
                    "pytorchReplicaSpecs": {"Master": _replicas(gpus=0), "Worker": _replicas(3)},
                },
            ),
            {
                "distributedFramework": "PyTorch",
                "numWorkers": 3,
                "restartPolicy": "OnFailure",
                "backoffLimit": 2,
                "cleanPodPolicy": "All",
                "autoDeletionTimeAfterCompletionSeconds": 60,
                "compute": {"gpuDevicesRequest": 1},
                "environmentVariables": [{"name": "PET_NPROC_PER_NODE", "value": "4"}],
            },
            {"masterSpec": {"image": "trainer:1", "compute": {"gpuDevicesRequest": 0}}},
            id="pytorch",
        ),
        pytest.param(
            _kubeflow(
                "PyTorchJob",
                {
                    "elasticPolicy": {"minReplicas": 2, "maxReplicas": 6},
                    "pytorchReplicaSpecs": {"Worker": _replicas(4)},
                },
            ),
            {"numWorkers": 4, "minReplicas": 2, "maxReplicas": 6},
            {"masterSpecSameAsWorker": False},
            id="elastic",
        ),
        pytest.param(
            _kubeflow("TFJob", {"tfReplicaSpecs": {"Chief": _replicas(), "Worker": _replicas(2)}}),
            {"distributedFramework": "TF", "numWorkers": 2, "restartPolicy": "Never"},
            {"masterSpec": {"image": "trainer:1"}},
            id="tensorflow",
        ),
        pytest.param(
            _kubeflow("JAXJob", {"jaxReplicaSpecs": {"Worker": _replicas(2, restartPolicy="OnFailure")}}),
            {"distributedFramework": "JAX", "numWorkers": 2, "restartPolicy": "OnFailure"},
            {},
            id="jax",
        ),
        pytest.param(
            _kubeflow("XGBoostJob", {"xgbReplicaSpecs": {"Master": _replicas(), "Worker": _replicas()}}),
            {"distributedFramework": "XGBoost", "numWorkers": 1},
            {"masterSpec": {"image": "trainer:1"}},
            id="xgboost",
        ),
        pytest.param(
            _kubeflow(
                "MPIJob",
                {
                    "slotsPerWorker": 2,
                    "launcherCreationPolicy": "WaitForWorkersReady",
                    "mpiImplementation": "OpenMPI",
                    "mpiReplicaSpecs": {"Launcher": _replicas(gpus=0), "Worker": _replicas(2)},
                },
                "v2beta1",
            ),
            {
                "distributedFramework": "MPI",
                "slotsPerWorker": 2,
                "mpiLauncherCreationPolicy": "WaitForWorkersReady",
                "restartPolicy": "OnFailure",
            },
            {"masterSpec": {"image": "trainer:1"}},
            id="mpi",
        ),
    ],
)
def test_a_job_of_kubeflow_becomes_a_distributed_training(
    request: pytest.FixtureRequest,
    api: ApiServer,
    manifest: dict[str, Any],
    want_spec: dict[str, Any],
    want_outside: dict[str, Any],
) -> None:
    name = request.node.callspec.id
    id = _id(_submit(api, manifest, name))
    made = api.get(f"/api/v1/workloads/distributed/{id}")
    assert {name: made["spec"].get(name) for name in want_spec} == want_spec
    for member, want in want_outside.items():
        found = made[member]
        assert ({key: found[key] for key in want} if isinstance(want, dict) else found) == want
    [listed] = api.get(f"/api/v1/workloads?filterBy=name=={name}")["workloads"]
    assert listed["type"] == "Distributed"
    assert api.call("PUT", f"{PATH}/{id}", {}).status == 202
    assert api.get(f"{PATH}/{id}")["workload"]["rawManifest"] == manifest


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("PyTorchJob", {}, "manifest.spec.pytorchReplicaSpecs.Worker: must be given"),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {}}}, "pytorchReplicaSpecs.Worker: has no pod template"),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": _replicas(0)}}, "Worker.replicas: must be"),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": _replicas(2), "Worker": _replicas()}},
            "Master.replicas: is 2",
        ),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Worker": _replicas(restartPolicy="ExitCode")}},
            "Worker.restartPolicy: is ExitCode",
        ),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": _replicas(restartPolicy="Never"), "Worker": _replicas()}},
            "Worker.restartPolicy: is OnFailure",
        ),
        (
            "PyTorchJob",
            {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": _replicas()}},
            "manifest.spec.runPolicy.suspend: has no equivalent",
        ),
        (
            "PyTorchJob",
            {"elasticPolicy": {"rdzvBackend": "etcd"}, "pytorchReplicaSpecs": {"Worker": _replicas()}},
            "elasticPolicy.rdzvBackend: must be c10d",
        ),
        ("TFJob", {"tfReplicaSpecs": {"PS": _replicas(), "Worker": _replicas()}}, "tfReplicaSpecs.PS: has no"),
        (
            "TFJob",
            {"successPolicy": "AllWorkers", "tfReplicaSpecs": {"Chief": _replicas(), "Worker": _replicas()}},
            "manifest.spec.successPolicy: has no",
        ),
        ("LeaderWorkerSet", {}, "leaderWorkerTemplate.workerTemplate: has no pod template"),
        ("LeaderWorkerSet", _groups(size=0), "leaderWorkerTemplate.size: must be"),
        ("LeaderWorkerSet", _groups(subGroupPolicy={"subGroupSize": 2}), "subGroupPolicy: has no equivalent"),
        ("LeaderWorkerSet", {**_groups(), "rolloutStrategy": {"type": "RollingUpdate"}}, "spec.rolloutStrategy: has"),
        ("LeaderWorkerSet", _groups(ports=(1, 2)), "its leader has 2 ports"),
        (
            "LeaderWorkerSet",
            _groups(pod={"restartPolicy": "Never"}),
            "leaderWorkerTemplate.workerTemplate.spec.restartPolicy: is Never",
        ),
        (
            "LeaderWorkerSet",
            _groups(pod={"hostPID": True}),
            "leaderWorkerTemplate.workerTemplate.spec.hostPID: has no equivalent",
        ),
    ],
)
def test_what_workloads_of_several_pods_lack_is_refused_with_its_path(
    api: ApiServer, kind: str, spec: dict[str, Any], field: str
) -> None:
    manifest = _kubeflow(kind, spec)
    if kind == LWS["kind"]:
        manifest["apiVersion"] = LWS["apiVersion"]
    answer = _submit(api, manifest, "refused")
    assert answer.status == 400, answer
    assert field in answer.json["details"]


def test_a_leader_worker_set_becomes_a_distributed_inference(api: ApiServer) -> None:
    manifest = {**LWS, "metadata": {"name": "groups"}, "spec": _groups(ports=(8000,), restartPolicy="None")}
    id = _id(_submit(api, manifest))
    made = api.get(f"/api/v1/workloads/distributed-inferences/{id}")
    assert made["spec"] == {
        "leader": {"image": "server:1"},
        "worker": {"image": "server:1"},
        "workers": 2,
        "replicas": 2,
        "restartPolicy": "None",
        "servingPort": {"port": 8000, "exposeExternally": False},
        "priorityClass": "high",
    }
    more = {**manifest, "spec": {**_groups(ports=(8000,), restartPolicy="None"), "replicas": 4}}
    assert api.call("PUT", f"{PATH}/{id}", {"manifest": more}).status == 202
    assert api.get(f"/api/v1/workloads/distributed-inferences/{id}")["spec"]["replicas"] == 4


def test_a_pod_of_a_job_gets_no_privileges(api: ApiServer) -> None:
    worker = _replicas()
    worker["template"]["spec"] |= {"hostNetwork": True, "hostPID": True}
    answer = _submit(api, _kubeflow("JAXJob", {"jaxReplicaSpecs": {"Worker": worker}}), "refused")
    assert "manifest.spec.jaxReplicaSpecs.Worker.template.spec.hostPID" in answer.json["details"]


@pytest.mark.parametrize(
    ("probe", "want"),
    [
        ({"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 5}, {"path": "/ready", "port": 8080}),
        ({"httpGet": {"port": 8081, "scheme": "HTTPS"}, "periodSeconds": 5}, {"port": 8081, "scheme": "HTTPS"}),
        ({"httpGet": {"port": "other"}}, "readinessProbe.httpGet.port: has no equivalent"),
        ({"exec": {"command": ["true"]}}, "readinessProbe.exec.command: has no equivalent"),
        ({"httpGet": {"port": 80, "host": "elsewhere"}}, "readinessProbe.httpGet.host: has no equivalent"),
        ({"httpGet": {"port": 80, "path": {"a": 1}}}, "readinessProbe.httpGet.path.a: has no equivalent"),
    ],
    ids=["name", "number", "unknown", "command", "host", "object"],
)
def test_a_readiness_probe_is_kept_or_refused(
    request: pytest.FixtureRequest, api: ApiServer, probe: dict[str, Any], want: dict[str, Any] | str
) -> None:
    ports = [{"name": "web", "containerPort": 8080}]
    pod = {"containers": [{"name": "web", "image": "server:1", "ports": ports, "readinessProbe": probe}]}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}}
    made = _submit(api, manifest, f"probe-{request.node.callspec.id}")
    if isinstance(want, str):
        assert (made.status, want in made.json["details"]) == (400, True), made
        return
    spec = api.get(f"/api/v1/workloads/inferences/{_id(made)}")["spec"]
    assert spec["probes"] == {"readiness": {"periodSeconds": 5, "handler": {"httpGet": want}}}


def test_what_cannot_change_is_named(api: ApiServer) -> None:
    id = _id(_submit(api, JOB, "fixed"))
    answer = api.call("PUT", f"{PATH}/{id}", {"manifest": {**JOB, "spec": {**JOB["spec"], "completions": 9}}})  # type: ignore[dict-item]  # the spec is a dict
    assert answer.status == 400
    assert "spec.completions" in answer.json["details"]
    assert api.call("PUT", f"{PATH}/{id}", {"manifest": DEPLOYMENT}).status == 400
    assert api.call("PUT", f"{PATH}/{id}", {}).status == 202
    assert api.get(f"{PATH}/{id}")["workload"]["rawManifest"] == JOB


def test_a_manifest_can_be_encoded_yaml(api: ApiServer) -> None:
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: encoded}}\nspec: {json.dumps(JOB['spec'])}\n"
    body = {
        "metadata": {"projectId": "1", "name": "encoded", "useGivenNameAsPrefix": True},
        "manifestBase64Encoded": base64.b64encode(text.encode()).decode(),
    }
    made = api.call("POST", PATH, body)
    _id(made)
    assert made.json["metadata"]["name"].startswith("encoded-")
    assert made.json["rawManifest"]["spec"] == JOB["spec"]


def test_a_taken_name_is_a_conflict(api: ApiServer) -> None:
    _id(_submit(api, JOB, "taken"))
    again = _submit(api, JOB, "taken")
    assert again.status == 409
    assert find_disagreements("post", PATH, 409, again.json) == []


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {}}, "manifest.kind: is a ray.io/v1 RayJob"),
        ({"kind": "Job", "spec": {}}, "manifest.apiVersion"),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {}}, "manifest.spec: has no pod template"),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": 1}}, "manifest.spec.template: must be"),
        ({**JOB, "metadata": {"name": "x", "namespace": "kube-system"}}, "manifest.metadata.namespace"),
        (
            {**JOB, "spec": {"suspend": True, "template": {"spec": POD}}},
            "manifest.spec.suspend: has no equivalent",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "spec": {**POD, "dnsPolicy": "None"}},
            "manifest.spec.dnsPolicy: has no equivalent",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": POD["containers"] * 2}},
            "manifest.spec.containers: has 2 containers",
        ),
        ({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}, "manifest.spec.paused"),  # type: ignore[dict-item]  # the spec is a dict
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "spec": {
                    "containers": [
                        {
                            "image": "i",
                            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": {"a": 1}, "key": "k"}}}],
                        }
                    ]
                },
            },
            "env[0].valueFrom.secretKeyRef.name.a: has no equivalent",
        ),
    ],
    ids=[
        "kind",
        "version",
        "empty",
        "template",
        "namespace",
        "job-member",
        "pod-member",
        "containers",
        "paused",
        "object",
    ],
)
def test_what_cannot_be_run_is_refused_with_its_path(api: ApiServer, manifest: dict[str, Any], field: str) -> None:
    answer = _submit(api, manifest, "refused")
    assert answer.status == 400, answer
    assert field in answer.json["details"]
    assert find_disagreements("post", PATH, 400, answer.json) == []


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"projectId": "1", "name": "a"}},
        {"metadata": {"projectId": "1", "name": "a"}, "manifest": JOB, "manifestBase64Encoded": "e30="},
        {"metadata": {"projectId": "1", "name": "a"}, "manifestBase64Encoded": "***"},
        {"metadata": {"projectId": "1", "name": "a"}, "manifestBase64Encoded": "W10="},
        {"metadata": {"projectId": "77", "name": "a"}, "manifest": JOB},
        {"metadata": {"projectId": "1", "name": "NOT A NAME"}, "manifest": JOB},
    ],
    ids=["none", "both", "not-base64", "a-list", "project", "name"],
)
def test_other_mistakes_of_a_request(api: ApiServer, body: dict[str, Any]) -> None:
    assert api.call("POST", PATH, body).status == 400


def test_a_workload_of_another_interface_has_no_manifest(api: ApiServer) -> None:
    id = api.submit("by-rest")
    answer = api.call("GET", f"{PATH}/{id}")
    assert answer.status == 404
    assert "was not submitted as a manifest" in answer.json["details"]


def test_a_type_gives_its_workloads_category_and_priority(make_api: Any) -> None:
    api: ApiServer = make_api("types")
    categories = {each["name"]: each["id"] for each in api.get("/api/v1/workload-categories")["categories"]}
    priorities = {each["name"]: each["id"] for each in api.get("/api/v1/workload-priorities")["priorities"]}
    path = "/api/v1/workload-types"
    body = {"name": "Job", "group": "batch", "categoryId": categories["Build"], "priorityId": priorities["very-low"]}
    made = api.call("POST", path, body)
    assert made.status == 201, made
    assert find_disagreements("post", path, 201, made.json) == []
    assert made.json["clusterStatuses"][0]["phase"] == "Ready"
    assert api.call("POST", path, body).status == 409
    workload = _submit(api, JOB, "typed").json["metadata"]
    assert (workload["category"], workload["priority"]) == ("Build", "very-low")
    one = f"{path}/{made.json['id']}"
    changed = api.call("PUT", one, {"priorityId": priorities["medium"]})
    assert find_disagreements("put", f"{path}/{{workloadTypeId}}", changed.status, changed.json) == []
    assert (changed.json["priorityName"], changed.json["categoryName"]) == ("medium", "Build")
    external = api.get(f"{path}?externalTypesOnly=true")["types"]
    assert [each["name"] for each in external] == ["Job"]
    assert api.call("DELETE", one).status == 204
    assert api.call("GET", one).status == 404
    assert api.get(f"{path}?externalTypesOnly=true") == {"types": []}


def test_types_that_cannot_be(api: ApiServer) -> None:
    path = "/api/v1/workload-types"
    built_in = api.get(path)["types"][0]
    for method in ("PUT", "DELETE"):
        refused = api.call(method, f"{path}/{built_in['id']}", {} if method == "PUT" else None)
        assert refused.status == 403, refused
        assert "is built in" in refused.json["details"]
    unknown = {"name": "RayJob", "group": "ray.io", "categoryId": built_in["id"], "priorityId": built_in["priorityId"]}
    assert "categoryId" in api.call("POST", path, unknown).json["details"]
    other = unknown | {"categoryId": built_in["categoryId"]}
    made = api.call("POST", path, other)
    assert made.json["clusterStatuses"][0]["phase"] == "NotSupported"
