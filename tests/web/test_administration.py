"""An administrator's views: people and their roles, projects, nodes, policies with their effect, reports."""

import csv
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

POLICY = """{"meta": {"name": "small", "scope": "tenant"},
 "policy": {"rules": {"compute": {"gpuDevicesRequest": {"%s": 3}}}}}"""
CHANGED = """{"meta": {"name": "small", "scope": "tenant"}, "policy": {"defaults": {"backoffLimit": 4},
 "rules": {"compute": {"gpuDevicesRequest": {"max": 2}}}}}"""


def row(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def test_a_person_is_added_and_gets_a_role(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/people")
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog", name="Add a person")
    dialog.get_by_label("E-mail address").fill("ann@lab.example")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(
        page.get_by_role("status").filter(has_text="The password of ann@lab.example, shown only now")
    ).to_be_visible()
    expect(row(page, "ann@lab.example")).to_contain_text("sees nothing")

    page.get_by_role("button", name="Grant a role").click()
    dialog = page.get_by_role("dialog", name="Grant a role")
    dialog.get_by_label("Name").fill("ann@lab.example")
    dialog.get_by_label("Role").select_option("L1 researcher")
    dialog.get_by_label("Where").select_option("Project default")
    dialog.get_by_role("button", name="Grant", exact=True).click()
    expect(row(page, "ann@lab.example")).to_contain_text("L1 researcher of project default")
    rules = server.call("GET", "/api/v1/authorization/access-rules").json["accessRules"]
    assert [(one["roleName"], one["scopeName"]) for one in rules if one["subjectId"] == "ann@lab.example"] == [
        ("L1 researcher", "default")
    ]

    page.get_by_role("button", name="Take away from ann@lab.example: L1 researcher of project default").click()
    expect(row(page, "ann@lab.example")).to_contain_text("sees nothing")
    page.get_by_role("button", name="Disable ann@lab.example").click()
    expect(page.get_by_role("button", name="Enable ann@lab.example")).to_be_visible()
    users = {user["username"]: user for user in server.call("GET", "/api/v1/users").json}
    assert users["ann@lab.example"]["enabled"] is False
    server.call("DELETE", f"/api/v1/users/{users['ann@lab.example']['id']}")


def test_a_policy_is_checked_saved_and_deleted(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/policies")
    page.get_by_role("button", name="Write a policy").click()
    dialog = page.get_by_role("dialog", name="Write a policy")
    dialog.get_by_label("Policy as JSON").fill(POLICY % "maximum")
    dialog.get_by_role("button", name="Check").click()
    # Refused as the server words it, with the path of the rule.
    expect(dialog.get_by_role("alert")).to_contain_text("maximum")
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    dialog.get_by_label("Policy as JSON").fill(POLICY % "max")
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.get_by_role("status")).to_have_text("The policy is valid.")
    dialog.get_by_role("button", name="Save").click()
    rules = page.get_by_role("region", name="Rules")
    limit = row(rules, "compute.gpuDevicesRequest")
    expect(limit).to_contain_text("max 3the whole installation")

    page.get_by_role("button", name="Change small for training").click()
    dialog = page.get_by_role("dialog", name="Change the policy small")
    text = dialog.get_by_label("Policy as JSON")
    expect(text).to_have_value(re.compile('"max": 3'))
    text.fill(CHANGED)
    dialog.get_by_role("button", name="Check").click()
    dialog.get_by_role("button", name="Save").click()
    expect(limit).to_contain_text("max 2the whole installation")
    expect(row(page.get_by_role("region", name="Defaults"), "backoffLimit")).to_contain_text("4the whole installation")
    undo = page.get_by_role("status", name="What was done").get_by_role("button", name="Undo")
    undo.click()
    expect(limit).to_contain_text("max 3")
    expect(undo).to_have_count(0)

    delete = page.get_by_role("button", name="Delete small for training")
    delete.click()
    expect(limit).to_have_count(0)
    undo.click()
    expect(limit).to_contain_text("max 3")
    delete.click()
    expect(limit).to_have_count(0)
    assert server.call("GET", "/api/v2/policy").json["policies"] == []
    # The browser's own line about the refusal.
    assert [error for error in visit.errors if "400 (Bad Request)" not in error] == []
    visit.errors.clear()


def test_a_quota_can_be_without_a_bound(visit: Visit, server: Server) -> None:
    department = server.call("GET", "/api/v1/org-unit/departments").json["departments"][0]
    owner = server.call(
        "POST",
        "/api/v1/org-unit/projects",
        {
            "name": "bounded",
            "parentId": department["id"],
            "clusterId": department["clusterId"],
            "resources": [{"nodePool": {"id": "1", "name": "default"}, "gpu": {"deserved": 1}}],
        },
    ).json
    page = visit.open("/ui/organization")
    expect(page.get_by_text("0 GPUs used of a quota of 1")).to_be_visible()
    for before, after, said in (("1", "", "quota unlimited"), ("", "2", "of a quota of 2")):
        page.get_by_role("button", name="Change quota of bounded").click()
        dialog = page.get_by_role("dialog")
        quota = dialog.get_by_role("spinbutton", name="default")
        expect(quota).to_have_value(before)
        quota.fill(after)
        dialog.get_by_role("button", name="Preview").click()
        dialog.get_by_role("button", name="Save").click()
        expect(page.get_by_role("img", name=re.compile(f"^bounded: .*{said}"))).to_be_visible()
    server.call("DELETE", f"/api/v1/org-unit/projects/{owner['id']}")


def test_an_application_has_no_password_and_no_access_keys(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/settings")
    expect(page.get_by_role("region", name="Account")).to_contain_text("It is an application")
    for panel in ("Access keys", "Password"):
        expect(page.get_by_role("region", name=panel)).to_have_count(0)


def test_a_report_is_downloaded_as_it_is_shown(visit: Visit, server: Server) -> None:
    id = server.run("counted", "true", compute={"gpuDevicesRequest": 1})
    server.until_phase(id, "Completed")
    page = visit.open("/ui/reports")
    expect(row(page, "default")).to_be_visible()
    page.get_by_label("By", exact=True).select_option("By workload")
    expect(page).to_have_url(re.compile("by=workload"))
    expect(row(page, "counted")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert download.value.suggested_filename == "usage-by-workload.csv"
    with open(download.value.path(), newline="") as file:
        rows = {one["workload"]: one for one in csv.DictReader(file)}
    assert float(rows["counted"]["gpuHoursUsed"]) > 0
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_project_is_created_with_its_quota(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/organization")
    page.get_by_role("button", name="New project in default").click()
    dialog = page.get_by_role("dialog", name="New project in default")
    dialog.get_by_label("Name").fill("vision")
    dialog.get_by_label("Quota in default").fill("1")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_text("0 GPUs used of a quota of 1")).to_be_visible()
    projects = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    vision = next(project for project in projects if project["name"] == "vision")
    assert [pool["gpu"]["deserved"] for pool in vision["resources"]] == [1]
    server.call("DELETE", f"/api/v1/org-unit/projects/{vision['id']}")


def test_a_department_is_created_and_its_quota_changed(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/organization")
    page.get_by_role("button", name="New department").click()
    dialog = page.get_by_role("dialog", name="New department")
    dialog.get_by_label("Name").fill("perception")
    dialog.get_by_label("Quota in default").fill("2")
    dialog.get_by_role("button", name="Create").click()
    section = page.get_by_role("region", name="Department perception")
    expect(section).to_contain_text("of a quota of 2")
    section.get_by_role("button", name="Change quota of perception").click()
    dialog = page.get_by_role("dialog", name="GPU quota of perception")
    dialog.get_by_role("spinbutton").fill("3")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("waiting now")
    dialog.get_by_role("button", name="Save").click()
    expect(section).to_contain_text("of a quota of 3")
    page.get_by_role("status", name="What was done").get_by_role("button", name="Undo").click()
    expect(section).to_contain_text("of a quota of 2")
    departments = server.call("GET", "/api/v1/org-unit/departments").json["departments"]
    [made] = [one for one in departments if one["name"] == "perception"]
    server.call("DELETE", f"/api/v1/org-unit/departments/{made['id']}")


def test_an_asset_is_created_changed_and_deleted(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/library")
    page.get_by_role("button", name="New compute asset").click()
    dialog = page.get_by_role("dialog", name="New compute asset")
    dialog.get_by_label("Name", exact=True).fill("half-a-gpu")
    dialog.get_by_label("Where it can be used").select_option(label="Project default")
    dialog.get_by_label("GPU devices request").fill("-3")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    visit.errors.clear()  # the browser reports the refusal
    dialog.get_by_label("GPU devices request").fill("1")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row", name=re.compile("half-a-gpu"))
    expect(row).to_contain_text("project default")

    row.get_by_role("button", name="Change half-a-gpu").click()
    dialog = page.get_by_role("dialog", name="Change half-a-gpu")
    expect(dialog.get_by_label("GPU devices request")).to_have_value("1")
    dialog.get_by_label("GPU devices request").fill("2")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    [asset] = server.call("GET", "/api/v1/asset/compute").json["entries"]
    assert asset["spec"]["gpuDevicesRequest"] == 2

    row.get_by_role("button", name="Delete half-a-gpu").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete half-a-gpu").click()
    expect(row).to_have_count(0)
    assert server.call("GET", "/api/v1/asset/compute").json["entries"] == []


def test_a_credential_is_created_and_deleted(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/library")
    page.get_by_role("button", name="New credential").click()
    dialog = page.get_by_role("dialog", name="New credential")
    dialog.get_by_label("Kind").select_option(label="docker registry credential")
    dialog.get_by_label("Name", exact=True).fill("registry")
    dialog.get_by_label("Where it can be used").select_option(label="Project default")
    for label, value in (("Url", "registry.example"), ("User", "ada"), ("Password", "s3cret")):
        dialog.get_by_label(re.compile(f"^{label}", re.IGNORECASE)).fill(value)
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row", name=re.compile("registry"))
    expect(row).to_be_visible()
    expect(row).not_to_contain_text("s3cret")
    row.get_by_role("button", name="Delete registry").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete registry").click()
    expect(row).to_have_count(0)
    assert server.call("GET", "/api/v1/asset/credentials").json["entries"] == []


def test_a_custom_role_is_created_changed_and_deleted(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/people")
    page.get_by_role("button", name="New role").click()
    dialog = page.get_by_role("dialog", name="New role")
    dialog.get_by_label("Name", exact=True).fill("Auditor")
    dialog.get_by_label("Description").fill("Reads the audit log.")
    dialog.get_by_label("Search permission sets").fill("audit")
    dialog.get_by_role("checkbox").first.check()
    dialog.get_by_role("button", name="Save").click()
    role = page.locator("details", has_text="Auditor (custom)")
    role.locator("summary").click()
    expect(role).to_contain_text("Reads the audit log.")
    role.get_by_role("button", name="Change the role Auditor").click()
    dialog = page.get_by_role("dialog", name="Change the role Auditor")
    dialog.get_by_label("Description").fill("Reads who did what.")
    dialog.get_by_role("button", name="Save").click()
    expect(role).to_contain_text("Reads who did what.")
    role.get_by_role("button", name="Delete the role Auditor").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the role").click()
    expect(role).to_have_count(0)
    assert not [one for one in server.call("GET", "/api/v2/authorization/roles").json if one["custom"]]
