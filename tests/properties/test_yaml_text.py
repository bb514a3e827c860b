"""Whatever plain data is written as YAML, every reader reads it as it was."""

from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.tree import read_tree
from fairlead.formats.yaml.values import read_plain

#: Texts as people and other systems have them: words that mean something in YAML, scripts, everything else.
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["yes", "1G", "0x1f", "1e3", "12:30:45", "a: b", "a #b", "- a", "2024-01-01", "=", "~", "", ".5"]),
    st.lists(st.text("ab #:-|>'\"\\\t {}[]", max_size=8), min_size=1, max_size=4).map("\n".join),
)
NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
DOCUMENTS = st.dictionaries(TEXTS, DATA, min_size=1, max_size=5)


@given(st.lists(DOCUMENTS, min_size=1, max_size=3))
@example([{"\0<<": []}])
@settings(max_examples=400, deadline=None)
def test_it_is_read_as_it_was(documents: list[dict[str, Any]]) -> None:
    text = render_yaml(*documents)
    assert list(yaml.safe_load_all(text)) == documents
    nodes, issues = read_tree(text)
    assert issues == []
    assert [read_plain(node) for node in nodes] == documents


def test_scripts_are_written_in_lines() -> None:
    script = "set -e\n\nfor i in 1 2; do\n  echo $i # each\ndone\n"
    text = render_yaml({"run": script, "list": [script.rstrip()], "words": "sh -c", "size": "1Gi", "number": "7"})
    assert text == (
        "run: |\n  set -e\n\n  for i in 1 2; do\n    echo $i # each\n  done\n"
        "list:\n- |-\n  set -e\n\n  for i in 1 2; do\n    echo $i # each\n  done\n"
        'words: sh -c\nsize: 1Gi\nnumber: "7"\n'
    )
