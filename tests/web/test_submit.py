"""Submitting in a real browser: every kind by its form, a file, a copy, what the server refuses, what a policy says."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fairlead.kinds import KINDS
from tests.e2e.browser import Visit
from tests.e2e.server import Server
from tests.web.conftest import sign_in

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

IMAGE = "fairlead.local/host"
#: What the form of each kind needs beside its name, by label; the role whose fields they are.
NEEDS: dict[str, tuple[str, dict[str, str]]] = {
    "trainings": ("", {}),
    "workspaces": ("", {}),
    "distributed": ("", {"Number of workers": "1"}),
    "inferences": ("", {"Container": "8080"}),
    "distributed-inferences": ("Leader", {"Port": "8080"}),
}


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """A tab. The plan of an unfinished form is refused, and the browser writes that on its console; nothing else."""
    visit = Visit(browser, server.url)
    sign_in(visit, server)
    yield visit
    visit.close()
    assert visit.foreign == []
    assert [error for error in visit.errors if "status of 400" not in error] == []


def field(place: Page | Locator, label: str) -> Locator:
    """A field by its label, whether it is required or not."""
    return place.get_by_label(re.compile(rf"^{re.escape(label)}( required)?$")).first


def open_form(visit: Visit, rest: str = "trainings") -> Page:
    page = visit.open(f"/ui/submit?kind={rest}")
    expect(field(page, "Name")).to_be_visible()
    return page


def submitted(page: Page, server: Server) -> dict[str, object]:
    """Submit, and what the server then has."""
    page.get_by_role("button", name=re.compile("^Submit ")).click()
    expect(page).to_have_url(re.compile(r"/ui/workloads/[0-9a-f-]{36}$"))
    id = page.url.rpartition("/")[2]
    return server.call("GET", f"/api/v1/workloads/{id}").json


@pytest.mark.parametrize("rest", [kind.rest for kind in KINDS.values()])
def test_each_kind_is_submitted_by_its_form(visit: Visit, server: Server, rest: str) -> None:
    page = open_form(visit, rest)
    field(page, "Name").fill(f"form-{rest}")
    role, needs = NEEDS[rest]
    for label, value in {"Image": IMAGE, "Command": "sleep infinity", **needs}.items():
        field(page, label).fill(value)
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("Starts now")
    # Not every kind has workload YAML, but every kind has a command.
    page.get_by_role("button", name="Command", exact=True).click()
    expect(page.get_by_role("region", name="The form as text")).to_contain_text(f"submit form-{rest}")
    made = submitted(page, server)
    assert made["name"] == f"form-{rest}"
    stored = server.call("GET", f"/api/v1/workloads/{rest}/{made['id']}").json["spec"]
    assert (stored["leader"] if role else stored)["command"] == "sleep infinity"
    server.call("DELETE", f"/api/v1/workloads/{rest}/{made['id']}")


def test_the_server_says_at_the_field_what_is_wrong(visit: Visit, server: Server) -> None:
    page = open_form(visit)
    field(page, "Name").fill("refused")
    field(page, "Image").fill(IMAGE)
    field(page, "GPU devices request").fill("-3")
    field(page, "CPU memory request").fill("lots")
    page.get_by_role("button", name="Submit training").click()
    expect(page.get_by_text("is -3; it must be at least 0").first).to_be_visible()
    wrong = page.locator("[aria-invalid]")
    expect(wrong).to_have_count(2)
    # Beside the button in one list, and not once more in the plan and the text.
    refusal = page.get_by_role("alert")
    expect(refusal).to_have_count(1)
    expect(refusal).to_contain_text("2 values cannot be accepted:")
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("Change what was refused")
    expect(page.get_by_text("It is written once all values can be accepted")).to_be_visible()
    # The first of them has the focus, and the words go when both are mended.
    expect(field(page, "CPU memory request")).to_be_focused()
    field(page, "CPU memory request").fill("1Gi")
    field(page, "GPU devices request").fill("")
    expect(wrong).to_have_count(0)
    page.get_by_role("button", name="Add to Environment variables").click()
    page.get_by_role("button", name="Submit training").click()
    variable = page.get_by_role("group", name="Environment variables 1")
    expect(variable).to_contain_text("is missing; it must be given")
    variable.get_by_role("button", name="Remove Environment variables 1").click()
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("Starts now")


def test_the_plan_names_who_would_wait(visit: Visit, server: Server) -> None:
    page = open_form(visit)
    field(page, "Name").fill("too-large")
    field(page, "Image").fill(IMAGE)
    field(page, "GPU devices request").fill("9")
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("Can never start")
    page.get_by_role("button", name="Command", exact=True).click()
    expect(page.get_by_role("region", name="The form as text")).to_contain_text("--gpu-devices-request=9")
    page.get_by_role("button", name="Python", exact=True).click()
    expect(page.get_by_role("region", name="The form as text")).to_contain_text("gpu_devices_request=9")


def test_the_plan_is_beside_the_form_in_a_narrow_window_too(visit: Visit, server: Server) -> None:
    visit.page.set_viewport_size({"width": 1024, "height": 768})
    page = open_form(visit)
    name, plan = field(page, "Name").bounding_box(), page.get_by_role("region", name="What would happen").bounding_box()
    assert name
    assert plan
    assert plan["x"] > name["x"] + name["width"]
    assert plan["y"] < 768


def test_a_kind_without_workload_yaml_begins_with_its_command(visit: Visit, server: Server) -> None:
    page = open_form(visit, "distributed-inferences")
    expect(page.get_by_role("group", name="Dialect").get_by_role("button")).to_have_text(
        ["Command", "Python", "REST", "Kubernetes objects", "Copy"]
    )
    expect(page.get_by_role("region", name="The form as text")).to_contain_text("fairlead inference distributed submit")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_dropped_file_fills_the_form(visit: Visit, server: Server) -> None:
    page = open_form(visit)
    manifest = {
        "apiVersion": "run.ai/v2alpha1",
        "kind": "InteractiveWorkload",
        "metadata": {"name": "from-a-file", "namespace": "runai-default"},
        "spec": {"name": {"value": "from-a-file"}, "image": {"value": IMAGE}, "command": {"value": "sleep 7"}},
    }
    drop = """text => {
        const data = new DataTransfer();
        data.items.add(new File([text], "workload.yaml"));
        window.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
    }"""
    page.evaluate(drop, json.dumps(manifest))
    expect(page).to_have_url(re.compile("kind=workspaces"))
    expect(field(page, "Name")).to_have_value("from-a-file")
    expect(field(page, "Command")).to_have_value("sleep 7")
    page.evaluate(drop, "this is: [not a workload")
    expect(page.get_by_role("alert")).to_contain_text("is not valid YAML")


def test_a_copy_starts_from_a_workload(visit: Visit, server: Server) -> None:
    id = server.run("original", "true")
    page = visit.open(f"/ui/workloads/{id}")
    page.get_by_role("link", name="Clone").click()
    expect(field(page, "Name")).to_have_value("original-2")
    expect(field(page, "Command")).to_have_value("true")
    made = submitted(page, server)
    assert made["name"] == "original-2"
    for one in (id, made["id"]):
        server.call("DELETE", f"/api/v1/workloads/trainings/{one}")


def test_a_template_sets_what_the_form_leaves_empty(visit: Visit, server: Server) -> None:
    body = {"meta": {"name": "short", "scopeType": "tenant"}, "spec": {"image": IMAGE, "command": "sleep 5"}}
    stored = server.call("POST", "/api/v1/workload-templates/trainings", body)
    assert stored.status < 300, stored
    page = open_form(visit)
    field(page, "Name").fill("by-template")
    page.get_by_label("Template").select_option("short")
    made = submitted(page, server)
    spec = server.call("GET", f"/api/v1/workloads/trainings/{made['id']}").json["spec"]
    assert spec["command"] == "sleep 5"
    server.call("DELETE", f"/api/v1/workloads/trainings/{made['id']}")


def test_assets_fill_the_form(visit: Visit, server: Server) -> None:
    scope = {"scope": "project", "projectId": 1}
    made = {
        "environment": {"image": IMAGE, "command": "sh -c env", "environmentVariables": [{"name": "A", "value": "1"}]},
        "compute": {"gpuDevicesRequest": 2},
        "datasource/nfs": {"server": "files.lab.example", "path": "/export", "mountPath": "/data"},
    }
    for kind, spec in made.items():
        body = {"meta": {"name": kind.rpartition("/")[2], **scope}, "spec": spec}
        assert server.call("POST", f"/api/v1/asset/{kind}", body).status < 300, kind
    page = visit.open("/ui/submit?kind=trainings")
    page.get_by_label("Environment", exact=True).select_option("environment")
    expect(field(page, "Image")).to_have_value(IMAGE)
    page.get_by_label("Compute resource").select_option("compute")
    expect(field(page, "GPU devices request")).to_have_value("2")
    page.get_by_label("Data source").select_option("nfs")
    expect(page.get_by_role("region", name="The form as text")).to_contain_text("files.lab.example")
    # The main role of a kind with roles takes them.
    page.get_by_role("button", name="Distributed inference", exact=True).click()
    page.get_by_label("Environment", exact=True).select_option("environment")
    expect(field(page.get_by_role("group", name="Leader"), "Image")).to_have_value(IMAGE)
    for kind in made:
        for asset in server.call("GET", f"/api/v1/asset/{kind}").json["entries"]:
            server.call("DELETE", f"/api/v1/asset/{kind}/{asset['meta']['id']}")


def test_a_form_is_kept_as_a_template(visit: Visit, server: Server) -> None:
    page = open_form(visit)
    field(page, "Image").fill(IMAGE)
    field(page, "Command").fill("sleep 6")
    page.get_by_role("button", name="Save as a template").click()
    dialog = page.get_by_role("dialog", name="Save as a template")
    dialog.get_by_label("Name of the template").fill("kept")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status", name="What was done")).to_contain_text("The template kept can be used in default")
    stored = server.call("GET", "/api/v1/workload-templates/trainings").json["entries"]
    [made] = [one for one in stored if one["meta"]["name"] == "kept"]
    assert made["spec"]["command"] == "sleep 6"
    server.call("DELETE", f"/api/v1/workload-templates/{made['meta']['id']}")


def test_a_policy_locks_and_limits_fields(visit: Visit, server: Server) -> None:
    department = server.call("GET", "/api/v1/org-unit/departments").json["departments"][0]
    body = {
        "meta": {"name": "small", "scope": "department", "departmentId": department["id"]},
        "policy": {
            "defaults": {"backoffLimit": 2},
            "rules": {"compute": {"gpuDevicesRequest": {"max": 2}}, "backoffLimit": {"canEdit": False}},
        },
    }
    stored = server.call("PUT", "/api/v2/policy/workspaces", body)
    assert stored.status < 300, stored
    page = open_form(visit, "workspaces")
    origin = f"(policy of department {department['name']})"
    expect(page.get_by_text(f"At most 2 {origin}.")).to_be_visible()
    page.get_by_label("Find a field").fill("backoff")
    expect(field(page, "Backoff limit")).to_be_disabled()
    expect(page.get_by_text(f"Always 2 {origin}.")).to_be_visible()
    page.get_by_label("Find a field").fill("")
    field(page, "Name").fill("too-many")
    field(page, "Image").fill(IMAGE)
    field(page, "GPU devices request").fill("3")
    page.get_by_role("button", name="Submit workspace").click()
    expect(page.locator("[data-wrong]")).to_contain_text("no greater than 2")
    server.call("DELETE", f"/api/v2/policy/workspaces?scope=department&departmentId={department['id']}")
