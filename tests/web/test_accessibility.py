"""Every view by axe, in both themes, at three widths; and by keyboard alone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server
from tests.web.conftest import sign_in

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
#: A folder for pictures of every view; without it none is taken.
PICTURES = os.environ.get("FAIRLEAD_PICTURES", "")
PATIENCE = 60_000
#: Name, path, its heading, and a text that is there once everything is loaded.
VIEWS = (
    ("overview", "/ui/", "Overview", "3 of 4 GPUs allocated"),
    ("workloads", "/ui/workloads", "Workloads", "waits"),
    ("workload", "/ui/workloads/{running}", "runs", "3 GPU"),
    ("why", "/ui/workloads/{waiting}", "waits", "Who holds what it waits for"),
    ("logs", "/ui/workloads/{running}/logs", "runs", "hello"),
    ("events", "/ui/workloads/{running}/events", "runs", "ago"),
    ("spec", "/ui/workloads/{running}/spec", "runs", "kind: TrainingWorkload"),
    ("cluster", "/ui/cluster", "Cluster", "1 free"),
    ("organization", "/ui/organization", "Organization", "GPUs used"),
    ("people", "/ui/people", "People", "System administrator"),
    ("policies", "/ui/policies", "Policies", "built in"),
    ("library", "/ui/library", "Library", "A template is a prepared workload"),
    ("reports", "/ui/reports", "Reports", "GPU-hours used"),
    ("audit", "/ui/audit", "Audit", "fairlead"),
    ("settings", "/ui/settings", "Settings", "Create an access key"),
)


@pytest.fixture(scope="module")
def ids(server: Server) -> Iterator[dict[str, str]]:
    code = "echo hello; exec sleep infinity"
    running = server.run("runs", "sh", f"-c '{code}'", compute={"gpuDevicesRequest": 3})
    server.until_phase(running, "Running")
    waiting = server.run("waits", "sleep", "infinity", compute={"gpuDevicesRequest": 4})
    server.until_phase(waiting, "Pending")
    failed = server.run("fails", "false", backoffLimit=0)
    server.until_phase(failed, "Failed")
    yield {"running": running, "waiting": waiting}
    for id in (running, waiting, failed):
        server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def find_violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    options = {"runOnly": {"type": "tag", "values": RULES}}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


def show(visit: Visit, path: str, heading: str, text: str) -> Page:
    """Open a view and wait until it is complete."""
    page = visit.open(path)
    expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible(timeout=PATIENCE)
    expect(page.locator("main").get_by_text(text).first).to_be_visible(timeout=PATIENCE)
    return page


def take_picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(browser: Browser, server: Server, ids: dict[str, str], theme: str) -> None:
    visit = Visit(browser, server.url, color_scheme=theme, viewport={"width": 1440, "height": 900})
    page = visit.open("/ui/")
    expect(page.get_by_role("heading", name="Sign in to Fairlead")).to_be_visible(timeout=PATIENCE)
    assert find_violations(page) == []
    take_picture(page, f"sign-in-{theme}")
    sign_in(visit, server)
    found = {}
    for name, path, heading, text in VIEWS:
        show(visit, path.format(**ids), heading, text)
        take_picture(page, f"{name}-{theme}")
        found[name] = find_violations(page)
    assert {name: violations for name, violations in found.items() if violations} == {}
    visit.close()


@pytest.mark.parametrize("width", [1024, 360])
def test_no_view_is_wider_than_the_window(browser: Browser, server: Server, ids: dict[str, str], width: int) -> None:
    visit = Visit(browser, server.url, viewport={"width": width, "height": 740})
    sign_in(visit, server)
    for name, path, heading, text in VIEWS:
        page = show(visit, path.format(**ids), heading, text)
        take_picture(page, f"{name}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    visit.close()


def test_the_list_is_used_by_keyboard_alone(visit: Visit, ids: dict[str, str]) -> None:
    page = visit.open("/ui/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("g w")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("link", name="runs", exact=True)).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("/")
    page.keyboard.type("waits")
    expect(page.get_by_role("link", name="runs", exact=True)).to_have_count(0)
    page.keyboard.press("Tab")
    page.get_by_role("region", name="List of workloads").focus()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_label("Select waits")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="waits", level=1)).to_be_visible(timeout=PATIENCE)
