"""YAML text as a tree: every mistake of form in words, with its place; and no text, however odd, takes long."""

import time

import pytest

from fairlead.formats.yaml.tree import YamlLimits, read_tree

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "want_place", "want_words"),
    [
        pytest.param("a: 1\nb:\n\tc: 2\n", (3, 1), "tab", id="tab"),
        pytest.param("a: 1\nb: 2\na: 3\n", (3, 1), "'a' is repeated; it first occurs in line 1", id="duplicate"),
        pytest.param("a:\n  b: {c: 1, c: 2}\n", (2, 13), "'c' is repeated", id="duplicate in flow"),
        pytest.param("[" * 200_000, (1, 65), "nested more than 64 levels deep", id="200,000 brackets"),
        pytest.param("{a: " * 200_000, (1, 257), "nested more than 64 levels deep", id="200,000 braces"),
        pytest.param("- " * 200_000, (1, 129), "nested more than 64 levels deep", id="200,000 dashes"),
        pytest.param(BOMB, (5, 17), "more than 50000 entries", id="alias bomb"),
        pytest.param("a: &a [*a]", (1, 8), "inside of what it refers to", id="alias of itself"),
        pytest.param("a: *x", (1, 4), "refers to an anchor &x that is not defined above", id="unknown alias"),
        pytest.param("a: [" + "*b," * 5 + "]", (1, 5), "that is not defined above", id="unknown aliases"),
        pytest.param("a: \x07", (1, 4), "control character", id="control character"),
        pytest.param(b"a: \xff\xfe", (0, 0), "not UTF-8", id="not UTF-8"),
        pytest.param("a: !!python/object:os.system x", (1, 4), "tags are not supported", id="tag"),
        pytest.param("? [a]\n: b", (1, 3), "key that is not a text", id="list as a key"),
        pytest.param("a: b: c", (1, 5), "not valid YAML", id="two colons"),
        pytest.param("a: [1", (2, 1), "not valid YAML", id="open bracket"),
        pytest.param("x" * 1_600_000, (0, 0), "1600000 characters", id="too long"),
        pytest.param("---\na: 1\n" * 1100, (2001, 1), "more than 1000 documents", id="too many documents"),
    ],
)
def test_mistakes_of_form(text: str | bytes, want_place: tuple[int, int], want_words: str) -> None:
    began = time.perf_counter()
    _, issues = read_tree(text, "f.yaml")
    assert time.perf_counter() - began < 5
    assert (issues[0].line, issues[0].column) == want_place
    assert want_words in issues[0].details
    assert str(issues[0]).startswith("f.yaml")


def test_all_mistakes_are_found() -> None:
    _, issues = read_tree("a: 1\na: 2\nb: *x\nb: 3\n")
    assert [issue.line for issue in issues] == [2, 3, 4]


def test_anchors_and_merge_keys() -> None:
    documents, issues = read_tree("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  x: 3\nquoted: {'<<': 4}\n")
    assert issues == []
    content = documents[0].content
    assert {name: node.content for name, node in content["own"].content.items()} == {"x": "3", "y": "2"}
    assert list(content["quoted"].content) == ["<<"]


def test_documents_in_one_text() -> None:
    documents, issues = read_tree("a: 1\n---\n---\nb: 2\n")
    assert issues == []
    assert [list(document.content) for document in documents] == [["a"], ["b"]]


def test_limits_come_from_the_caller() -> None:
    _, issues = read_tree("a: [1, 2, 3]", limits=YamlLimits(nodes=3))
    assert "more than 3 entries" in issues[0].details
