"""One workload in a real browser: a terminal, charts, its groups, changes while it runs, suspending and resuming."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server, until
from tests.web.scene import own_home

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

IMAGE = "fairlead.local/host"
LEADER = {"image": IMAGE, "command": "sleep infinity"}


def submit(server: Server, rest: str, name: str, spec: dict[str, Any]) -> str:
    project = server.call("GET", "/api/v1/org-unit/projects").json["projects"][0]
    body = {"name": name, "projectId": project["id"], "clusterId": project["clusterId"], "spec": spec}
    created = server.call("POST", f"/api/v1/workloads/{rest}", body)
    assert created.status == 202, created
    return str(created.json["workloadId"])


def test_a_terminal_runs_commands_in_the_pod(visit: Visit, server: Server, tmp_path: Path) -> None:
    id = server.run("shell", "sleep", "infinity", **own_home(tmp_path))
    server.until_phase(id, "Running")
    page = visit.open(f"/ui/workloads/{id}/terminal")
    screen = page.locator(".xterm-screen")
    expect(screen).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    page.keyboard.type("printf '\\033[38;2;1;2;3mcolour\\033[0m'; echo $((6 * 7))\n")
    expect(page.locator(".xterm-rows")).to_contain_text("colour42")
    # What the terminal draws has its styles, although the page allows no inline ones.
    assert page.locator(".xterm-rows").evaluate("element => getComputedStyle(element).fontFamily").find("mono") >= 0
    page.keyboard.type("exit 3\n")
    expect(page.get_by_text("The shell has ended with exit code 3")).to_be_visible()
    page.get_by_role("button", name="Open again").click()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_the_log_of_a_workload_that_waits_begins_when_it_runs(visit: Visit, server: Server) -> None:
    holder = server.run("holds-all", "sleep", "infinity", compute={"gpuDevicesRequest": 4})
    server.until_phase(holder, "Running")
    id = server.run("speaks", "sh", "-c 'echo first run; exec sleep infinity'", compute={"gpuDevicesRequest": 4})
    page = visit.open(f"/ui/workloads/{id}/logs")
    expect(page.locator("main")).to_contain_text("The log appears here as soon as there is one")
    expect(page.get_by_role("alert")).to_have_count(0)
    server.call("DELETE", f"/api/v1/workloads/trainings/{holder}")
    log = page.get_by_role("log", name="Output")
    expect(log).to_contain_text("first run")
    # After a pause it is another run, whose log follows by itself.
    server.call("POST", f"/api/v1/workloads/trainings/{id}/suspend")
    expect(page.get_by_text("1 line, ended")).to_be_visible()
    server.call("POST", f"/api/v1/workloads/trainings/{id}/resume")
    expect(page.get_by_text("1 line, ended")).to_have_count(0)
    expect(log).to_contain_text("first run")
    visit.errors.clear()  # the browser reports that there was no log yet
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_the_log_of_the_previous_attempt_is_shown(visit: Visit, server: Server, tmp_path: Path) -> None:
    script = f"if mkdir {tmp_path}/tried; then echo first attempt; exit 1; fi; echo second attempt"
    id = server.run("tried-twice", "sh", f"-c '{script}'", backoffLimit=1)
    server.until_phase(id, "Completed")
    page = visit.open(f"/ui/workloads/{id}/logs")
    log = page.get_by_role("log", name="Output")
    expect(log).to_contain_text("second attempt")
    page.get_by_label("Previous attempt").check()
    expect(log).to_contain_text("first attempt")
    expect(log).not_to_contain_text("second attempt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text() == "first attempt\n"
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_metrics_are_drawn(visit: Visit, server: Server) -> None:
    id = server.run("measured", "sh", "-c 'while :; do :; done'", compute={"gpuDevicesRequest": 1})
    server.until_phase(id, "Running")
    page = visit.open(f"/ui/workloads/{id}/metrics?span=15")
    expect(page.get_by_role("img", name=re.compile("^GPUs over time"))).to_be_visible()
    assert page.locator("canvas").count() > 0
    page.get_by_role("button", name="7 days").click()
    expect(page).to_have_url(re.compile("span=10080"))
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_the_replicas_of_groups_are_changed(visit: Visit, server: Server) -> None:
    spec = {"leader": LEADER, "worker": LEADER, "workers": 1, "replicas": 1}
    id = submit(server, "distributed-inferences", "groups", spec)
    page = visit.open(f"/ui/workloads/{id}")
    pods = page.get_by_role("region", name="Pods")
    expect(pods).to_contain_text("Group 0")
    expect(pods).to_contain_text("worker 1")
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog")
    replicas = dialog.get_by_label("Replicas")
    expect(replicas).to_have_value("1")
    replicas.fill("-2")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog.get_by_text(re.compile("must be at least|must be between")).first).to_be_visible()
    replicas.fill("2")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    expect(pods).to_contain_text("Group 1")
    stored = server.call("GET", f"/api/v1/workloads/distributed-inferences/{id}").json
    assert stored["spec"]["replicas"] == 2
    visit.errors[:] = [error for error in visit.errors if "status of 400" not in error]
    server.call("DELETE", f"/api/v1/workloads/distributed-inferences/{id}")


def test_a_service_shows_its_revisions(visit: Visit, server: Server) -> None:
    spec = {"image": IMAGE, "command": "python3 -m http.server 8080", "servingPort": {"container": 8080}}
    id = submit(server, "inferences", "service", spec)
    page = visit.open(f"/ui/workloads/{id}")
    revisions = page.get_by_role("region", name="Revisions and replicas")
    expect(revisions.get_by_role("listitem")).to_have_count(1)
    expect(revisions).to_contain_text("1 replica of 1 · all requests go to it")
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Command").fill("python3 -m http.server 8080 --bind 127.0.0.1")
    dialog.get_by_role("button", name="Change").click()
    expect(revisions.get_by_role("listitem")).to_have_count(2)
    server.call("DELETE", f"/api/v1/workloads/inferences/{id}")


def test_a_workload_is_suspended_and_resumed(visit: Visit, server: Server) -> None:
    id = server.run("pausing", "sleep", "infinity")
    server.until_phase(id, "Running")
    page = visit.open(f"/ui/workloads/{id}")
    for verb, phase in (("Suspend", "Stopped"), ("Resume", "Running")):
        page.get_by_role("button", name=verb, exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=f"{verb} 1 workload").click()
        expect(phase_of(page)).to_contain_text(phase)
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")
    until(lambda: server.call("GET", f"/api/v1/workloads/{id}").json.get("deletedAt"), "the deletion")
    expect(page.locator("main header")).to_contain_text("Deleted")


def phase_of(page: Page):
    return page.locator("main header")
