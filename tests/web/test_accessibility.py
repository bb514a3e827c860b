"""Every view by axe, in both themes, at three widths; and by keyboard alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.generate_pictures import render_page
from scripts.take_pictures import take_pictures
from tests.e2e.browser import Visit
from tests.web.conftest import sign_in
from tests.web.scene import HOST, Scene, institute
from tests.web.views import VIEWS, show

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PATIENCE = 60_000
#: What reaches beyond the window or, in a table, beyond its box: texts and buttons that nobody sees without scrolling.
CUT_OFF = """width => {
  const boxes = [document.documentElement, ...document.querySelectorAll("main [role=region]:has(> table)")];
  return boxes.filter(box => box.scrollWidth > Math.min(width, box.clientWidth + 1))
    .map(box => box.getAttribute("aria-label") ?? "the window");
}"""
CUT_CELLS = """() => [...document.querySelectorAll("tr td[data-key]:not([data-key=message])")]
  .filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"""
#: Views, and a button of each that opens a dialog.
DIALOGS = (
    ("/cluster", "Drain, what if…"),
    ("/library", "New environment"),
    ("/library", "New credential"),
    ("/people", "New role"),
    ("/people", "Grant a role"),
    ("/organization", "Change quota"),
)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with institute(tmp_path_factory.mktemp("institute")) as scene:
        yield scene


def find_violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    options = {"runOnly": {"type": "tag", "values": RULES}}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(browser: Browser, scene: Scene, theme: str) -> None:
    visit = Visit(browser, scene.server.url, color_scheme=theme, viewport={"width": 1440, "height": 900})
    page = visit.open("/ui/")
    expect(page.get_by_role("heading", name="Sign in to Fairlead")).to_be_visible(timeout=PATIENCE)
    found = {"sign-in": find_violations(page)}
    sign_in(visit, scene.server)
    for view in VIEWS:
        show(visit, view, scene.ids)
        found[view.name] = find_violations(page)
    for path, button in DIALOGS:
        page = visit.open(f"/ui{path}")
        page.get_by_role("button", name=button).first.click()
        expect(page.get_by_role("dialog")).to_be_visible(timeout=PATIENCE)
        found[button] = find_violations(page)
    assert {name: violations for name, violations in found.items() if violations} == {}
    visit.close()


@pytest.mark.parametrize("width", [1024, 360])
def test_no_view_is_wider_than_the_window(browser: Browser, scene: Scene, width: int) -> None:
    visit = Visit(browser, scene.server.url, viewport={"width": width, "height": 740})
    sign_in(visit, scene.server)
    wide = {view.name: show(visit, view, scene.ids).evaluate(CUT_OFF, width) for view in VIEWS}
    assert {name: parts for name, parts in wide.items() if parts} == {}
    visit.close()


@pytest.mark.parametrize("width", [1440, 1024, 360])
def test_the_list_shows_all_that_it_knows_of_a_workload(browser: Browser, scene: Scene, width: int) -> None:
    visit = Visit(browser, scene.server.url, viewport={"width": width, "height": 740})
    sign_in(visit, scene.server)
    page = visit.open("/ui/workloads?q=diffusion-upscaler")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="diffusion-upscaler"))
    for text in ("Training", "Pending", "vision", "fairlead", "0/8", "Waiting for 8 GPUs"):
        expect(row.get_by_role("cell").filter(has_text=text).last).to_be_visible(timeout=PATIENCE)
    # Age, wait and estimate, the last of which is asked for later.
    expect(row.get_by_role("cell").filter(has_text=re.compile(r"\d (s|min)|soon|unknown"))).to_have_count(
        3, timeout=PATIENCE
    )
    boxes = [cell.bounding_box() for cell in row.get_by_role("cell").all()]
    assert len(boxes) == 11
    assert all(box and box["width"] > 0 and box["x"] + box["width"] <= width for box in boxes)
    assert find_violations(page) == []
    page.get_by_role("button", name="Age").click()
    expect(page).to_have_url(re.compile("sort=created"))
    page.get_by_label("Search workloads").fill("")
    expect(page.get_by_role("link", name="segment-anything-large", exact=True)).to_be_visible()
    # Only reasons may be longer than their place.
    assert page.evaluate(CUT_CELLS) == []
    visit.close()


@pytest.mark.parametrize("opener", ["Add a rule", "New department", "Add a person", "Write a policy"])
def test_axe_finds_nothing_in_a_dialog(browser: Browser, scene: Scene, opener: str) -> None:
    places = {"Add a rule": "notifications", "New department": "organization", "Add a person": "people"}
    visit = Visit(browser, scene.server.url)
    sign_in(visit, scene.server)
    page = visit.open(f"/ui/{places.get(opener, 'policies')}")
    page.get_by_role("button", name=opener, exact=True).click(timeout=PATIENCE)
    expect(page.get_by_role("dialog", name=opener)).to_be_visible(timeout=PATIENCE)
    assert find_violations(page) == []
    visit.close()


def test_the_list_is_used_by_keyboard_alone(browser: Browser, scene: Scene) -> None:
    visit = Visit(browser, scene.server.url)
    sign_in(visit, scene.server)
    page = visit.open("/ui/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("g w")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("link", name="notebook-1", exact=True)).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("/")
    page.keyboard.type("upscaler")
    expect(page.get_by_role("link", name="notebook-1", exact=True)).to_have_count(0)
    # Out of the search and past the filters and the header, by Tab alone.
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "List of workloads":
            break
    expect(page.get_by_role("region", name="List of workloads")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_label("Select diffusion-upscaler")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="diffusion-upscaler", level=1)).to_be_visible(timeout=PATIENCE)
    visit.close()


def test_a_workload_is_submitted_by_keyboard_alone(browser: Browser, scene: Scene) -> None:
    visit = Visit(browser, scene.server.url)
    sign_in(visit, scene.server)
    page = visit.open("/ui/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page.get_by_role("button", name="Submit training")).to_be_visible(timeout=PATIENCE)
    wanted = {"field-name": "by-keyboard", "field-image": HOST, "field-command": "true"}
    for _ in range(60):
        page.keyboard.press("Tab")
        if text := wanted.pop(page.evaluate("document.activeElement.id"), ""):
            page.keyboard.type(text)
        if not wanted:
            break
    assert wanted == {}
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-keyboard", level=1)).to_be_visible(timeout=PATIENCE)
    visit.close()


def test_pictures_of_the_views_are_shown_in_both_themes(browser: Browser, scene: Scene, tmp_path: Path) -> None:
    assert "has no pictures" in render_page(tmp_path)
    take_pictures(browser, scene, tmp_path, VIEWS[:1])
    for theme in ("light", "dark"):
        assert (tmp_path / f"overview-{theme}.webp").read_bytes()[8:12] == b"WEBP"
        assert f"assets/pictures/overview-{theme}.webp#only-{theme}" in render_page(tmp_path)
