"""Manifests of any kind on a cluster: a real server on an API server in memory that knows JobSets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.memory_api.process import RunningApi, running_api
from tests.memory_api.server import JOB_SET

PATH, TYPES, POLICY = "/api/v2/workloads", "/api/v1/workload-types", "/api/v2/policy/trainings"
NAMESPACE = "runai-default"
OBJECTS = JOB_SET.path(NAMESPACE)


def template(name: str, **container: Any) -> dict[str, Any]:
    main = {"name": name, "image": "busybox", "resources": {"requests": {"cpu": "1"}}, **container}
    pod = {"restartPolicy": "Never", "containers": [main]}
    return {"metadata": {"labels": {"app": name}}, "spec": pod}


def job_set(**worker: Any) -> dict[str, Any]:
    jobs: list[dict[str, Any]] = [
        {"name": "leader", "replicas": 1, "template": {"spec": {"template": template("leader")}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"template": template("worker", **worker)}}},
    ]
    jobs[1]["template"]["spec"]["template"]["metadata"]["annotations"] = {"gpu-fraction": "half"}
    metadata = {"name": "set", "labels": {"team": "a", "kai.scheduler/queue": "stolen"}}
    return {"apiVersion": JOB_SET.api, "kind": JOB_SET.kind, "metadata": metadata, "spec": {"replicatedJobs": jobs}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with running_api(tmp_path_factory.mktemp("memory-api")) as api:
        yield api


@pytest.fixture(scope="module")
def server(cluster: RunningApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("manifests") / "data"
    server = Server(folder, "--engine", "kubernetes", "--kubeconfig", str(cluster.kubeconfig)).start()
    try:
        refused = submit(server, "untyped", job_set())
        assert refused.status == 400
        assert "for which there is no workload type" in refused.json["details"]
        known = server.call("GET", TYPES).json["types"][0]
        body = {name: known[name] for name in ("categoryId", "priorityId")} | {
            "name": "JobSet",
            "group": "jobset.x-k8s.io",
        }
        made = server.call("POST", TYPES, body)
        assert made.json["clusterStatuses"][0]["phase"] == "Ready"
        yield server
    finally:
        server.close()


def submit(server: Server, name: str, manifest: dict[str, Any]) -> Any:
    return server.call("POST", PATH, {"metadata": {"name": name, "projectId": "1"}, "manifest": manifest})


def find(cluster: RunningApi, name: str) -> dict[str, Any] | None:
    items = cluster.call("GET", OBJECTS)["items"]
    return next((one for one in items if one["metadata"]["name"] == name), None)


def start(server: Server, cluster: RunningApi, name: str, manifest: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    answer = submit(server, name, manifest)
    assert answer.status == 202, answer
    until(lambda: find(cluster, name), "the object")
    found = find(cluster, name)
    assert found is not None
    return answer.json["metadata"]["id"], found


def set_status(cluster: RunningApi, name: str, status: dict[str, Any]) -> None:
    cluster.call("PATCH", f"{OBJECTS}/{name}", {"status": status})


def add_pod(cluster: RunningApi, template: dict[str, Any], name: str, phase: str) -> None:
    running = {"name": template["spec"]["containers"][0]["name"], "state": {"running": {}}}
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": phase, "containerStatuses": [running], "conditions": [ready]}
    body = {"metadata": {**template["metadata"], "name": name, "namespace": NAMESPACE}, "status": status}
    body["spec"] = {**template["spec"], "nodeName": "node-0"}
    cluster.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body)


def templates(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["template"]["spec"]["template"] for one in found["spec"]["replicatedJobs"]]


def test_an_object_runs_with_our_labels_in_every_template_and_is_deleted(server: Server, cluster: RunningApi) -> None:
    id, found = start(server, cluster, "whole", job_set())
    assert found["metadata"]["labels"] | {"team": "a", "fairlead/workload-id": id} == found["metadata"]["labels"]
    assert found["metadata"]["labels"]["kai.scheduler/queue"] != "stolen"
    for rendered, name in zip(templates(found), ("leader", "worker"), strict=True):
        assert rendered["metadata"]["labels"]["fairlead/workload-id"] == id
        assert (rendered["metadata"]["labels"]["app"], rendered["spec"]["schedulerName"]) == (name, "kai-scheduler")
        assert [one["name"] for one in rendered["spec"]["containers"]] == [name]
    assert [one["replicas"] for one in found["spec"]["replicatedJobs"]] == [1, 2]
    conditions = server.call("GET", f"/api/v1/workloads/{id}").json["conditions"]
    assert [(one["reason"], one["message"].split(":")[0]) for one in conditions if one["type"] == "NotEnforced"] == [
        ("annotations[gpu-fraction]", "dropped"),
        ("metadata.labels[kai.scheduler/queue]", "dropped"),
    ]
    add_pod(cluster, templates(found)[1], "whole-worker-0", "Running")
    server.until_phase(id, "Running")
    assert not cluster.call("GET", f"/apis/run.ai/v2alpha1/namespaces/{NAMESPACE}/trainingworkloads")["items"]
    server.call("DELETE", f"{PATH}/{id}")
    until(lambda: find(cluster, "whole") is None, "no object")


ENDS = [
    ("completed", {"conditions": [{"type": "Completed", "status": "True"}]}, "Completed"),
    ("failed", {"conditions": [{"type": "Failed", "status": "True", "message": "no luck"}]}, "Failed"),
    ("phase", {"state": {"phase": "Completed"}}, "Completed"),
]


@pytest.mark.parametrize(("name", "status", "phase"), ENDS, ids=[row[0] for row in ENDS])
def test_its_status_shows_its_end(
    server: Server, cluster: RunningApi, name: str, status: dict[str, Any], phase: str
) -> None:
    id, _ = start(server, cluster, name, job_set())
    set_status(cluster, name, status)
    assert server.until_phase(id, phase)["type"] == "Training"


def test_every_template_complies_with_the_policy(server: Server, cluster: RunningApi) -> None:
    rules: dict[str, Any] = {"compute": {"cpuCoreRequest": {"max": 2}}}
    meta = {"name": "p", "scope": "project", "projectId": 1}
    defaults = {"environmentVariables": {"instances": [{"name": "TEAM", "value": "a"}]}}
    assert server.call("PUT", POLICY, {"meta": meta, "policy": {"rules": rules, "defaults": defaults}}).status == 200
    try:
        refused = submit(server, "refused", job_set(resources={"requests": {"cpu": "4"}}))
        assert refused.status == 400
        assert "value must be no greater than 2" in str(refused.json)
        id, found = start(server, cluster, "complies", job_set())
        for rendered in templates(found):
            assert {"name": "TEAM", "value": "a"} in rendered["spec"]["containers"][0]["env"]
        worse = job_set(resources={"requests": {"cpu": "4"}})
        assert server.call("PUT", f"{PATH}/{id}", {"manifest": worse}).status == 400
        assert server.call("POST", f"/api/v1/workloads/trainings/{id}/suspend").status == 202
        server.until_phase(id, "Stopped")
        rules["compute"]["cpuCoreRequest"]["max"] = 0.5
        server.call("PUT", POLICY, {"meta": meta, "policy": {"rules": rules}})
        resumed = server.call("POST", f"/api/v1/workloads/trainings/{id}/resume")
        assert (resumed.status, resumed.json["details"].count("no greater than 0.5")) == (403, 2)
    finally:
        server.call("DELETE", f"{POLICY}?scope=project&projectId=1")


def test_a_policy_adds_to_every_template_and_leaves_changes_possible(server: Server, cluster: RunningApi) -> None:
    volume = {"server": "127.0.0.1", "path": "/team", "mountPath": "/team"}
    source = {"meta": {"name": "team", "scope": "project", "projectId": 1}, "spec": volume}
    asset = server.call("POST", "/api/v1/asset/datasource/nfs", source).json["meta"]["id"]
    defaults = {"environmentVariables": {"instances": [{"name": "TEAM", "value": "a"}]}}
    policy = {"defaults": defaults, "imposedAssets": [asset]}
    meta = {"name": "p", "scope": "project", "projectId": 1}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": template("job")}}
    assert server.call("PUT", POLICY, {"meta": meta, "policy": policy}).status == 200
    try:
        id, found = start(server, cluster, "added", job_set())
        assert [one["spec"]["volumes"][0]["nfs"]["path"] for one in templates(found)] == ["/team", "/team"]
        as_job = submit(server, "added-job", job).json["metadata"]["id"]
    finally:
        server.call("DELETE", f"{POLICY}?scope=project&projectId=1")
    more = job_set()
    more["spec"]["replicatedJobs"][0]["replicas"] = 3
    assert server.call("PUT", f"{PATH}/{id}", {"manifest": more}).status == 202
    assert server.call("PUT", f"{PATH}/{as_job}", {"manifest": job}).status == 202

    def changed() -> Any:
        found = find(cluster, "added")
        return found if found is not None and found["spec"]["replicatedJobs"][0]["replicas"] == 3 else None

    leader, worker = templates(until(changed, "three replicas"))
    assert {"name": "TEAM", "value": "a"} in leader["spec"]["containers"][0]["env"]
    assert "volumes" not in worker["spec"], "a change is checked against the policies of that moment"
    other = job_set()
    other["spec"]["replicatedJobs"][0]["template"]["spec"]["template"] = template("leader", image="alpine")
    refused = server.call("PUT", f"{PATH}/{id}", {"manifest": other})
    assert refused.status == 400
    assert refused.json["details"].startswith("spec.image: cannot change")


REFUSED = [
    ("host processes", {"hostPID": True}, {}, "hostPID"),
    ("account", {"serviceAccountName": "admin"}, {}, "serviceAccountName"),
    ("privileged", {}, {"securityContext": {"privileged": True}}, "privileged"),
    ("second container", {}, {}, "containers"),
]


@pytest.mark.parametrize(("name", "pod", "main", "field"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_no_policy_could_check_is_refused(
    server: Server, cluster: RunningApi, name: str, pod: dict[str, Any], main: dict[str, Any], field: str
) -> None:
    manifest = job_set(**main)
    spec = manifest["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    spec |= pod
    if name == "second container":
        spec["containers"] = [*spec["containers"], {"name": "beside", "image": "busybox"}]
    answer = submit(server, "bad", manifest)
    assert answer.status == 400, answer
    assert field in answer.json["details"]
    assert "manifest.spec.replicatedJobs[1]" in str(answer.json)


def test_an_object_without_pod_templates_and_unknown_kinds_say_so(server: Server, cluster: RunningApi) -> None:
    empty = {**job_set(), "spec": {"replicatedJobs": []}}
    assert "without a pod template" in submit(server, "empty", empty).json["details"]
    newer = {**job_set(), "apiVersion": "jobset.x-k8s.io/v9"}
    id = submit(server, "newer", newer).json["metadata"]["id"]
    workload = server.until_phase(id, "Failed")
    assert "The cluster has no JobSet (jobset.x-k8s.io/v9)" in str(workload)


def test_another_kind_of_object_cannot_take_its_place(server: Server, cluster: RunningApi) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": template("job")}}
    plain = submit(server, "plain", job).json["metadata"]["id"]
    own = submit(server, "own", job_set()).json["metadata"]["id"]
    for id, other in ((plain, job_set()), (own, job), (own, {**job_set(), "apiVersion": "jobset.x-k8s.io/v9"})):
        answer = server.call("PUT", f"{PATH}/{id}", {"manifest": other})
        assert answer.status == 400, answer
        assert "it cannot change" in answer.json["details"]
    more = job_set()
    more["spec"]["replicatedJobs"][1]["replicas"] = 5
    assert server.call("PUT", f"{PATH}/{own}", {"manifest": more}).status == 202

    def has_more() -> bool:
        found = find(cluster, "own")
        return found is not None and found["spec"]["replicatedJobs"][1]["replicas"] == 5

    until(has_more, "five replicas")


def test_what_is_nested_too_deeply_is_refused(server: Server) -> None:
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"x": nested}
    answer = submit(server, "deep", {**job_set(), "spec": nested})
    assert answer.status == 400
    assert "nested deeper" in answer.json["details"]


def test_metrics_name_no_project_to_pods_of_the_cluster(server: Server) -> None:
    text = server.call("GET", "/metrics").body.decode()
    assert "fairlead_open_workloads" in text
    assert 'project="' not in text


def test_the_next_server_knows_the_object_and_deletes_it(server: Server, cluster: RunningApi) -> None:
    id, found = start(server, cluster, "survives", job_set())
    server.stop()
    server.start()
    set_status(cluster, "survives", {"conditions": [{"type": "Completed", "status": "True"}]})
    server.until_phase(id, "Completed")
    after = find(cluster, "survives")
    assert after is not None
    assert after["metadata"]["uid"] == found["metadata"]["uid"]
    server.stop()
    server.start()
    server.call("DELETE", f"{PATH}/{id}")
    until(lambda: find(cluster, "survives") is None, "no object")


def test_a_changed_template_gets_no_folder_of_the_node(server: Server, cluster: RunningApi) -> None:
    id, _ = start(server, cluster, "paths", job_set())
    changed = job_set(volumeMounts=[{"name": "root", "mountPath": "/host"}])
    pod = changed["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "root", "hostPath": {"path": "/"}}]
    for refused in (server.call("PUT", f"{PATH}/{id}", {"manifest": changed}), submit(server, "paths-too", changed)):
        assert refused.status == 400
        assert "'/' is the node's own" in str(refused.json)
    assert "hostPath" not in str(find(cluster, "paths"))
    assert server.call("GET", f"{PATH}/{id}").json["workload"]["rawManifest"] == job_set()
