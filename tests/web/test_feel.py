"""How the page is used: the palette, undo, trying out a change, signing in with a provider of identities."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server
from tests.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.web.conftest import NODES

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]


def test_the_palette_leads_to_views_and_workloads(visit: Visit, server: Server) -> None:
    id = server.run("found-by-palette", "true")
    page = visit.open("/ui/workloads")
    expect(page.get_by_role("link", name="found-by-palette", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to a view or a workload").fill("palette")
    expect(page.get_by_role("dialog", name="Go to").get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="found-by-palette", level=1)).to_be_visible()
    page.get_by_role("button", name="Go to…").click()
    expect(page.get_by_role("combobox", name="Go to a view or a workload")).to_be_focused()
    page.keyboard.type("clus")
    expect(page.get_by_role("option", name=re.compile("Cluster"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Cluster", level=1)).to_be_visible()
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_suspending_is_taken_back(visit: Visit, server: Server) -> None:
    id = server.run("undone", "sleep", "infinity")
    server.until_phase(id, "Running")
    page = visit.open(f"/ui/workloads/{id}")
    page.get_by_role("button", name="Suspend", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend 1 workload").click()
    done = page.get_by_role("status", name="What was done")
    expect(done).to_contain_text("1 workload suspended")
    expect(page.locator("main header")).to_contain_text("Stopped")
    done.get_by_role("button", name="Undo").click()
    expect(page.locator("main header")).to_contain_text("Running")
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_an_empty_list_and_a_wrong_address_say_where_to_go(visit: Visit, server: Server) -> None:
    id = server.run("hidden-by-filters", "true")
    page = visit.open("/ui/workloads?q=no-such-name&kind=Training")
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.get_by_role("link", name="hidden-by-filters", exact=True)).to_be_visible()
    assert urlsplit(page.url).query == ""
    page = visit.open("/ui/nowhere")
    expect(page.get_by_role("heading", name="Not found", level=1)).to_be_visible()
    page.locator("main").get_by_role("link", name="workloads").click()
    expect(page.get_by_role("link", name="hidden-by-filters", exact=True)).to_be_visible()
    page = visit.open("/ui/audit?q=no-such-entry")
    page.get_by_role("button", name="Show all of the last week").click()
    expect(page.get_by_role("region", name="Entries of the audit log")).to_contain_text("hidden-by-filters")
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_part_that_cannot_be_loaded_offers_to_load_the_page_again(visit: Visit, server: Server) -> None:
    """A newer version of the page has replaced its files."""
    page = visit.open("/ui/")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    gone = re.compile(r"/ui/assets/settings[^/]*\.js$")
    page.route(gone, lambda route: route.fulfill(status=404))
    page.keyboard.press("g")
    page.keyboard.press("s")
    again = page.get_by_role("alert").get_by_role("button", name="Load the page again")
    expect(again).to_be_visible()
    page.unroute(gone)
    again.click()
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    visit.errors.clear()  # the browser reports the answer 404


def test_a_message_fits_into_a_narrow_window(visit: Visit, server: Server) -> None:
    id = server.run("with-a-name-that-takes-much-room", "sleep", "infinity")
    server.until_phase(id, "Running")
    visit.page.set_viewport_size({"width": 360, "height": 740})
    page = visit.open(f"/ui/workloads/{id}")
    page.get_by_role("button", name="Suspend", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend 1 workload").click()
    undo = page.get_by_role("status", name="What was done").get_by_role("button", name="Undo")
    box = undo.bounding_box()
    assert box
    # In one line, wider than it is high.
    assert box["width"] > box["height"]
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_text_is_copied_where_the_browser_has_no_clipboard(visit: Visit, server: Server) -> None:
    """Browsers offer it only to pages by HTTPS or from this machine, and others see the page of a server by HTTP."""
    visit.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    id = server.run("copied", "true")
    page = visit.open(f"/ui/workloads/{id}/spec")
    expect(page.get_by_role("region", name="Spec as text")).to_contain_text("name: copied")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page = visit.open("/ui/workloads")
    page.get_by_label("Search workloads").focus()
    page.keyboard.press("Control+v")
    expect(page.get_by_label("Search workloads")).to_have_value(re.compile("kind: TrainingWorkload"))
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_page_that_the_browser_kept_goes_on(visit: Visit, server: Server) -> None:
    page = visit.open("/ui/workloads")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    for event in ("pagehide", "pageshow"):
        page.evaluate(f"dispatchEvent(new PageTransitionEvent('{event}', {{persisted: true}}))")
    id = server.run("after-back", "true")
    expect(page.get_by_role("link", name="after-back", exact=True)).to_be_visible()
    # Another workload is shown from its beginning: nothing of the previous one stays if it cannot be had.
    page.get_by_role("link", name="after-back", exact=True).click()
    expect(page.get_by_role("heading", name="after-back", level=1)).to_be_visible()
    page.evaluate(
        "history.pushState(null, '', '/ui/workloads/no-such-id'); dispatchEvent(new PopStateEvent('popstate'))"
    )
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("heading", name="after-back", level=1)).to_have_count(0)
    visit.errors.clear()  # the browser reports the answer 404
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_change_that_starts_it_is_tried(visit: Visit, server: Server) -> None:
    holder = server.run("keeps", "sleep", "infinity", compute={"gpuDevicesRequest": 3})
    server.until_phase(holder, "Running")
    waiter = server.run("wants", "sleep", "infinity", compute={"gpuDevicesRequest": 4})
    page = visit.open(f"/ui/workloads/{waiter}")
    # Fewer GPUs: a changed copy in the form, with the plan beside it, replaces the one that waits.
    page.get_by_role("link", name="Try it: Request 1 GPU instead of 4").click()
    expect(page.get_by_label("GPU devices request", exact=True)).to_have_value("1")
    expect(page.get_by_role("region", name="What would happen")).to_contain_text("Starts now")
    page.get_by_role("button", name="Submit training").click()
    expect(page.get_by_role("heading", name="wants-2", level=1)).to_be_visible()
    made = urlsplit(page.url).path.rpartition("/")[2]
    server.until_phase(made, "Running")
    assert server.call("GET", f"/api/v1/workloads/{waiter}").json["deletedAt"]

    # The other workload out of the way: what would follow is said first.
    second = server.run("wants-all", "sleep", "infinity", compute={"gpuDevicesRequest": 4})
    page.goto(f"{server.url}/ui/workloads/{second}")
    page.get_by_role("button", name=re.compile("^Try it: Suspend")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("Would start: .*wants-all"))
    dialog.get_by_role("button", name=re.compile("^Suspend 2")).click()
    expect(page.locator("main header")).to_contain_text("Running")
    for id in (holder, made, second):
        server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_provider_of_identities_signs_in(browser: Browser, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with IdentityProvider() as provider:
        provider.add("ann@lab.example")
        flags = ("--oidc-issuer", provider.issuer, "--oidc-client-id", CLIENT, "--oidc-name", "the lab")
        server = Server(tmp_path / "data", *NODES, *flags, "--oidc-client-secret-file", str(secret)).start()
        try:
            visit = Visit(browser, server.url)
            page = visit.open("/ui/settings")
            page.get_by_role("link", name="Sign in with the lab").click()
            # Back where the person was, with a session of the page.
            expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
            expect(page.get_by_role("region", name="Account")).to_contain_text("ann@lab.example")
            visit.close()
        finally:
            server.close()
