"""A command's connection to the server: which server, which user, which project; and finding objects by name."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from fairlead import __version__
from fairlead.cli.command import Invocation
from fairlead.cli.session.local import load_credentials, load_local
from fairlead.cli.session.settings import config_folder, data_folder, load_settings, next_command
from fairlead.cli.suggest import suggest
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.client import Client, ClientError, Credentials, TokenFile, Trust, Unreachable, application
from fairlead.client.json_object import Json

_NO_SERVER = (
    "No server is running on this machine (data folder {folder}) and no address is configured.\n"
    "Start one with `{start}`, or set the address with --url URL or `fairlead config set url URL`."
)


#: Seconds to wait for a server that went away, and seconds between two attempts.
_PATIENCE = 60.0
_PAUSE = 0.1


class NameNotFound(ClientError):
    """No object has that name."""


def find_named(rows: Sequence[Json], name: str, what: str, member: str = "name") -> Json:
    """The row with that name or id, in the row or in its `meta`; `what` names the kind of object in messages."""
    known = {}
    for row in rows:
        facts = row.get("meta", row)
        if name in (facts[member], str(facts["id"])):
            return row
        known[str(facts[member])] = row
    raise NameNotFound(f"There is no {what} '{name}'.{suggest(name, known)}")


class ServerSession:
    """The connection of one invocation, opened when it is first needed."""

    def __init__(self, invocation: Invocation, *, logs_in: bool = False) -> None:
        self.invocation = invocation
        self._logs_in = logs_in
        self.console = Console(invocation)
        self.settings = load_settings(invocation)
        self._client: Client | None = None
        self._project: Json | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = self.connect()
            if self.console.is_verbose:
                self.console.complain(f"Server: {self._client.url}")
            if self.invocation.get("debug"):
                self._client.trace = self.console.complain
        return self._client

    @property
    def is_personal(self) -> bool:
        """Whether the server of this session is this machine's own and runs every job as its owner."""
        local = load_local(data_folder(self.invocation))
        return local is not None and local.personal and local.url.rstrip("/") == self.client.url.rstrip("/")

    def reconnect(self, patience: float | None = None) -> None:
        """Reconnect to the server, which may have another address now; raises Unreachable if it does not come back."""
        deadline = time.monotonic() + (_PATIENCE if patience is None else min(patience, _PATIENCE))
        while True:
            if self._client is not None:
                self._client.close()
                self._client = None
            try:
                self.client.clusters()
                return
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)

    def connect(self, url: str | None = None) -> Client:
        """A client of the given, configured or local server."""
        environ = self.invocation.environment.environ
        folder = data_folder(self.invocation)
        given = url or self.invocation.get("url") or environ.get("FAIRLEAD_URL") or self.settings.get("url")
        local = load_local(folder)
        if given is None and local is None:
            start = next_command(self.invocation, "server start")
            raise Unreachable(_NO_SERVER.format(folder=folder, start=start))
        address = str(given or (local.url if local else "")).rstrip("/")
        is_local = local is not None and local.url.rstrip("/") == address
        # A login is part of the configuration. Without one, commands use the credentials in the data folder of this
        # machine's server, and the token is valid as long as that server runs.
        cache = TokenFile(self.token_path())
        if is_local and not self._logs_in and cache.load(address) is None:
            cache = TokenFile(os.path.join(folder, "cli-tokens.json"))
        return Client(
            address,
            credentials=_from_environment(environ) or (load_credentials(folder) if is_local else None),
            token=environ.get("FAIRLEAD_TOKEN"),
            cache=cache,
            timeout=self.invocation.get("wait-for-submit", 60.0),
            trust=Trust(self.settings.get("ca-file"), local.certificate if local and is_local else None),
        )

    def show(self, content: object, name: str) -> bool:
        """Print a record as JSON, YAML or name if the user asked for that; returns whether it was printed."""
        form = chosen_format(self.invocation, self.settings)
        if form == "name":
            self.console.data(name)
        elif form in ("json", "yaml"):
            self.console.data(render(self.console, form, content))
        return form in ("name", "json", "yaml")

    def token_path(self) -> str:
        return os.path.join(config_folder(self.invocation), "tokens.json")

    def close(self) -> None:
        """Close the connection; mention a server of another version, because its answers may differ."""
        if self._client is None:
            return
        version = self._client.server_version
        if version and _series(version) != _series(__version__):
            self.console.complain(
                f"Note: this is fairlead {__version__}, but the server is {version}. "
                "Use the same version if something looks wrong."
            )
        self._client.close()

    # --- Finding by name

    def project(self) -> Json:
        """The project to work in: given, configured, or the only one that exists."""
        if self._project is None:
            self._project = self._find_project()
        return self._project

    def _find_project(self) -> Json:
        name = (
            self.invocation.get("project")
            or self.invocation.environment.environ.get("FAIRLEAD_PROJECT")
            or self.settings.get("project")
        )
        if name:
            named = self.client.projects(filterBy=[f"name=={name}"])
            if named:
                return named[0]
            names = [project["name"] for project in self.client.projects()]
            raise NameNotFound(f"There is no project '{name}'.{suggest(name, names)}")
        projects = self.client.projects(limit=2)
        if len(projects) == 1:
            return projects[0]
        for project in projects:
            if project["name"] == "default":
                return project
        raise NameNotFound("No project given. Name one with -p, or set a default with `fairlead project set NAME`.")

    def workload(self, name: str, title: str | None = None) -> Json:
        """The workload with that name or id in the project, and with the type if one is given."""
        named = self.client.workloads(filterBy=[f"name=={name}", f"projectId=={self.project()['id']}"])["workloads"]
        matching: list[Json] = [one for one in named if title in (None, one["type"])]
        if matching:
            return matching[0]
        if len(name) == 36 and name.count("-") == 4:
            return self.client.workload(name)
        others = [one["type"] for one in named]
        hint = f" The workload with that name has type {others[0]}." if others else self._near(name, title)
        what = (title or "workload").lower()
        raise NameNotFound(f"There is no {what} '{name}' in project {self.project()['name']}.{hint}")

    def was_deleted(self, name: str) -> bool:
        """Whether a workload with that name was in the project and is deleted."""
        filters = [f"name=={name}", f"projectId=={self.project()['id']}"]
        return bool(self.client.workloads(filterBy=filters, deleted=True)["workloads"])

    def _near(self, name: str, title: str | None) -> str:
        filters = [f"projectId=={self.project()['id']}"] + ([f"type=={title}"] if title else [])
        return suggest(name, [row["name"] for row in self.client.workloads(filterBy=filters, limit=500)["workloads"]])


def _from_environment(environ: Mapping[str, str]) -> Credentials | None:
    name, secret = environ.get("FAIRLEAD_CLIENT_ID"), environ.get("FAIRLEAD_CLIENT_SECRET")
    return application(name, secret) if name and secret else None


def _series(version: str) -> Iterable[str]:
    return version.split(".")[:2]
