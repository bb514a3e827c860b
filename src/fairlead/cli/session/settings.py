"""The configuration of the command line: a small JSON file with the server's address and defaults.

`--config-path`, `--config-file` and their environment variables (Run:ai's names work too) say where it is. The rules
are those of `fairlead.client.access.discovery`, with the flags of a command.
"""

import json

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.client.access import discovery
from fairlead.client.access.tokens import write_private

#: The keys, and what each is for.
KEYS: dict[str, str] = {
    "url": "Address of the server (default: the server on this machine)",
    "project": "Default project on this server",
    "cluster": "Default cluster on this server",
    "output": "Default output format: table, wide, json, yaml or name",
    "ca-file": "File with the certificate authority of the server",
}


def surroundings_of(invocation: Invocation) -> discovery.Surroundings:
    environment = invocation.environment
    return discovery.Surroundings(environment.environ, environment.folder, invocation.parsed.values)


def config_path(invocation: Invocation) -> str:
    return discovery.config_path(surroundings_of(invocation))


def data_folder(invocation: Invocation) -> str:
    """The data folder of the server on this machine."""
    return discovery.data_folder(surroundings_of(invocation))


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


def load_settings(invocation: Invocation) -> dict[str, str]:
    """The configuration; empty if there is no file."""
    try:
        return discovery.load_config(surroundings_of(invocation))
    except discovery.BadConfiguration as error:
        raise UsageError(str(error)) from error


def record_setting(invocation: Invocation, key: str, value: str | None) -> None:
    """Set or remove one value; the default project and cluster only for the server of this call."""
    load_settings(invocation)
    around = surroundings_of(invocation)
    settings = discovery.load_config_file(around)
    place = discovery.server_place(around, settings)
    is_other = key in discovery.OF_SERVER and discovery.is_other_server(around, settings)
    of_servers: dict[str, dict[str, str]] = settings.pop(discovery.SERVERS, {})
    of_servers.setdefault(place, {}).pop(key, None)
    values = of_servers[place] if is_other else settings
    values.pop(key, None)
    if value is not None:
        values[key] = value
    of_servers = {server: kept for server, kept in of_servers.items() if kept}
    content = {**settings, discovery.SERVERS: of_servers} if of_servers else settings
    write_private(config_path(invocation), json.dumps(content, indent=1) + "\n")
