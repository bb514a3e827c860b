"""Which server a client talks to, and as whom: the same rules for `fairlead.Client()` and for the command line.

The address is the given one, else that of `FAIRLEAD_URL`, else the configured one, else that of this machine's server.
"""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from fairlead.client.access.local import load_credentials, load_local
from fairlead.client.access.machine import MachineServer, sign_in
from fairlead.client.access.tokens import Credentials, TokenFile, application
from fairlead.client.access.urls import MACHINES_OWN, Trust
from fairlead.client.errors import ClientError, NotLoggedIn, Unreachable
from fairlead.client.json_object import Json

_NO_SERVER = (
    "No server is running on this machine (data folder {folder}) and no address is configured.\n"
    "Start one with `{start}`, or set the address with {how} or `fairlead config set url URL`."
)


#: Settings that name objects of one server. `SERVERS` in the configuration has those of each server; beside it they
#: hold for the server that a call without an address and without a data folder talks to.
OF_SERVER, SERVERS = ("project", "cluster"), "servers"
_NAMING = ("FAIRLEAD_URL", "FAIRLEAD_DATA_DIR")


class BadConfiguration(ClientError):
    """The configuration file cannot be read."""


class Surroundings(NamedTuple):
    """Where a client looks: the environment, the folder of the call, and what was given, by the names of flags."""

    environ: Mapping[str, str]
    folder: str
    given: Mapping[str, object] = {}

    def find(self, flag: str, *variables: str) -> str | None:
        """What was given for a flag, else the first of these environment variables that is set."""
        values = (self.given.get(flag), *(self.environ.get(name) for name in variables))
        return next((str(value) for value in values if value), None)


class ServerAccess(NamedTuple):
    """A server, and how to log in to it."""

    url: str
    credentials: Credentials | None = None
    token: str | None = None
    cache: TokenFile | None = None
    trust: Trust = MACHINES_OWN
    #: The default project, by name or id.
    project: str | None = None
    #: Whether it is the shared server of this machine, which knows us by our account.
    is_of_machine: bool = False
    #: Whether it is this machine's own server that runs every job as its owner.
    is_personal: bool = False


def config_folder(around: Surroundings) -> str:
    given = around.find("config-path", "FAIRLEAD_CLI_CONFIG_PATH", "RUNAI_CLI_CONFIG_PATH")
    if given:
        return os.path.join(around.folder, os.path.expanduser(given))
    environ = around.environ
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "fairlead")


def config_path(around: Surroundings) -> str:
    name = around.find("config-file", "FAIRLEAD_CLI_CONFIG_FILE", "RUNAI_CLI_CONFIG_FILE")
    return os.path.join(config_folder(around), name or "config.json")


def data_folder(around: Surroundings) -> str:
    """The data folder of the server on this machine."""
    given = around.find("data-dir", "FAIRLEAD_DATA_DIR")
    if given:
        return os.path.abspath(os.path.join(around.folder, os.path.expanduser(given)))
    environ = around.environ
    return os.path.join(environ.get("XDG_DATA_HOME") or os.path.join(home(environ), ".local", "share"), "fairlead")


def home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def token_path(around: Surroundings) -> str:
    return os.path.join(config_folder(around), "tokens.json")


def load_config(around: Surroundings) -> dict[str, str]:
    """The configuration as it holds for the server of this call; empty if there is no file."""
    content = load_config_file(around)
    of_servers = content.pop(SERVERS, {})
    if is_other_server(around, content):
        content = {key: value for key, value in content.items() if key not in OF_SERVER}
    return {**content, **of_servers.get(server_place(around, content), {})}


def server_place(around: Surroundings, content: Mapping[str, object]) -> str:
    """The server of this call, as the configuration names it: its address, or its data folder."""
    url = around.find("url", "FAIRLEAD_URL") or content.get("url")
    return str(url).rstrip("/") if url else data_folder(around)


def is_other_server(around: Surroundings, content: Mapping[str, object]) -> bool:
    """Whether the call names another server than the configuration does."""
    plain = around._replace(given={}, environ={**around.environ, **dict.fromkeys(_NAMING, "")})
    return server_place(around, content) != server_place(plain, content)


def load_config_file(around: Surroundings) -> Json:
    """The content of the configuration file; empty if there is none."""
    path = config_path(around)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadConfiguration(f"The configuration {path} cannot be read: {error}. Fix or delete it.") from error
    if not isinstance(content, dict):
        raise BadConfiguration(f"The configuration {path} is not a JSON object. Fix or delete it.")
    servers = content.get(SERVERS, {})
    if not isinstance(servers, dict) or not all(isinstance(of_server, dict) for of_server in servers.values()):
        raise BadConfiguration(f"{SERVERS} in the configuration {path} must be an object of objects. Fix or delete it.")
    return content


def sign_in_to_machine(around: Surroundings) -> MachineServer | None:
    """Sign in to the shared server of this machine; None if there is none, or if a data folder is given.

    A named data folder means its own server, also while that is stopped.
    """
    return None if around.find("data-dir", "FAIRLEAD_DATA_DIR") else sign_in(around.environ)


def find_server(
    around: Surroundings,
    *,
    logs_in: bool = False,
    start: str = "fairlead server start",
    how: str = "the variable FAIRLEAD_URL",
) -> ServerAccess:
    """The given, configured or local server, and how to log in to it.

    `logs_in` is for a login, whose token belongs into the configuration; `start` and `how` go into the message of
    Unreachable if there is no server.
    """
    settings = load_config(around)
    folder = data_folder(around)
    given = around.find("url", "FAIRLEAD_URL") or settings.get("url")
    project = around.find("project", "FAIRLEAD_PROJECT") or settings.get("project")
    local = load_local(folder)
    url = (given or (local.url if local else "")).rstrip("/")
    if not url:
        machine = sign_in_to_machine(around)
        if machine is None:
            raise Unreachable(_NO_SERVER.format(folder=folder, start=start, how=how))
        if not machine.url:
            raise NotLoggedIn(f"The server of this machine did not sign you in: {machine.error}.")
        token = around.environ.get("FAIRLEAD_TOKEN") or machine.token
        trust = Trust(settings.get("ca-file"), machine.certificate)
        return ServerAccess(machine.url, None, token, None, trust, project, is_of_machine=True)
    if local and local.url.rstrip("/") != url:
        local = None
    return ServerAccess(
        url,
        _from_environment(around.environ) or (load_credentials(folder) if local else None),
        around.environ.get("FAIRLEAD_TOKEN"),
        _token_cache(around, url, of_local_server=local is not None and not logs_in),
        Trust(settings.get("ca-file"), local.certificate if local else None),
        project,
        is_personal=local is not None and local.personal,
    )


def _token_cache(around: Surroundings, url: str, *, of_local_server: bool) -> TokenFile:
    """The configuration's, where a login is; else the data folder's, whose token is valid while its server runs."""
    cache = TokenFile(token_path(around))
    if of_local_server and cache.load(url) is None:
        return TokenFile(os.path.join(data_folder(around), "cli-tokens.json"))
    return cache


def _from_environment(environ: Mapping[str, str]) -> Credentials | None:
    name, secret = environ.get("FAIRLEAD_CLIENT_ID"), environ.get("FAIRLEAD_CLIENT_SECRET")
    return application(name, secret) if name and secret else None
