import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.command_words import split_words


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("python3 -u  train.py", ("python3", "-u", "train.py")),
        ("sh -c 'echo a && echo b'", ("sh", "-c", "echo a && echo b")),
        ('say "two words" three', ("say", "two words", "three")),
        ("a\\ b", ("a b",)),
        ("--name ''", ("--name", "")),
        ("# is a word", ("#", "is", "a", "word")),
        ("$HOME ${X} $(Y)", ("$HOME", "${X}", "$(Y)")),
        ("   ", ()),
    ],
)
def test_splits(text: str, want: tuple[str, ...]) -> None:
    assert split_words(text) == want


def test_open_quote_is_refused() -> None:
    with pytest.raises(ValueError, match="quotation"):
        split_words("sh -c 'echo")


@given(st.text(alphabet=st.sampled_from("ab \t\n\r'\"\\#;\u00a0\x0b"), max_size=30))
def test_shortcut_agrees_with_shlex(text: str) -> None:
    try:
        want = tuple(shlex.split(text))
    except ValueError:
        with pytest.raises(ValueError, match="No "):
            split_words(text)
    else:
        assert split_words(text) == want
