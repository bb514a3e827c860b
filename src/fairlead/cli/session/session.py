"""A command's connection to the server: which server, which user, which project; and finding objects by name."""

import time
from collections.abc import Iterable, Sequence

from fairlead import __version__
from fairlead.cli.command import Invocation
from fairlead.cli.session.settings import data_folder, load_settings, next_command, surroundings_of
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.client import Client, NameNotFound, Unreachable
from fairlead.client.access.discovery import find_server, sign_in_to_machine, token_path
from fairlead.client.access.local import load_local
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.suggest import suggest

#: Seconds to wait for a server that went away, and seconds between two attempts.
_PATIENCE = 60.0
_PAUSE = 0.1


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

    @property
    def is_of_machine(self) -> bool:
        """Whether the server of this session is the shared one of this machine, which knows us by our account."""
        if self.configured_url or load_local(data_folder(self.invocation)) is not None:
            return False
        return sign_in_to_machine(surroundings_of(self.invocation)) is not None

    @property
    def configured_url(self) -> str:
        """The address that a flag, the environment or the configuration names; empty for the server of this machine."""
        environ = self.invocation.environment.environ
        return str(self.invocation.get("url") or environ.get("FAIRLEAD_URL") or self.settings.get("url") or "")

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server is configured or this machine has a shared one, so that none is started."""
        return bool(self.configured_url) or self.is_of_machine

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
        around = surroundings_of(self.invocation)
        if url:
            around = around._replace(given={**around.given, "url": url})
        start = next_command(self.invocation, "server start")
        access = find_server(around, logs_in=self._logs_in, start=start, how="--url URL")
        return Client(access, timeout=self.invocation.get("wait-for-submit", 60.0))

    def cluster(self) -> Json:
        """The cluster that the flag or the configuration names, or else the first one of the server."""
        name = self.invocation.get("cluster") or self.settings.get("cluster")
        return self.find_cluster(str(name)) if name else self.client.clusters()[0]

    def find_cluster(self, name: str) -> Json:
        """The cluster with that name or id."""
        return find_named([{**row, "id": row["uuid"]} for row in self.client.clusters()], name, "cluster")

    def show(self, content: object, name: str) -> bool:
        """Print a record as JSON, YAML or name if the user asked for that; returns whether it was printed."""
        form = chosen_format(self.invocation, self.settings)
        if form == "name":
            self.console.data(name)
        elif form in ("json", "yaml"):
            self.console.data(render(self.console, form, content))
        return form in ("name", "json", "yaml")

    def token_path(self) -> str:
        return token_path(surroundings_of(self.invocation))

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
        return self.client.project()

    def workload(self, name: str, title: str | None = None) -> Json:
        """The workload with that name or id in the project, and with the type if one is given."""
        return self.client.find_workload(name, title=title)

    def main_spec(self, workload: Json) -> Json:
        """The part of a workload's spec with its main process; empty if this version does not know its type."""
        kind = next((key for key, entry in load_kinds().items() if entry.title == workload["type"]), None)
        if kind is None:
            return {}
        client = self.client.kind(kind)
        spec = client.get(workload["id"]).get("spec") or {}
        return (spec.get(client.entry.command_member) or {}) if client.entry.command_member else spec

    def was_deleted(self, name: str) -> bool:
        """Whether a workload with that name was in the project and is deleted."""
        return bool(self.deleted_workloads(name))

    def deleted_workloads(self, name: str) -> list[Json]:
        """The deleted workloads with that name in the project, the newest first."""
        filters = [f"name=={name}", f"projectId=={self.project()['id']}"]
        page = self.client.workloads(filterBy=filters, deleted=True, sortBy="createdAt", sortOrder="desc")
        deleted: list[Json] = page["workloads"]
        return deleted


def _series(version: str) -> Iterable[str]:
    return version.split(".")[:2]
