"""Documents point to things that exist: files, and the tests that the compatibility page names. The build of the site
(`make docs`) checks links between its pages and their anchors once more."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.kubernetes.client.resources import RUNNERS
from fairlead.engines.kubernetes.install.permissions import INGRESS_PERMISSIONS, PERMISSIONS
from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import custom_kinds
from scripts.build_docs import ELSEWHERE, REFERENCES, STAGE, move_links, summarize
from scripts.generate_docs import render_rest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
#: Made when the site is built; nothing else may be missing.
MADE = {*(DOCS / "reference" / name for name in REFERENCES), DOCS / "llms.txt"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for target in LINK.findall(without_code(page.read_text())):
        path, _, _ = target.partition("#")
        file = (page.parent / path).resolve()
        # GitHub shows the README too, where nothing is built.
        is_made = file in MADE and page.name != "README.md"
        if path and "://" not in path and not file.exists() and not is_made:
            missing.append(target)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page: Path) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in TEST.findall(page.read_text())
        if not (ROOT / file).exists() or (name and f"def {name}(" not in (ROOT / file).read_text())
    ]
    assert not missing


def test_the_page_on_architecture_lists_every_room() -> None:
    rows = re.findall(r"^\| `([\w/]+/)` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    package = ROOT / "src" / "fairlead"
    rooms = {f"{path.parent.relative_to(package)}/" for path in package.rglob("__init__.py") if path.parent != package}
    assert sorted(rows) == sorted(rooms)


def test_every_decision_names_its_test() -> None:
    """A row of the compatibility page without a test is a claim."""
    rows = [
        line
        for line in (ROOT / "docs/reference/compatibility.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| where") and "|---" not in line
    ]
    bare = [row for row in rows if not TEST.search(row) and "| not yet |" not in row and "| test |" not in row]
    assert not bare


def pages_of(entries: Any) -> Iterator[str]:
    for entry in entries:
        for page in entry.values():
            yield from [page] if isinstance(page, str) else pages_of(page)


def test_the_navigation_leads_to_every_page_once() -> None:
    listed = sorted(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    written = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert listed == sorted([*written, *ELSEWHERE.values(), *(f"reference/{name}" for name in REFERENCES)])


@pytest.mark.parametrize(
    ("text", "want_summary"),
    [
        ("# Title\n\nFirst one. Second one.\n", "First one."),
        (
            "---\nhide: [toc]\n---\n# Title\n\n```\ncode\n\nmore\n```\n\nSee [this\npage](a.md) now.\n",
            "See this page now.",
        ),
        ("# Title\n\n<!-- a note -->\n\n- a list\n", ""),
    ],
    ids=["a sentence", "code and a link", "no sentence"],
)
def test_an_agent_reads_a_pages_first_sentence(text: str, want_summary: str) -> None:
    assert summarize(text) == want_summary


def test_links_to_files_outside_of_the_pages_lead_to_copies() -> None:
    """Within code they stay as they are; a folder cannot be shown, so it is not linked."""
    page = STAGE / "guide" / "page.md"
    same = "`[e](../x)`\n```\n[f](../y)\n```\n[g](https://h/i)"
    text = f"[a](../examples/README.md#b) [c](../examples) [d](other.md) {same}"
    assert move_links(text, DOCS / "page.md", page) == f"[a](../examples.md#b) c [d](../other.md) {same}"


#: What users keep, what belongs to projects and node pools, and custom resources, which are deleted before.
STAYING = ("persistentvolumeclaims", "queues", "schedulingshards", *(plural_of(kind) for kind in custom_kinds()))


@pytest.mark.parametrize("at", [0, 1], ids=["uninstalling", "a lost Fairlead"])
def test_what_is_left_of_workloads_is_deleted_whole_and_owners_first(at: int) -> None:
    """One kind after the other: kubectl does nothing of a list in which one kind is not installed."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    matches = re.findall(r"^for kind in (.*?); do\n  kubectl delete \"\$kind\" -A", page, re.DOTALL | re.MULTILINE)
    named = [word.partition(".")[0] for word in matches[at].replace("\\", " ").split()]
    made = {
        one.resource
        for one in (*PERMISSIONS, *INGRESS_PERMISSIONS)
        if {"create", "delete"} <= set(one.verbs) and one.resource not in STAYING
    }
    assert made <= set(named)
    before, after = named[: named.index("pods")], named[named.index("pods") :]
    assert {runner.plural for runner in RUNNERS} <= set(before), "pods would be made again"
    assert "services" in after, "Kubernetes' own, beside Knative's"


def test_the_reference_of_rest_can_be_made() -> None:
    """It asks the application for its description, with no more than an ASGI server must give."""
    assert "GET /api/v1/workloads" in render_rest().replace("`", "")
