"""The configuration of the command line: a small JSON file with the server's address and defaults.

`--config-path`, `--config-file` and their environment variables (Run:ai's names work too) say where it is.
"""

import json
import os
from collections.abc import Mapping

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.client.tokens import write_private

#: The keys, and what each is for.
KEYS: dict[str, str] = {
    "url": "Address of the server (default: the server on this machine)",
    "project": "Default project",
    "cluster": "Default cluster",
    "output": "Default output format: table, wide, json, yaml or name",
    "ca-file": "File with the certificate authority of the server",
}


def config_folder(invocation: Invocation) -> str:
    environ = invocation.environment.environ
    given = (
        invocation.get("config-path") or environ.get("FAIRLEAD_CLI_CONFIG_PATH") or environ.get("RUNAI_CLI_CONFIG_PATH")
    )
    if given:
        return os.path.join(invocation.environment.folder, os.path.expanduser(given))
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "fairlead")


def config_path(invocation: Invocation) -> str:
    environ = invocation.environment.environ
    name = (
        invocation.get("config-file")
        or environ.get("FAIRLEAD_CLI_CONFIG_FILE")
        or environ.get("RUNAI_CLI_CONFIG_FILE")
        or "config.json"
    )
    return os.path.join(config_folder(invocation), name)


def data_folder(invocation: Invocation) -> str:
    """The data folder of the server on this machine."""
    environ = invocation.environment.environ
    given = invocation.get("data-dir") or environ.get("FAIRLEAD_DATA_DIR")
    if given:
        return os.path.abspath(os.path.join(invocation.environment.folder, os.path.expanduser(given)))
    return os.path.join(environ.get("XDG_DATA_HOME") or os.path.join(home(environ), ".local", "share"), "fairlead")


def next_command(invocation: Invocation, command: str, *more: str) -> str:
    """A command to type next, with the flags of this command that select the server and the configuration.

    `more` are further flags that both commands have.
    """
    places = [(name, invocation.get(name)) for name in (*more, "config-path", "config-file", "data-dir", "url")]
    return " ".join(["fairlead", command, *(f"--{name} {_quoted(str(given))}" for name, given in places if given)])


def _quoted(text: str) -> str:
    """Quote a word for a shell. Importing `shlex` would take longer than many commands."""
    if all(letter.isalnum() or letter in "/._-:=@%+," for letter in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def load_settings(invocation: Invocation) -> dict[str, str]:
    """The configuration; empty if there is no file."""
    path = config_path(invocation)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"The configuration {path} cannot be read: {error}. Fix or delete it.") from error
    if not isinstance(content, dict):
        raise UsageError(f"The configuration {path} is not a JSON object. Fix or delete it.")
    return content


def record_setting(invocation: Invocation, key: str, value: str | None) -> None:
    """Set or remove one value."""
    settings = load_settings(invocation)
    if value is None:
        settings.pop(key, None)
    else:
        settings[key] = value
    write_private(config_path(invocation), json.dumps(settings, indent=1) + "\n")
