"""Workloads applied with a real kubectl: they run, say how they are, follow `active`, and go without a trace."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import CLUSTER, CUSTOM, IMAGE, PATIENCE, SECONDS, ClusterHarness
from tests.kubernetes.conftest import CRDS

pytestmark = pytest.mark.kubernetes


def document(harness: ClusterHarness, name: str, kind: str = "TrainingWorkload", **spec: Any) -> dict[str, Any]:
    fields = {"name": name, "image": IMAGE, "command": "sleep 1000", "gpu": 1, **spec}
    return {
        "apiVersion": "run.ai/v2alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": harness.namespace},
        "spec": {field: value if isinstance(value, dict) else {"value": value} for field, value in fields.items()},
    }


def apply(harness: ClusterHarness, body: dict[str, Any]) -> str:
    """Apply it, and return the id that its workload has."""
    made = harness.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr
    return str(read(harness, body["metadata"]["name"])["metadata"]["uid"])


def read(harness: ClusterHarness, name: str, kind: str = "trainingworkloads") -> dict[str, Any]:
    body: dict[str, Any] = harness.api.call("GET", f"{CUSTOM[kind]}/namespaces/{harness.namespace}/{kind}/{name}")
    assert body, f"there is no {kind} {name}"
    return body


def until_status(harness: ClusterHarness, name: str, phase: str) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: (body := read(harness, name)).get("status", {}).get("phase") == phase and body,
        f"{phase} of {name}",
        PATIENCE,
    )
    return found


def test_applied_workloads_run_and_say_how_they_are(harness: ClusterHarness) -> None:
    workload = apply(harness, document(harness, "applied"))
    body = until_status(harness, "applied", "Running")
    assert body["status"]["workloadId"] == workload
    assert harness.server.phase(workload) == "Running"
    listed = harness.kubectl("get", "trainingworkloads", "-n", harness.namespace).stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATUS", "PROJECT", "GPU", "AGE", "MESSAGE"]
    assert listed[1].split()[:4] == ["applied", "Running", harness.project, "1"]
    [job] = harness.objects("jobs")
    assert job["metadata"]["ownerReferences"][0]["uid"] == workload


def test_a_prefix_becomes_a_name(harness: ClusterHarness) -> None:
    """`namePrefix`: the workload gets a name of its own, by which its pods are found too."""
    body = document(harness, "prefixed")
    del body["spec"]["name"]
    body["spec"]["namePrefix"] = {"value": "pre"}
    workload = apply(harness, body)
    status = until_status(harness, "prefixed", "Running")["status"]
    name = harness.server.workload(workload)["name"]
    assert name.startswith("pre")
    assert name != "pre"
    assert status["workloadName"] == name
    [job] = harness.objects("jobs")
    assert job["metadata"]["name"] == name


def test_scripts_can_wait_and_people_can_read(harness: ClusterHarness) -> None:
    """`kubectl wait` and `kubectl describe`, of workloads that came either way."""
    apply(harness, document(harness, "waited", annotations={"items": {SECONDS: {"value": "1"}}}))
    sent = harness.train("sent", seconds=1, code=3, backoffLimit=0)
    place = ("-n", harness.namespace)
    done = harness.kubectl("wait", "--for=condition=Succeeded", "twl/waited", *place, "--timeout=120s")
    assert done.returncode == 0, done.stderr
    harness.until_phase(sent, "Failed")
    done = harness.kubectl("wait", "--for=condition=Failed", "twl/sent", *place, "--timeout=120s")
    assert done.returncode == 0, done.stderr
    said = harness.kubectl("describe", "twl/sent", *place).stdout
    conditions = {one["type"]: one["status"] for one in read(harness, "sent")["status"]["conditions"]}
    assert (conditions["Accepted"], conditions["Succeeded"], conditions["Failed"]) == ("True", "False", "True")
    until(lambda: "Warning  Failed" in harness.kubectl("describe", "twl/sent", *place).stdout, "its event", PATIENCE)
    assert "fairlead" in said


def test_numbers_are_numbers_or_text(harness: ClusterHarness) -> None:
    """`gpu: {value: 0.5}`, with and without quotes; explained as an amount."""
    for name, value in (("plain", 0.5), ("quoted", "0.5")):
        apply(harness, document(harness, name, gpu=value))
        until_status(harness, name, "Running")
        assert value_of(read(harness, name), "gpu") == value
    body = document(harness, "wrong", gpu=-1)
    assert harness.kubectl("apply", "-f", "-", stdin=json.dumps(body)).returncode != 0
    told = harness.kubectl("explain", "trainingworkloads.spec.gpu.value").stdout
    assert "Type: number, as a number or as text." in " ".join(told.split())


def test_active_works_both_ways(harness: ClusterHarness) -> None:
    workload = apply(harness, document(harness, "switched"))
    until_status(harness, "switched", "Running")
    off = json.dumps({"spec": {"active": {"value": False}}})
    assert (
        harness.kubectl("patch", "twl", "switched", "-n", harness.namespace, "--type=merge", "-p", off).returncode == 0
    )
    until_status(harness, "switched", "Stopped")
    assert harness.names("jobs,pods") == []
    harness.act("resume", workload)
    body = until_status(harness, "switched", "Running")
    assert body["spec"]["active"] == {"value": True}
    harness.act("suspend", workload)
    body = until_status(harness, "switched", "Stopped")
    assert body["spec"]["active"] == {"value": False}


def test_the_last_word_stays_however_quickly_it_follows(harness: ClusterHarness) -> None:
    """No watch keeps up with this: what was written here is seen when it is old."""
    workload = apply(harness, document(harness, "wavering"))
    until_status(harness, "wavering", "Running")
    for verb in ("suspend", "resume") * 10 + ("suspend",):
        harness.act(verb, workload)
    _until_both(harness, "Stopped", is_active=False)
    on = json.dumps({"spec": {"active": {"value": True}}})
    assert (
        harness.kubectl("patch", "twl", "wavering", "-n", harness.namespace, "--type=merge", "-p", on).returncode == 0
    )
    _until_both(harness, "Running", is_active=True)


def _until_both(harness: ClusterHarness, phase: str, *, is_active: bool) -> None:
    """Phases on the way may be the same: the object and what is wanted of it have to agree."""

    def agrees() -> bool:
        body = read(harness, "wavering")
        is_seen = body["status"]["observedGeneration"] == body["metadata"]["generation"]
        return bool(is_seen and body["status"]["phase"] == phase and value_of(body, "active") is is_active)

    until(agrees, f"{phase} of wavering", PATIENCE)


def test_the_next_object_of_a_name_is_another_one(harness: ClusterHarness) -> None:
    """Somebody let the first go in our place: what is still to be done to it is not done to the next."""
    before = apply(harness, document(harness, "again"))
    until_status(harness, "again", "Running")
    assert harness.kubectl("delete", "twl", "again", "-n", harness.namespace, "--wait=false").returncode == 0
    harness.kubectl(
        "patch", "twl", "again", "-n", harness.namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )
    after = apply(harness, document(harness, "again"))
    assert before != after
    body = until_status(harness, "again", "Running")
    assert body["status"]["workloadId"] == after
    assert harness.server.workload(before)["deletedAt"]


def test_a_rejected_edit_is_reported(harness: ClusterHarness) -> None:
    given = document(harness, "edited")
    apply(harness, given)
    until_status(harness, "edited", "Running")

    def edit(image: str, want: str) -> None:
        change = json.dumps({"spec": {"image": {"value": image}}})
        done = harness.kubectl("patch", "twl", "edited", "-n", harness.namespace, "--type=merge", "-p", change)
        assert done.returncode == 0, done.stderr
        until(lambda: _has_said(read(harness, "edited"), want), want or "no complaint", PATIENCE)

    edit("another", "Edit rejected: spec.image")
    edit(given["spec"]["image"]["value"], "")


def _has_said(body: dict[str, Any], want: str) -> bool:
    """Whether this is what is said of the object as it is now."""
    status, words = body["status"], body["status"]["message"]
    is_said = words.startswith(want) if want else "not taken" not in words
    return bool(is_said and status["observedGeneration"] == body["metadata"]["generation"])


def test_inactive_from_the_beginning(harness: ClusterHarness) -> None:
    apply(harness, document(harness, "later", active=False))
    until_status(harness, "later", "Stopped")
    assert harness.names("jobs") == []


def test_what_lies_in_a_namespace_of_another_fairlead_is_left_alone(harness: ClusterHarness) -> None:
    """It is said whose it is, and it is not let go before that one has ended it."""
    theirs = f"{harness.namespace}-theirs"
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": theirs, "labels": {CLUSTER: "another"}}}
    body = document(harness, "theirs")
    body["metadata"] |= {"namespace": theirs, "finalizers": ["run.ai/fairlead"]}
    both = {"apiVersion": "v1", "kind": "List", "items": [place, body]}
    applied = harness.kubectl("apply", "-f", "-", stdin=json.dumps(both))
    assert applied.returncode == 0, applied.stderr
    try:
        said = f"Namespace {theirs} belongs to another Fairlead installation, another"
        get = ("get", "twl", "theirs", "-n", theirs, "-o", "jsonpath={.status.message}")
        until(lambda: harness.kubectl(*get).stdout.startswith(said), "whose it is", PATIENCE)
        assert harness.kubectl("delete", "twl", "theirs", "-n", theirs, "--wait=false").returncode == 0
        # What comes later is looked at later.
        apply(harness, document(harness, "ours"))
        until_status(harness, "ours", "Running")
        decoded = json.loads(harness.kubectl("get", "twl", "theirs", "-n", theirs, "-o", "json").stdout)
        assert decoded["metadata"]["finalizers"] == ["run.ai/fairlead"]
        assert set(decoded["status"]) == {"phase", "message"}
        # Handed over, it is ours to let go.
        ours = f"{CLUSTER}={harness.server.credentials['clusterId']}"
        assert harness.kubectl("label", "namespace", theirs, "--overwrite", ours).returncode == 0
        until(lambda: harness.kubectl("get", "twl", "theirs", "-n", theirs).returncode != 0, "its end", PATIENCE)
    finally:
        harness.kubectl("delete", "namespace", theirs, "--wait=false")


def test_kubectl_delete_returns_when_nothing_is_left(harness: ClusterHarness) -> None:
    workload = apply(harness, document(harness, "leaving"))
    until_status(harness, "leaving", "Running")
    gone = harness.kubectl("delete", "twl", "leaving", "-n", harness.namespace, "--timeout=120s")
    assert gone.returncode == 0, gone.stderr
    assert harness.names("jobs,pods,podgroups") == []
    assert harness.server.workload(workload)["deletedAt"]


def test_deleting_over_rest_removes_the_object(harness: ClusterHarness) -> None:
    workload = apply(harness, document(harness, "removed"))
    until_status(harness, "removed", "Running")
    harness.act("delete", workload)
    until(lambda: harness.objects("trainingworkloads") == [], "the object's end", PATIENCE)
    assert until(lambda: harness.names("jobs,pods") == [], "the end of what was made for it", PATIENCE)


def test_what_a_submission_refuses_is_refused_here_with_the_same_message(harness: ClusterHarness) -> None:
    harness.train("taken-name")
    body = document(harness, "wrong")
    body["spec"]["name"] = {"value": "taken-name"}
    apply(harness, body)
    refused = until_status(harness, "wrong", "Failed")
    assert "a workload named taken-name already exists" in refused["status"]["message"]
    assert harness.names("jobs") == ["Job/taken-name"]
    assert harness.kubectl("delete", "twl", "wrong", "-n", harness.namespace, "--timeout=60s").returncode == 0


def test_objects_that_went_while_no_server_ran(harness: ClusterHarness) -> None:
    """The finalizer keeps the object until a server is back; then both go."""
    apply(harness, document(harness, "meanwhile"))
    until_status(harness, "meanwhile", "Running")
    harness.server.stop()
    harness.kubectl("delete", "twl", "meanwhile", "-n", harness.namespace, "--wait=false")
    assert read(harness, "meanwhile")["metadata"]["deletionTimestamp"]
    harness.server.token = ""
    harness.server.start()
    until(lambda: harness.objects("trainingworkloads") == [], "the object's end", PATIENCE)
    assert until(lambda: harness.names("jobs,pods") == [], "the end of what was made for it", PATIENCE)
    until(lambda: harness.names("jobs,pods") == [], "an empty namespace", PATIENCE)


def test_an_end_is_written_back(harness: ClusterHarness) -> None:
    body = document(harness, "short", command="sleep 1")
    body["spec"]["annotations"] = {"items": {SECONDS: {"value": "1"}}}
    workload = apply(harness, body)
    written = until_status(harness, "short", "Completed")
    assert written["status"]["workloadId"] == workload
    assert harness.server.phase(workload) == "Completed"


def value_of(body: dict[str, Any], field: str) -> Any:
    return body["spec"].get(field, {}).get("value")


def test_the_system_fills_in_who_applied_it_and_where_it_is_reached(harness: ClusterHarness) -> None:
    workload = apply(
        harness, document(harness, "owned", exposedUrls={"items": {"web": {"value": {"container": 8888}}}})
    )
    until_status(harness, "owned", "Running")
    [address] = until(lambda: harness.server.workload(workload)["urls"], "its URL", PATIENCE)
    body = until(lambda: value_of(found := read(harness, "owned"), "ingressUrl") == address and found, "it", PATIENCE)
    assert value_of(body, "userId") == "kubernetes"
    # These are the system's: what somebody else writes there does not stay.
    wrong = json.dumps({"spec": {"ingressUrl": {"value": "https://elsewhere"}}})
    harness.kubectl("patch", "twl", "owned", "-n", harness.namespace, "--type=merge", "-p", wrong)
    until(lambda: value_of(read(harness, "owned"), "ingressUrl") == address, "its URL again", PATIENCE)
    assert harness.server.phase(workload) == "Running"


def test_a_secret_of_the_namespace_is_found(harness: ClusterHarness) -> None:
    made = harness.kubectl(
        "create", "secret", "generic", "theirs", "-n", harness.namespace, "--from-literal=token=s3cret"
    )
    assert made.returncode == 0, made.stderr
    body = document(harness, "reader", command="sh", gpu=0)
    del body["spec"]["gpu"]
    body["spec"] |= {
        "arguments": {"value": "-c 'echo found $TOKEN'"},
        "environment": {"items": {"TOKEN": {"value": "SECRET:theirs,token"}}},
        "nodeType": {"value": "real"},
    }
    harness.kubectl("label", "node", "worker-1", "run.ai/type=real", "--overwrite")
    try:
        workload = apply(harness, body)
        until_status(harness, "reader", "Completed")
        assert b"found s3cret" in harness.server.call("GET", f"/api/v1/workloads/{workload}/logs").body
    finally:
        harness.kubectl("label", "node", "worker-1", "run.ai/type-")
        harness.kubectl("delete", "secret", "theirs", "-n", harness.namespace)


def test_plain_credentials_are_kept_as_a_secret_and_go_with_the_object(harness: ClusterHarness) -> None:
    repository = {"repository": "https://git.example/x", "directory": "/x", "username": "me", "password": "hidden-word"}
    body = document(harness, "cloning", gitSync={"items": {"code": {"value": repository}}})
    workload = apply(harness, body)
    until_status(harness, "cloning", "Running")
    assert "Secret/cloning-secret-cloning-code" in harness.names("secrets")
    assert "hidden-word" not in json.dumps(harness.server.workload(workload))
    kept = harness.server.call("GET", "/api/v1/secrets?search=cloning-code&limit=100").json["items"]
    assert [one["name"] for one in kept] == ["cloning-code"]
    assert harness.kubectl("delete", "twl", "cloning", "-n", harness.namespace, "--timeout=120s").returncode == 0
    assert harness.server.call("GET", "/api/v1/secrets?search=cloning-code&limit=100").json["items"] == []
    assert "Secret/cloning-secret-cloning-code" not in harness.names("secrets")


def test_a_template_in_the_namespace_runai_is_everybodys(harness: ClusterHarness) -> None:
    harness.kubectl("create", "namespace", "runai")
    template = document(harness, "base")
    template["metadata"]["namespace"] = "runai"
    template["spec"] = {"usage": "Template", "image": {"value": IMAGE}, "command": {"value": "sleep 1000"}}
    template["spec"]["gpu"] = {"value": 2}
    assert harness.kubectl("apply", "-f", "-", stdin=json.dumps(template)).returncode == 0
    until(lambda: [one["meta"]["name"] for one in templates(harness)] == ["base"], "the template", PATIENCE)
    assert templates(harness)[0]["meta"]["scopeType"] == "tenant"
    body = document(harness, "derived")
    body["spec"] = {"name": {"value": "derived"}, "baseWorkload": "base"}
    workload = apply(harness, body)
    until_status(harness, "derived", "Running")
    assert harness.server.workload(workload)["allocatedResources"]["gpu"] == 2
    # Changed with kubectl, it is another one for who comes later; removed, it is gone here too.
    template["spec"]["gpu"] = {"value": 3}
    assert harness.kubectl("apply", "-f", "-", stdin=json.dumps(template)).returncode == 0
    until(lambda: templates(harness)[0]["spec"]["compute"]["gpuDevicesRequest"] == 3, "the change", PATIENCE)
    assert harness.kubectl("delete", "twl", "base", "-n", "runai", "--timeout=60s").returncode == 0
    assert templates(harness) == []
    assert harness.kubectl("delete", "namespace", "runai", "--wait=false").returncode == 0


def test_a_workload_is_taken_when_its_template_comes(harness: ClusterHarness) -> None:
    template = document(harness, "frame")
    frame = {"image": {"value": IMAGE}, "command": {"value": "sleep 1000"}, "gpu": {"value": 1}}
    template["spec"] = {"usage": "Template", **frame}
    body = document(harness, "early")
    body["spec"] = {"name": {"value": "early"}, "baseWorkload": "frame"}
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [template, body]})
    apply(harness, body)
    told = until_status(harness, "early", "Failed")["status"]
    assert "there is no template 'frame'" in told["message"]
    assert [one["type"] for one in told["conditions"]] == ["Accepted", "TemplateNotUsable"]
    apply(harness, template)
    told = until_status(harness, "early", "Running")["status"]
    assert "TemplateNotUsable" not in [one["type"] for one in told["conditions"]]
    for _ in range(2):
        assert harness.kubectl("delete", "-f", "-", "--timeout=120s", stdin=both).returncode == 0
        assert harness.kubectl("apply", "-f", "-", stdin=both).returncode == 0
        until_status(harness, "early", "Running")
        until_status(harness, "frame", "Template")
    assert harness.kubectl("delete", "-f", "-", "--timeout=120s", stdin=both).returncode == 0


def templates(harness: ClusterHarness) -> list[dict[str, Any]]:
    answer = harness.server.call("GET", "/api/v1/workload-templates?limit=100")
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["entries"]
    return found


def test_definitions_that_are_installed_later_are_noticed(harness: ClusterHarness) -> None:
    # Objects that are left are let go of by the server.
    deleted = harness.kubectl("delete", "-f", str(CRDS), "--timeout=60s")
    assert deleted.returncode == 0, deleted.stderr + harness.drop_finalizers()
    harness.server.stop()
    harness.server.token = ""
    harness.server.start()
    assert harness.kubectl("apply", "-f", str(CRDS)).returncode == 0
    established = ("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    assert harness.kubectl(*established).returncode == 0
    apply(harness, document(harness, "late", gpu=0))
    until_status(harness, "late", "Running")
