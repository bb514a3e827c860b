"""The documentation as a reader sees it: a real server, a real browser, and no request to another host."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Visit, open_browser
from tests.e2e.server import Server, until
from tests.e2e.turns import take_turns

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.debian("chromium"), pytest.mark.xdist_group("docs")]


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    """The site, built anew: broken links and missing anchors end here."""
    # A second build would take the site away from under the tests of the first.
    with take_turns("site"):
        done = subprocess.run([sys.executable, "-m", "scripts.build_docs"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        yield ROOT / "site"


@pytest.fixture(scope="module")
def server(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("docs") / "data", "--personal").start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    visit = Visit(browser, server.url)
    yield visit
    visit.close()
    assert visit.foreign == []
    assert visit.errors == []


def test_front_page_leads_to_a_first_job(visit: Visit) -> None:
    page = visit.open("/docs")
    assert page.url.endswith("/docs/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Fairlead")
    terminal = page.locator("img.terminal")
    expect(terminal).to_be_visible()
    assert terminal.evaluate("picture => picture.complete && picture.naturalWidth") > 0
    for name, command in (
        ("Run a job", "fairlead run"),
        ("Share a machine", "fairlead project create"),
        ("Grow to a cluster", "fairlead serve --engine kubernetes"),
    ):
        page.locator(".tabbed-labels").get_by_text(name).click()
        expect(page.locator(".tabbed-block:visible")).to_contain_text(command)


@pytest.mark.parametrize("path", ["overview", "architecture"])
def test_diagrams_are_drawn(visit: Visit, path: str, site: Path) -> None:
    drawn = (site / path / "index.html").read_text().count('class="mermaid"')
    assert drawn, "this page is here for its diagram"
    page = visit.open(f"/docs/{path}/")
    expect(page.locator("div.mermaid")).to_have_count(drawn)
    pictures = [node for node in visit.find_nodes("svg") if "aria-roledescription" in node["attributes"]]
    assert len(pictures) == drawn
    for at in range(drawn):
        box = page.locator("div.mermaid").nth(at).bounding_box()
        assert box is not None
        assert box["height"] > 40


@pytest.mark.parametrize(
    ("name", "want_words"),
    [
        ("cli", "fairlead training submit"),
        ("rest", "/api/v1/workloads/trainings/{workloadId}"),
        ("fields", "imagePullPolicy"),
        ("workload-yaml", "TrainingWorkload"),
    ],
)
def test_reference_pages_are_made_at_build(visit: Visit, name: str, want_words: str) -> None:
    page = visit.open(f"/docs/reference/{name}/")
    expect(page.locator("article")).to_contain_text(want_words)


def is_search_open(page: Page) -> bool:
    """Press the key once more: the page is there before its script listens."""
    page.keyboard.press("Control+k")
    return bool(page.evaluate("document.activeElement !== document.body"))


def test_search_finds_a_page_without_help_from_elsewhere(visit: Visit) -> None:
    page = visit.open("/docs/")
    until(lambda: is_search_open(page), "a place to type")
    page.keyboard.type("preemptibility")
    until(lambda: any(re.fullmatch("[1-9][0-9]* results?", text) for text in visit.find_texts()), "a result", 30)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/docs/.+"))
    expect(page.locator("article")).to_contain_text("preemptibility")


@pytest.mark.parametrize("width", [1440, 360])
def test_no_page_is_wider_than_the_window(browser: Browser, server: Server, width: int) -> None:
    visit = Visit(browser, server.url, viewport={"width": width, "height": 800})
    for path in ("/docs/", "/docs/reference/fields/", "/docs/reference/compatibility/"):
        page = visit.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    visit.close()


def test_every_page_of_llms_txt_is_there_as_markdown(server: Server) -> None:
    text = server.call("GET", "/docs/llms.txt").body.decode()
    pages = re.findall(r"\]\(([^)]+)\)", text)
    assert {"index.md", "getting-started.md", "reference/rest.md"} <= set(pages)
    for page in pages:
        assert server.call("GET", f"/docs/{page}").body.startswith((b"# ", b"---\n")), page
