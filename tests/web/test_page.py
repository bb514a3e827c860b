"""The page in a real browser: signing in, the list, one workload, what a change would do, a server that goes away."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server
from tests.web.conftest import NODES, sign_in

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

GPUS = {"compute": {"gpuDevicesRequest": 4}}
#: Longer than expect's own five seconds: browser, server and pods share the machine's cores.
PATIENCE = 60_000
#: Presses a button if it is there.
PRESS = "name => [...document.querySelectorAll('button')].find(one => one.textContent === name)?.click()"


def row(page: Page, name: str):
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def test_a_link_signs_in_and_a_password_too(browser: Browser, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.open("/ui/workloads")
    expect(page.get_by_role("heading", name="Sign in to Fairlead")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("User name").fill(server.credentials["username"])
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("No enabled account", timeout=PATIENCE)
    page.get_by_label("Password").fill(server.credentials["password"])
    page.get_by_role("button", name="Sign in").click()
    # The address is kept: the list, not the overview.
    expect(page.get_by_role("heading", name="Workloads", exact=True)).to_be_visible(timeout=PATIENCE)
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("JSON.stringify(localStorage)") in ("{}", '{"theme":"system"}')
    visit.close()


def test_an_used_link_says_what_to_do(browser: Browser, server: Server) -> None:
    visit = Visit(browser, server.url)
    link = server.call("POST", "/api/v1/session/links").json["path"]
    server.call("GET", link)
    page = visit.open(link)
    expect(page.get_by_text("already used or has expired")).to_be_visible(timeout=PATIENCE)
    visit.close()


def test_the_list_is_live_and_its_filters_are_in_the_address(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/workloads")
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=PATIENCE)
    id = server.run("live-list", "true")
    expect(row(page, "live-list")).to_contain_text("Completed", timeout=PATIENCE)
    page.keyboard.press("/")
    page.keyboard.type("live-list")
    expect(page).to_have_url(re.compile(r"[?&]q=live-list"))
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("live-list")
    expect(row(page, "live-list")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("link", name="live-list", exact=True).click()
    expect(page).to_have_url(re.compile(f"/ui/workloads/{id}$"))
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("live-list")
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")
    expect(row(page, "live-list")).to_have_count(0, timeout=PATIENCE)


def test_two_tabs_share_one_stream(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/workloads")
    other = page.context.new_page()
    other.goto(f"{server.url}/ui/workloads")
    id = server.run("both-tabs", "true")
    for tab in (page, other):
        expect(row(tab, "both-tabs")).to_be_visible(timeout=PATIENCE)
    other.close()
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")
    expect(row(page, "both-tabs")).to_have_count(0, timeout=PATIENCE)


def test_suspending_says_first_who_would_start(visit: Visit, server: Server) -> None:
    holder = server.run("holder", "sleep", "infinity", **GPUS)
    server.until_phase(holder, "Running")
    waiter = server.run("waiter", "sleep", "infinity", **GPUS)
    page = visit.open(f"/ui/workloads/{waiter}")
    why = page.get_by_role("region", name="Why it waits, and until when")
    expect(why).to_contain_text("GPU", timeout=PATIENCE)
    expect(why.get_by_role("link", name="holder", exact=True)).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.get_by_label("Select holder").check(timeout=PATIENCE)
    page.get_by_role("button", name="Suspend 1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("Would start: .*waiter"), timeout=PATIENCE)
    dialog.get_by_role("button", name="Suspend 1 workload").click()
    expect(dialog).to_have_count(0, timeout=PATIENCE)
    expect(row(page, "holder")).to_contain_text("Stopped", timeout=PATIENCE)
    expect(row(page, "waiter")).to_contain_text("Running", timeout=PATIENCE)
    page.goto(f"{server.url}/ui/cluster")
    expect(page.get_by_role("article", name="Node lab").get_by_role("link", name="waiter")).to_have_count(
        4, timeout=PATIENCE
    )
    for id in (holder, waiter):
        server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_logs_are_followed_searched_and_coloured(visit: Visit, server: Server, tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = f"printf 'one\\n\\033[31mtwo\\033[0m\\n'; until [ -e {go} ]; do sleep 0.05; done; echo three"
    id = server.run("talker", "sh", f"-c '{code.replace(chr(39), chr(34))}'")
    page = visit.open(f"/ui/workloads/{id}/logs")
    log = page.get_by_role("log")
    expect(log).to_contain_text("two", timeout=PATIENCE)
    expect(log).not_to_contain_text("three")
    go.touch()
    expect(log).to_contain_text("three", timeout=PATIENCE)
    page.get_by_label("Search in the log").fill("TWO")
    expect(page.get_by_text("1 matching line")).to_be_visible(timeout=PATIENCE)
    red = log.get_by_text("two").evaluate("element => getComputedStyle(element).color")
    assert red == "rgb(255, 143, 134)"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text().splitlines()[-1] == "three"
    page.get_by_role("link", name="Spec").click()
    expect(page.get_by_role("region", name="Spec as text")).to_contain_text("TrainingWorkload", timeout=PATIENCE)
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_quota_is_changed_after_a_preview(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/organization")
    projects = page.get_by_role("region", name="Department default").get_by_role("listitem")
    projects.get_by_role("button", name="Change quota of default").click(timeout=PATIENCE)
    dialog = page.get_by_role("dialog")
    save = dialog.get_by_role("button", name="Save")
    dialog.get_by_role("spinbutton").first.fill("3")
    expect(save).to_be_disabled()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("waiting now", timeout=PATIENCE)
    save.click()
    expect(page.get_by_text("of a quota of 3").first).to_be_visible(timeout=PATIENCE)
    projects = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    assert 3 in [project["resources"][0]["gpu"]["deserved"] for project in projects]


def test_an_ended_session_asks_for_the_password_and_keeps_the_address(browser: Browser, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.open("/ui/settings")
    page.get_by_label("User name").fill(server.credentials["username"])
    page.get_by_label("Password").fill(server.credentials["password"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Name").fill("key")
    page.context.clear_cookies()
    # The page may have asked for something by itself meanwhile, and then the button is gone.
    page.evaluate(PRESS, "Create an access key")
    expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=PATIENCE)
    assert urlsplit(page.url).path == "/ui/settings"
    visit.close()


def test_the_page_recovers_when_the_server_comes_back(browser: Browser, tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--personal", *NODES).start()
    again = Server(tmp_path / "data", "--personal", *NODES, "--port", str(urlsplit(server.url).port))
    try:
        visit = Visit(browser, server.url)
        sign_in(visit, server)
        page = visit.open("/ui/workloads")
        expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=PATIENCE)
        page.evaluate("window.isSamePage = true")
        server.kill()
        expect(page.get_by_text("The connection to the server is lost")).to_be_visible(timeout=PATIENCE)
        again.start()
        again.run("after-the-restart", "true")
        expect(row(page, "after-the-restart")).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_text("The connection to the server is lost")).to_have_count(0, timeout=PATIENCE)
        assert page.evaluate("window.isSamePage")
        visit.close()
    finally:
        again.close()
        server.close()


def test_the_audit_is_searched_and_downloaded(visit: Visit, server: Server) -> None:
    id = server.run("audited", "true")
    page = visit.open("/ui/audit?q=audited")
    entries = page.get_by_role("region", name="Entries of the audit log")
    expect(entries).to_contain_text("audited", timeout=PATIENCE)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert "audited" in download.value.path().read_text()
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")
