"""Documents point to things that exist: files, and the tests that the compatibility page names."""

import re
from pathlib import Path

import pytest

from fairlead.engines.kubernetes.client.resources import RUNNERS
from fairlead.engines.kubernetes.install.permissions import INGRESS_PERMISSIONS, PERMISSIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for target in LINK.findall(without_code(page.read_text())):
        path, _, _ = target.partition("#")
        if path and "://" not in path and not (page.parent / path).exists():
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


#: What users keep, and what belongs to projects and node pools.
STAYING = ("persistentvolumeclaims", "queues", "schedulingshards")


@pytest.mark.parametrize("at", [0, 1], ids=["uninstalling", "a lost Fairlead"])
def test_what_is_left_of_workloads_is_deleted_whole_and_owners_first(at: int) -> None:
    """One kind after the other: kubectl does nothing of a list in which one kind is not installed."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    found = re.findall(r"^for kind in (.*?); do\n  kubectl delete \"\$kind\" -A", page, re.DOTALL | re.MULTILINE)
    named = [word.partition(".")[0] for word in found[at].replace("\\", " ").split()]
    made = {
        one.resource
        for one in (*PERMISSIONS, *INGRESS_PERMISSIONS)
        if {"create", "delete"} <= set(one.verbs) and one.resource not in STAYING
    }
    assert made <= set(named)
    before, after = named[: named.index("pods")], named[named.index("pods") :]
    assert {runner.plural for runner in RUNNERS} <= set(before), "pods would be made again"
    assert "services" in after, "Kubernetes' own, beside Knative's"
