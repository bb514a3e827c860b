"""The documents' table of workload YAML, row by row: on every kind that has the field it is read, in the form it is
listed with and in no other; on every other kind it is refused; its mandatory members are, and its default is told.
"""

from typing import Any

import pytest

from fairlead.cli.files.explain import explain
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.inherit import find_among, merge
from fairlead.formats.yaml.tree import YamlIssue
from tests.unit.formats.yaml_rows import (
    ALL,
    EVERY,
    ITEMS,
    MAP,
    PLAIN,
    RESOURCES,
    ROWS,
    SYSTEM,
    VALUE,
    Row,
    spec_of,
    written,
)
from tests.unit.formats.yaml_texts import HEAD, document, issues_of, workload

BASE = HEAD.format(kind="{kind}").replace("name: x,", "name: base,") + "  usage: Template\n"
CASES = [(row, letter) for row in ROWS for letter in row.kinds + row.also]
FOREIGN = [(row, letter) for row in EVERY for letter in ALL if letter not in row.kinds + row.also]


def ids(cases: list[tuple[Row, str]]) -> list[str]:
    return [f"{letter} {row.name}" for row, letter in cases]


def refusals(row: Row, letter: str, field: str) -> list[YamlIssue]:
    return [issue for issue in issues_of(document(spec_of(row, field), RESOURCES[letter])) if row.name in issue.path]


def inside(plain: Any, path: str) -> Any:
    for step in path.split("."):
        plain = plain.get(step) if isinstance(plain, dict) else None
    return plain


@pytest.mark.parametrize(("row", "letter"), CASES, ids=ids(CASES))
def test_it_is_read(row: Row, letter: str) -> None:
    text = document(spec_of(row, written(row)), RESOURCES[letter])
    base = "---\n" + BASE.replace("{kind}", RESOURCES[letter])
    manifests, issues = read_manifests(text + base)
    merged, broken = merge(manifests[0], find_among(manifests))
    found, wrong = read_workload(merged)
    assert [str(issue) for issue in issues + broken + wrong] == []
    assert found is not None
    if row.path:
        want = row.want if row.form in (VALUE, PLAIN) else [row.want]
        assert inside(found.plain, row.path) == want


@pytest.mark.parametrize(("row", "letter"), FOREIGN, ids=ids(FOREIGN))
def test_on_another_kind_it_is_refused(row: Row, letter: str) -> None:
    [issue] = refusals(row._replace(beside=""), letter, written(row))
    here = [RESOURCES[one] for one in row.kinds + row.also if one != "J"]
    assert "not a field of this kind" in issue.details
    assert all(kind in issue.details for kind in here)


@pytest.mark.parametrize("row", SYSTEM, ids=[row.name for row in SYSTEM])
def test_what_the_system_writes_is_ignored(row: Row) -> None:
    """So that a workload that was printed as YAML can be applied again."""
    found = workload(spec_of(row, written(row)))
    [(path, details)] = found.remarks
    assert (path, row.name in found.plain) == (f"spec.{row.name}", False)
    assert "written by the system" in details


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_another_form_is_refused(row: Row) -> None:
    for form in (VALUE, ITEMS, PLAIN):
        if form == row.form or (form == ITEMS and row.form == MAP):
            continue
        sample = "x" if form == PLAIN else None
        found = refusals(row, row.kinds[0], written(row, form, sample))
        assert found, form
        assert all(issue.line == 5 for issue in found)


MEMBERS = [(row, names) for row in ROWS for names in row.needs]


@pytest.mark.parametrize(("row", "names"), MEMBERS, ids=[f"{row.name} {names[0]}" for row, names in MEMBERS])
def test_a_mandatory_member_is_missed(row: Row, names: tuple[str, ...]) -> None:
    rest = {name: value for name, value in row.sample.items() if name not in names}
    missed = f"spec.{row.name}.items.k.value.{names[0]}"
    assert missed in [issue.path for issue in refusals(row, row.kinds[0], written(row, sample=rest))]
    for name in names:
        value = next(value for known, value in row.sample.items() if known in names)
        assert refusals(row, row.kinds[0], written(row, sample={**rest, name: value})) == []
        spelt = name[:1].upper() + name[1:]
        assert refusals(row, row.kinds[0], written(row, sample={**rest, spelt: value})) == []


DEFAULTS = [(row, letter) for row, letter in CASES if row.default and letter != "J"]


@pytest.mark.parametrize(("row", "letter"), DEFAULTS, ids=ids(DEFAULTS))
def test_its_default_is_shown(row: Row, letter: str) -> None:
    assert explain(f"{RESOURCES[letter].lower()}.spec.{row.name}").entry["default"] == row.default
