"""Workloads applied with a real kubectl: they run, say how they are, follow `active`, and go without a trace."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.room import CLUSTER, IMAGE, PATIENCE, SECONDS, Room

pytestmark = pytest.mark.kubernetes


def document(room: Room, name: str, kind: str = "TrainingWorkload", **spec: Any) -> dict[str, Any]:
    fields = {"name": name, "image": IMAGE, "command": "sleep 1000", "gpu": 1, **spec}
    return {
        "apiVersion": "run.ai/v2alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": room.namespace},
        "spec": {field: value if isinstance(value, dict) else {"value": value} for field, value in fields.items()},
    }


def apply(room: Room, body: dict[str, Any]) -> str:
    """Apply it, and return the id that its workload has."""
    made = room.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr
    return str(read(room, body["metadata"]["name"])["metadata"]["uid"])


def read(room: Room, name: str, kind: str = "trainingworkloads") -> dict[str, Any]:
    found = room.kubectl("get", kind, name, "-n", room.namespace, "-o", "json")
    assert found.returncode == 0, found.stderr
    body: dict[str, Any] = json.loads(found.stdout)
    return body


def until_status(room: Room, name: str, phase: str) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: (body := read(room, name)).get("status", {}).get("phase") == phase and body,
        f"{phase} of {name}",
        PATIENCE,
    )
    return found


def test_applied_workloads_run_and_say_how_they_are(room: Room) -> None:
    workload = apply(room, document(room, "applied"))
    body = until_status(room, "applied", "Running")
    assert body["status"]["workloadId"] == workload
    assert room.server.phase(workload) == "Running"
    listed = room.kubectl("get", "trainingworkloads", "-n", room.namespace).stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATUS", "PROJECT", "GPU", "AGE", "MESSAGE"]
    assert listed[1].split()[:4] == ["applied", "Running", room.project, "1"]
    [job] = room.objects("jobs")
    assert job["metadata"]["ownerReferences"][0]["uid"] == workload


def test_active_works_both_ways(room: Room) -> None:
    workload = apply(room, document(room, "switched"))
    until_status(room, "switched", "Running")
    off = json.dumps({"spec": {"active": {"value": False}}})
    assert room.kubectl("patch", "twl", "switched", "-n", room.namespace, "--type=merge", "-p", off).returncode == 0
    until_status(room, "switched", "Stopped")
    assert room.names("jobs,pods") == []
    room.act("resume", workload)
    body = until_status(room, "switched", "Running")
    assert body["spec"]["active"] == {"value": True}
    room.act("suspend", workload)
    body = until_status(room, "switched", "Stopped")
    assert body["spec"]["active"] == {"value": False}


def test_the_last_word_stays_however_quickly_it_follows(room: Room) -> None:
    """No watch keeps up with this: what was written here is seen when it is old."""
    workload = apply(room, document(room, "wavering"))
    for verb in ("suspend", "resume") * 10 + ("suspend",):
        room.act(verb, workload)
    _until_both(room, "Stopped", is_active=False)
    on = json.dumps({"spec": {"active": {"value": True}}})
    assert room.kubectl("patch", "twl", "wavering", "-n", room.namespace, "--type=merge", "-p", on).returncode == 0
    _until_both(room, "Running", is_active=True)


def _until_both(room: Room, phase: str, *, is_active: bool) -> None:
    """Phases on the way may be the same: the object and what is wanted of it have to agree."""

    def agrees() -> bool:
        body = read(room, "wavering")
        is_seen = body["status"]["observedGeneration"] == body["metadata"]["generation"]
        return bool(is_seen and body["status"]["phase"] == phase and value_of(body, "active") is is_active)

    until(agrees, f"{phase} of wavering", PATIENCE)


def test_the_next_object_of_a_name_is_another_one(room: Room) -> None:
    """Somebody let the first go in our place: what is still to be done to it is not done to the next."""
    before = apply(room, document(room, "again"))
    until_status(room, "again", "Running")
    assert room.kubectl("delete", "twl", "again", "-n", room.namespace, "--wait=false").returncode == 0
    room.kubectl(
        "patch", "twl", "again", "-n", room.namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )
    after = apply(room, document(room, "again"))
    assert before != after
    body = until_status(room, "again", "Running")
    assert body["status"]["workloadId"] == after
    assert room.server.workload(before)["deletedAt"]


def test_an_edit_that_is_not_taken_is_told(room: Room) -> None:
    given = document(room, "edited")
    apply(room, given)
    until_status(room, "edited", "Running")

    def edit(image: str, want: str) -> None:
        change = json.dumps({"spec": {"image": {"value": image}}})
        done = room.kubectl("patch", "twl", "edited", "-n", room.namespace, "--type=merge", "-p", change)
        assert done.returncode == 0, done.stderr
        until(lambda: _has_said(read(room, "edited"), want), want or "no complaint", PATIENCE)

    edit("another", "Edit rejected: spec.image")
    edit(given["spec"]["image"]["value"], "")


def _has_said(body: dict[str, Any], want: str) -> bool:
    """Whether this is what is said of the object as it is now."""
    status, words = body["status"], body["status"]["message"]
    is_said = words.startswith(want) if want else "not taken" not in words
    return bool(is_said and status["observedGeneration"] == body["metadata"]["generation"])


def test_inactive_from_the_beginning(room: Room) -> None:
    apply(room, document(room, "later", active=False))
    until_status(room, "later", "Stopped")
    assert room.names("jobs") == []


def test_what_lies_in_a_namespace_of_another_fairlead_is_left_alone(room: Room) -> None:
    """Nothing is said of it, and it is not let go before that one has ended it."""
    theirs = f"{room.namespace}-theirs"
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": theirs, "labels": {CLUSTER: "another"}}}
    body = document(room, "theirs")
    body["metadata"] |= {"namespace": theirs, "finalizers": ["run.ai/fairlead"]}
    both = {"apiVersion": "v1", "kind": "List", "items": [place, body]}
    applied = room.kubectl("apply", "-f", "-", stdin=json.dumps(both))
    assert applied.returncode == 0, applied.stderr
    try:
        assert room.kubectl("delete", "twl", "theirs", "-n", theirs, "--wait=false").returncode == 0
        # What comes later is looked at later.
        apply(room, document(room, "ours"))
        until_status(room, "ours", "Running")
        found = json.loads(room.kubectl("get", "twl", "theirs", "-n", theirs, "-o", "json").stdout)
        assert found["metadata"]["finalizers"] == ["run.ai/fairlead"]
        assert "status" not in found
        # Handed over, it is ours to let go.
        ours = f"{CLUSTER}={room.server.credentials['clusterId']}"
        assert room.kubectl("label", "namespace", theirs, "--overwrite", ours).returncode == 0
        until(lambda: room.kubectl("get", "twl", "theirs", "-n", theirs).returncode != 0, "its end", PATIENCE)
    finally:
        room.kubectl("delete", "namespace", theirs, "--wait=false")


def test_kubectl_delete_returns_when_nothing_is_left(room: Room) -> None:
    workload = apply(room, document(room, "leaving"))
    until_status(room, "leaving", "Running")
    gone = room.kubectl("delete", "twl", "leaving", "-n", room.namespace, "--timeout=120s")
    assert gone.returncode == 0, gone.stderr
    assert room.names("jobs,pods,podgroups") == []
    assert room.server.workload(workload)["deletedAt"]


def test_deleting_over_rest_removes_the_object(room: Room) -> None:
    workload = apply(room, document(room, "removed"))
    until_status(room, "removed", "Running")
    room.act("delete", workload)
    until(lambda: room.objects("trainingworkloads") == [], "the object's end", PATIENCE)


def test_what_a_submission_refuses_is_refused_here_in_the_same_words(room: Room) -> None:
    room.train("taken-name")
    body = document(room, "wrong")
    body["spec"]["name"] = {"value": "taken-name"}
    apply(room, body)
    refused = until_status(room, "wrong", "Failed")
    assert refused["status"]["message"].endswith("has a workload named taken-name; choose another")
    assert room.names("jobs") == ["Job/taken-name"]
    assert room.kubectl("delete", "twl", "wrong", "-n", room.namespace, "--timeout=60s").returncode == 0


def test_objects_that_went_while_no_server_ran(room: Room) -> None:
    """The finalizer keeps the object until a server is back; then both go."""
    apply(room, document(room, "meanwhile"))
    until_status(room, "meanwhile", "Running")
    room.server.stop()
    room.kubectl("delete", "twl", "meanwhile", "-n", room.namespace, "--wait=false")
    assert read(room, "meanwhile")["metadata"]["deletionTimestamp"]
    room.server.token = ""
    room.server.start()
    until(lambda: room.objects("trainingworkloads") == [], "the object's end", PATIENCE)
    until(lambda: room.names("jobs,pods") == [], "an empty namespace", PATIENCE)


def test_an_end_is_written_back(room: Room) -> None:
    body = document(room, "short", command="sleep 1")
    body["spec"]["annotations"] = {"items": {SECONDS: {"value": "1"}}}
    apply(room, body)
    until_status(room, "short", "Completed")


def value_of(body: dict[str, Any], field: str) -> Any:
    return body["spec"].get(field, {}).get("value")


def test_the_system_fills_in_who_applied_it_and_where_it_is_reached(room: Room) -> None:
    workload = apply(room, document(room, "owned", exposedUrls={"items": {"web": {"value": {"container": 8888}}}}))
    until_status(room, "owned", "Running")
    [address] = until(lambda: room.server.workload(workload)["urls"], "its URL", PATIENCE)
    body = until(lambda: value_of(found := read(room, "owned"), "ingressUrl") == address and found, "it", PATIENCE)
    assert value_of(body, "userId") == "kubernetes"
    # These are the system's: what somebody else writes there does not stay.
    wrong = json.dumps({"spec": {"ingressUrl": {"value": "https://elsewhere"}}})
    room.kubectl("patch", "twl", "owned", "-n", room.namespace, "--type=merge", "-p", wrong)
    until(lambda: value_of(read(room, "owned"), "ingressUrl") == address, "its URL again", PATIENCE)
    assert room.server.phase(workload) == "Running"


def test_a_secret_of_the_namespace_is_found(room: Room) -> None:
    made = room.kubectl("create", "secret", "generic", "theirs", "-n", room.namespace, "--from-literal=token=s3cret")
    assert made.returncode == 0, made.stderr
    body = document(room, "reader", command="sh", gpu=0)
    del body["spec"]["gpu"]
    body["spec"] |= {
        "arguments": {"value": "-c 'echo found $TOKEN'"},
        "environment": {"items": {"TOKEN": {"value": "SECRET:theirs,token"}}},
        "nodeType": {"value": "real"},
    }
    room.kubectl("label", "node", "worker-1", "run.ai/type=real", "--overwrite")
    try:
        workload = apply(room, body)
        until_status(room, "reader", "Completed")
        assert b"found s3cret" in room.server.call("GET", f"/api/v1/workloads/{workload}/logs").body
    finally:
        room.kubectl("label", "node", "worker-1", "run.ai/type-")
        room.kubectl("delete", "secret", "theirs", "-n", room.namespace)


def test_plain_credentials_are_kept_as_a_secret_and_go_with_the_object(room: Room) -> None:
    repository = {"repository": "https://git.example/x", "directory": "/x", "username": "me", "password": "hidden-word"}
    body = document(room, "cloning", gitSync={"items": {"code": {"value": repository}}})
    workload = apply(room, body)
    until_status(room, "cloning", "Running")
    assert "Secret/cloning-secret-cloning-code" in room.names("secrets")
    assert "hidden-word" not in json.dumps(room.server.workload(workload))
    kept = room.server.call("GET", "/api/v1/secrets?search=cloning-code&limit=100").json["items"]
    assert [one["name"] for one in kept] == ["cloning-code"]
    assert room.kubectl("delete", "twl", "cloning", "-n", room.namespace, "--timeout=120s").returncode == 0
    assert room.server.call("GET", "/api/v1/secrets?search=cloning-code&limit=100").json["items"] == []
    assert "Secret/cloning-secret-cloning-code" not in room.names("secrets")


def test_a_template_in_the_namespace_runai_is_everybodys(room: Room) -> None:
    room.kubectl("create", "namespace", "runai")
    template = document(room, "base")
    template["metadata"]["namespace"] = "runai"
    template["spec"] = {"usage": "Template", "image": {"value": IMAGE}, "command": {"value": "sleep 1000"}}
    template["spec"]["gpu"] = {"value": 2}
    assert room.kubectl("apply", "-f", "-", stdin=json.dumps(template)).returncode == 0
    until(lambda: [one["meta"]["name"] for one in templates(room)] == ["base"], "the template", PATIENCE)
    assert templates(room)[0]["meta"]["scopeType"] == "tenant"
    body = document(room, "derived")
    body["spec"] = {"name": {"value": "derived"}, "baseWorkload": "base"}
    workload = apply(room, body)
    until_status(room, "derived", "Running")
    assert room.server.workload(workload)["allocatedResources"]["gpu"] == 2
    # Changed with kubectl, it is another one for who comes later; removed, it is gone here too.
    template["spec"]["gpu"] = {"value": 3}
    assert room.kubectl("apply", "-f", "-", stdin=json.dumps(template)).returncode == 0
    until(lambda: templates(room)[0]["spec"]["compute"]["gpuDevicesRequest"] == 3, "the change", PATIENCE)
    assert room.kubectl("delete", "twl", "base", "-n", "runai", "--timeout=60s").returncode == 0
    assert templates(room) == []
    assert room.kubectl("delete", "namespace", "runai", "--wait=false").returncode == 0


def test_a_workload_is_taken_when_its_template_comes(room: Room) -> None:
    template = document(room, "frame")
    frame = {"image": {"value": IMAGE}, "command": {"value": "sleep 1000"}, "gpu": {"value": 1}}
    template["spec"] = {"usage": "Template", **frame}
    body = document(room, "early")
    body["spec"] = {"name": {"value": "early"}, "baseWorkload": "frame"}
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [template, body]})
    apply(room, body)
    told = until_status(room, "early", "Failed")["status"]
    assert "there is no template 'frame'" in told["message"]
    assert [one["type"] for one in told["conditions"]] == ["TemplateNotUsable"]
    apply(room, template)
    told = until_status(room, "early", "Running")["status"]
    assert "TemplateNotUsable" not in [one["type"] for one in told["conditions"]]
    for _ in range(2):
        assert room.kubectl("delete", "-f", "-", "--timeout=120s", stdin=both).returncode == 0
        assert room.kubectl("apply", "-f", "-", stdin=both).returncode == 0
        until_status(room, "early", "Running")
        until_status(room, "frame", "Template")
    assert room.kubectl("delete", "-f", "-", "--timeout=120s", stdin=both).returncode == 0


def templates(room: Room) -> list[dict[str, Any]]:
    answer = room.server.call("GET", "/api/v1/workload-templates?limit=100")
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["entries"]
    return found


def test_definitions_that_are_installed_later_are_noticed(room: Room) -> None:
    # Objects that are left are let go of by the server.
    assert room.kubectl("delete", "-f", str(CRDS), "--timeout=60s").returncode == 0
    room.server.stop()
    room.server.token = ""
    room.server.start()
    assert room.kubectl("apply", "-f", str(CRDS)).returncode == 0
    established = ("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    assert room.kubectl(*established).returncode == 0
    apply(room, document(room, "late", gpu=0))
    until_status(room, "late", "Running")
