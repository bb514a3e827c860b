"""The configuration of the command line: where it is, and what may be in it."""

import json
import stat
from pathlib import Path

import pytest

from fairlead.cli.exit_codes import OK, USAGE
from tests.unit.cli.calling import call


def test_values_are_kept(tmp_path: Path) -> None:
    assert call("config", "set", "project", "team-a", home=tmp_path).err == "project is now team-a.\n"
    assert call("config", "get", "project", home=tmp_path).out == "team-a\n"
    assert json.loads(call("config", "list", "--json", home=tmp_path).out)[1]["value"] == "team-a"
    call("config", "unset", "project", home=tmp_path)
    assert call("config", "get", "project", home=tmp_path).out == ""


def test_a_project_belongs_to_its_server(tmp_path: Path) -> None:
    call("config", "set", "project", "mine", home=tmp_path)
    call("config", "set", "output", "wide", home=tmp_path)
    call("config", "set", "project", "lab", "--data-dir", "/srv/a", home=tmp_path)
    call("config", "set", "project", "far", home=tmp_path, FAIRLEAD_URL="https://far.example/")

    def get(key: str, *flags: str, folder: str = "") -> str:
        return call("config", "get", key, *flags, home=tmp_path, FAIRLEAD_DATA_DIR=folder).out.strip()

    assert get("project") == "mine"
    assert get("project", "--data-dir", "/srv/a") == get("project", folder="/srv/a") == "lab"
    assert get("project", "--url", "https://far.example") == "far"
    assert get("project", "--data-dir", "/srv/b") == ""
    assert get("output", "--data-dir", "/srv/b") == "wide"
    call("config", "unset", "project", "--data-dir", "/srv/a", home=tmp_path)
    assert (get("project", "--data-dir", "/srv/a"), get("project")) == ("", "mine")


def test_a_project_stays_when_its_server_becomes_the_configured_one(tmp_path: Path) -> None:
    call("config", "set", "project", "far", "--url", "https://far.example", home=tmp_path)
    call("config", "set", "url", "https://far.example", home=tmp_path)
    assert call("config", "get", "project", home=tmp_path).out == "far\n"
    call("config", "set", "project", "other", home=tmp_path)
    assert call("config", "get", "project", home=tmp_path).out == "other\n"


@pytest.mark.parametrize(
    ("key", "value", "want"),
    [
        ("url", "not-a-url", "url must be an address such as https://"),
        ("url", "ftp://lab", "it must start with http:// or https://"),
        ("url", "http://:80", "'http://:80' is not a server address"),
        ("output", "jsn", "Did you mean json?"),
        ("ca-file", "nothing.pem", "nothing.pem is not a readable file of certificates"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(key: str, value: str, want: str, tmp_path: Path) -> None:
    called = call("config", "set", key, value, home=tmp_path)
    assert (called.code != OK, want in called.err) == (True, True), called
    assert call("config", "get", key, home=tmp_path).out == ""


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    call("config", "set", "url", "https://x", home=tmp_path)
    path = tmp_path / ".config" / "fairlead" / "config.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_where_it_is(tmp_path: Path) -> None:
    default = f"{tmp_path}/.config/fairlead/config.json\n"
    assert call("config", "path", home=tmp_path).out == default
    assert call("config", "path", home=tmp_path, XDG_CONFIG_HOME="/x").out == "/x/fairlead/config.json\n"
    assert call("config", "path", home=tmp_path, RUNAI_CLI_CONFIG_PATH="/y").out == "/y/config.json\n"
    assert call("config", "path", home=tmp_path, RUNAI_CLI_CONFIG_FILE="c.json").out.endswith("/fairlead/c.json\n")
    assert call("config", "path", "--config-file", "d.json", home=tmp_path).out.endswith("/fairlead/d.json\n")


@pytest.mark.parametrize("damage", ["{", "[]", '{"servers": []}', '{"servers": {"https://x": "y"}}'])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / ".config" / "fairlead" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    called = call("config", "list", home=tmp_path)
    assert called.code == USAGE
    assert str(path) in called.err


def test_data_goes_out_without_colour_where_it_is_unwanted(tmp_path: Path) -> None:
    called = call("config", "list", home=tmp_path, terminal=True, NO_COLOR="1")
    assert called.code == OK
    assert "\x1b" not in called.out
