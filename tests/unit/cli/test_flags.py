"""How words are read by flags."""

from typing import Any

import pytest

from fairlead.cli.flags import Flag, Parsed, UsageError, parse, read_duration

FLAGS = (
    Flag("project", "", short="p"),
    Flag("follow", "", "boolean", "f"),
    Flag("tty", "", "boolean", "t"),
    Flag("limit", "", "integer"),
    Flag("share", "", "number"),
    Flag("since", "", "duration"),
    Flag("env", "", short="e", repeatable=True, aliases=("environment-variable",)),
    Flag("output", "", short="o", choices=("json", "wide")),
)


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["a", "--project", "x", "b"], Parsed({"project": "x"}, ["a", "b"], None), id="flag between names"),
        pytest.param(["--project=x=y"], Parsed({"project": "x=y"}, [], None), id="value with equals sign"),
        pytest.param(["-p", "x"], Parsed({"project": "x"}, [], None), id="short with its word"),
        pytest.param(["-px"], Parsed({"project": "x"}, [], None), id="short with value joined"),
        pytest.param(["-p=x"], Parsed({"project": "x"}, [], None), id="short with equals sign"),
        pytest.param(["-ft"], Parsed({"follow": True, "tty": True}, [], None), id="switches joined"),
        pytest.param(
            ["-ftp", "x"], Parsed({"follow": True, "tty": True, "project": "x"}, [], None), id="joined, value"
        ),
        pytest.param(["--follow", "name"], Parsed({"follow": True}, ["name"], None), id="a switch takes no word"),
        pytest.param(["--follow=false"], Parsed({"follow": False}, [], None), id="a switch turned off"),
        pytest.param(["--limit", "-1"], Parsed({"limit": -1}, [], None), id="negative value"),
        pytest.param(["-1"], Parsed({}, ["-1"], None), id="a number is no flag"),
        pytest.param(["--share", "0.5"], Parsed({"share": 0.5}, [], None), id="number"),
        pytest.param(["--since", "1h30m"], Parsed({"since": 5400.0}, [], None), id="duration"),
        pytest.param(["-e", "A=1", "--env", "B=2"], Parsed({"env": ["A=1", "B=2"]}, [], None), id="repeated"),
        pytest.param(
            ["--environment-variable", "A=1"],
            Parsed({"env": ["A=1"]}, [], None, {"env": "environment-variable"}),
            id="by its other name",
        ),
        pytest.param(["-o", "JSON"], Parsed({"output": "json"}, [], None), id="choice in any case"),
        pytest.param(["a", "--", "-p", "--x"], Parsed({}, ["a"], ["-p", "--x"]), id="words after the dashes"),
        pytest.param(["--"], Parsed({}, [], []), id="nothing after the dashes"),
        pytest.param(["-"], Parsed({}, ["-"], None), id="a lone dash is a name"),
    ],
)
def test_parse(words: list[str], want: Parsed) -> None:
    assert parse(words, FLAGS) == want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["--projet", "x"], "Unknown flag --projet. Did you mean --project?", id="nearly a flag"),
        pytest.param(["--zzzzzz"], "Unknown flag --zzzzzz.", id="no flag at all"),
        pytest.param(["-z"], "Unknown flag -z.", id="no short flag"),
        pytest.param(["-fz"], "Unknown flag -z in -fz.", id="no short flag among others"),
        pytest.param(["--project"], "--project needs a value.", id="value missing"),
        pytest.param(["--project", "--", "x"], "--project needs a value.", id="value missing before the dashes"),
        pytest.param(["--limit", "many"], "--limit must be a whole number, not 'many'.", id="no whole number"),
        pytest.param(
            ["--since", "soon"], "--since must be a duration such as 90s, 5m or 1h30m, not 'soon'.", id="no time"
        ),
        pytest.param(
            ["--follow=perhaps"], "--follow must be true or false, not 'perhaps'.", id="neither true nor false"
        ),
        pytest.param(
            ["-o", "jsn"], "-o must be one of json, wide, not 'jsn'. Did you mean json?", id="not among the choices"
        ),
    ],
)
def test_what_cannot_be_read_is_said(words: list[str], want: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(words, FLAGS)
    assert str(raised.value) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [("90", 90.0), ("90s", 90.0), ("250ms", 0.25), ("1h30m", 5400.0), ("1.5h", 5400.0), ("2d", 172_800.0), ("0", 0.0)],
)
def test_read_duration(text: str, want: float) -> None:
    assert read_duration(text) == want


@pytest.mark.parametrize("text", ["", "x", "5x", "-3", "m", "1h30", "1..5s", "5 s"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_duration(text)


def test_a_flag_given_twice_counts_once() -> None:
    want: dict[str, Any] = {"project": "b"}
    assert parse(["-p", "a", "-p", "b"], FLAGS).values == want
