"""What a document inherits from the templates it names."""

import pytest

from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.inherit import find_among, merge


def document(name: str, spec: str, namespace: str = "runai-a", kind: str = "TrainingWorkload") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    return f"apiVersion: run.ai/v2alpha1\nkind: {kind}\nmetadata: {metadata}\nspec:\n  {spec}\n---\n"


def read(*documents: str):
    """The last document with everything it inherits from the others."""
    manifests, issues = read_manifests("".join(documents))
    assert issues == []
    return merge(manifests[-1], find_among(manifests))


BASE = document(
    "base",
    "{usage: Template, image: {value: i}, cpu: {value: 1}, environment: {items: {A: {value: 1}, B: {value: 2}}}}",
)
OWN = "{baseWorkload: base, name: {value: x}, cpu: {value: 2}, environment: {items: {B: {value: 3}, C: {value: 4}}}}"


def test_own_values_win_and_items_merge_by_key() -> None:
    merged, issues = read(BASE, document("x", OWN))
    assert issues == []
    found, wrong = read_workload(merged)
    assert wrong == []
    assert found is not None
    assert found.plain["compute"] == {"cpuCoreRequest": 2}
    assert found.plain["image"] == "i"
    variables = {item["name"]: item["value"] for item in found.plain["environmentVariables"]}
    assert variables == {"A": "1", "B": "3", "C": "4"}


def test_a_template_may_name_another() -> None:
    root = document("root", "{usage: Template, image: {value: r}, memory: {value: 1G}}", "runai")
    middle = document("base", "{usage: Template, baseWorkload: root, image: {value: m}}")
    found, _ = read_workload(read(root, middle, document("x", "{baseWorkload: base, name: {value: x}}"))[0])
    assert found is not None
    assert found.plain == {"image": "m", "compute": {"cpuMemoryRequest": "1G"}}


def test_the_users_template_is_looked_for_before_the_global_one() -> None:
    ours = document("base", "{usage: Template, image: {value: ours}}")
    theirs = document("base", "{usage: Template, image: {value: global}}", "runai")
    found, _ = read_workload(read(theirs, ours, document("x", "{baseWorkload: base, name: {value: x}}"))[0])
    assert found is not None
    assert found.plain["image"] == "ours"


@pytest.mark.parametrize(
    ("documents", "want_words"),
    [
        pytest.param((), "there is no template 'base' in runai-a, nor in runai", id="missing"),
        pytest.param(
            (
                document("base", "{usage: Template, baseWorkload: other}"),
                document("other", "{usage: Template, baseWorkload: base}"),
            ),
            "in a cycle (runai-a/x → runai-a/base → runai-a/other → runai-a/base)",
            id="circle",
        ),
        pytest.param(
            (document("base", "{usage: Template, baseWorkload: lost}"),),
            "there is no template 'lost' in runai-a, nor in runai (runai-a/x → runai-a/base)",
            id="missing further up",
        ),
    ],
)
def test_refusals_show_the_chain(documents: tuple[str, ...], want_words: str) -> None:
    _, issues = read(*documents, document("x", "{baseWorkload: base, name: {value: x}}"))
    assert want_words in issues[0].details
    assert issues[0].path == "spec.baseWorkload"
    assert (issues[0].line, issues[0].column) == (5 + 6 * len(documents), 4), "where the base is named"


def test_a_workload_that_is_not_a_template_cannot_be_a_base() -> None:
    _, issues = read(document("base", "{name: {value: b}}"), document("x", "{baseWorkload: base, name: {value: x}}"))
    assert "there is no template" in issues[0].details
