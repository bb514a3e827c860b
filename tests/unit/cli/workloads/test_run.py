"""The request that `run` makes of a command line."""

import pytest

from fairlead.client.commands import name_for, quote_arguments, set_gpus
from fairlead.model.command_words import split_words


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["python3", "-c", "print(1)"], "python3", id="program"),
        pytest.param(["python3.11", "src/Train_Model.py", "--lr", "1"], "train-model", id="script of an interpreter"),
        pytest.param(["/usr/bin/env", "true"], "env", id="path"),
        pytest.param(["bash", "-c", "exit 3"], "bash", id="shell"),
        pytest.param(["./2048"], "run-2048", id="does not begin with a letter"),
        pytest.param(["./…"], "run", id="nothing usable"),
        pytest.param(["x" * 60], "x" * 40, id="long"),
    ],
)
def test_name_for(words: list[str], want: str) -> None:
    assert name_for(words) == want


@pytest.mark.parametrize(
    "words",
    [
        ["echo", "a b", "it's", "", '"x"'],
        ["sh", "-c", "for i in 1 2; do echo $i; done"],
        ["printf", "%s\\n", "tab\tend"],
    ],
)
def test_the_server_splits_into_the_same_arguments(words: list[str]) -> None:
    assert list(split_words(quote_arguments(words))) == words


def test_references_are_left_to_the_command() -> None:
    assert split_words(quote_arguments(["echo ${HOME} $(date) $X"])) == ("echo $${HOME} $$(date) $X",)


@pytest.mark.parametrize("wanted", [-1, -0.5, 2.5])
def test_an_impossible_number_of_gpus(wanted: float) -> None:
    with pytest.raises(ValueError, match=f"not {wanted}"):
        set_gpus({}, wanted)
