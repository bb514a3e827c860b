"""From words to a command: nouns, verbs, help, and what is said of words that are none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.exit_codes import EXIT_CODES, OK, UNREACHABLE, USAGE
from fairlead.cli.flags import UsageError
from fairlead.cli.nouns import ALIASES, NOUNS, find_command
from fairlead.client.kinds import load_kinds
from tests.unit.cli.calling import call


@pytest.mark.parametrize("noun", [noun for noun, entry in NOUNS.items() if entry.group])
def test_every_noun_has_help(noun: str, tmp_path: Path) -> None:
    if noun == "serve":
        return
    called = call(noun, "--help", home=tmp_path)
    assert called.code == OK
    assert called.out.splitlines()[0]
    assert called.err == ""
    assert not re.search(r"\b[Aa] [aeio]", called.out), "a noun has the article that is spoken"
    assert [line for line in called.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param("training submit", ("training", "submit"), id="kind"),
        pytest.param("training standard submit", ("training", "standard", "submit"), id="kind with its sub-type"),
        pytest.param("training ls", ("training", "list"), id="alias of a verb"),
        pytest.param("ps", ("ps",), id="alias of a noun"),
        pytest.param("workload describe x", ("workload", "describe"), id="every kind"),
        pytest.param("login", ("login",), id="noun that is a command"),
        pytest.param("login application", ("login", "application"), id="and has verbs"),
    ],
)
def test_find_command(words: str, want: tuple[str, ...]) -> None:
    command = find_command(words.split())
    assert command.words == want
    assert command.command is not None


def test_aliases_lead_to_nouns() -> None:
    assert set(ALIASES.values()) <= set(NOUNS)


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param("trainig list", "Unknown command 'trainig'. Did you mean training?", id="noun"),
        pytest.param(
            "import org.json", "Unknown command 'import org.json'. The verbs of import are", id="file as verb"
        ),
        pytest.param("training sumbit", "Unknown command 'training sumbit'. Did you mean submit?", id="verb"),
        pytest.param("wait", "`wait` needs NAME.", id="name missing"),
        pytest.param("wait a b", "`wait` got an unexpected argument 'b'.", id="a name too many"),
        pytest.param("training list -- x", "`training list` takes no arguments after --.", id="words after dashes"),
        pytest.param("training list --statsu x", "Unknown flag --statsu. Did you mean --status?", id="flag"),
        pytest.param("training submit x --privileged", "--privileged is not supported: ", id="flag without a field"),
        pytest.param("run true", "`run` got an unexpected argument 'true'. Put -- before", id="dashes missing"),
        pytest.param(
            "run python3 -c 1", "Unknown flag -c. Put -- before the command", id="dashes missing before a flag"
        ),
        pytest.param(
            "server start --port 1", "Unknown flag --port. Put -- before the flags of the server.", id="flag of serve"
        ),
        pytest.param("run --nme x", "Unknown flag --nme. Did you mean --name?\n", id="flag before a command"),
        pytest.param("squeue", "Fairlead has no command 'squeue': `fairlead list` shows", id="of Slurm"),
        pytest.param("stop x", "Fairlead has no command 'stop': `fairlead suspend NAME` stops", id="of another tool"),
        pytest.param("run", "No command given. Put it after --", id="nothing to run"),
        pytest.param("wait x --for Done", "'Done' is not a phase; the phases are Creating,", id="phase"),
        pytest.param("config set colour red", "There is no key 'colour'; the keys are url,", id="configuration key"),
        pytest.param("completion tcsh", "Completion is available for bash, zsh, fish, not for 'tcsh'.", id="shell"),
    ],
)
def test_invalid_arguments_are_explained(words: str, want: str, tmp_path: Path) -> None:
    called = call(*words.split(), home=tmp_path)
    assert called.code == USAGE
    assert called.out == ""
    assert called.err.startswith(f"fairlead: {want}")
    assert "--help`" in called.err


def test_verbs_are_shown_when_none_is_given(tmp_path: Path) -> None:
    called = call("training", home=tmp_path)
    assert called.code == USAGE
    assert "submit" in called.out


def test_nothing_at_all_shows_the_overview(tmp_path: Path) -> None:
    called = call(home=tmp_path)
    assert called.code == OK
    for noun, entry in NOUNS.items():
        assert (f"\n  {noun} " in called.out) == bool(entry.group)
    for kind in load_kinds().values():
        assert f"\n  {' '.join(kind.command)} " in called.out
    assert [line for line in called.out.splitlines() if len(line) > 80] == []


def test_flags_may_precede_the_noun(tmp_path: Path) -> None:
    called = call("--config-path", str(tmp_path / "here"), "-q", "config", "path", home=tmp_path)
    assert called.out == f"{tmp_path}/here/config.json\n"


def test_without_a_server_the_way_to_one_is_said(tmp_path: Path) -> None:
    called = call("training", "list", home=tmp_path)
    assert called.code == UNREACHABLE
    assert f"No server is running on this machine (data folder {tmp_path}/.local/share/fairlead)" in called.err
    assert "fairlead server start" in called.err


def test_exit_codes_are_documented(tmp_path: Path) -> None:
    called = call("help", "exit-codes", home=tmp_path)
    assert called.code == OK
    for code, _ in EXIT_CODES:
        assert f"\n  {code} " in called.out


def test_an_unknown_kind_of_command_raises_a_usage_error() -> None:
    with pytest.raises(UsageError):
        find_command(["nonsense"])


def load_modules(*arguments: str) -> str:
    """What is imported when a command has run."""
    code = "import sys; from fairlead.cli.__main__ import main; main(sys.argv[1:]); print(sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_the_overview_needs_no_server() -> None:
    heavy = {"msgspec", "asyncio", "starlette", "http.client", "yaml", "dataclasses", "inspect"}
    loaded = load_modules("training", "submit", "--help")
    assert [name for name in heavy if f"'{name}'" in loaded] == []


def test_convert_of_a_file_needs_neither_client_nor_engine(tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --job-name=x\ntrue\n")
    heavy = {"asyncio", "http.client", "socket", "fairlead.client.client", "fairlead.engines"}
    loaded = load_modules("convert", str(script))
    assert [name for name in heavy if f"'{name}'" in loaded] == []


def test_help_by_name(tmp_path: Path) -> None:
    assert call("help", "wait", home=tmp_path).out == call("wait", "--help", home=tmp_path).out
    assert call("help", "training", home=tmp_path).out == call("training", home=tmp_path).out
    assert call("help", home=tmp_path).out == call("--help", home=tmp_path).out


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("list", "--type", "trainning"), "'trainning' is not a type of workload; the types are Training, "),
        (("list", "--type", "trainning"), "Did you mean training"),
        (("list", "--framework", "pytorh"), "'pytorh' is not a framework; "),
        (("list", "--status", "runing"), "Did you mean Running"),
    ],
)
def test_unknown_values_are_errors_with_a_suggestion(tmp_path: Path, words: tuple[str, ...], want: str) -> None:
    called = call(*words, home=tmp_path)
    assert called.code == USAGE
    assert want in called.err
