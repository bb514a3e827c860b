"""The noun `cluster`: list clusters, add further ones to a server, connect and remove them."""

import base64
from pathlib import Path
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.organization import lists
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession
from fairlead.client.json_object import Json
from fairlead.formats.kubeconfig import FILES, find_entries, render_kubeconfig
from fairlead.model.errors import Invalid

_BASE = "/api/v1/clusters"


def commands(noun: str) -> tuple[Command, ...]:
    kubeconfig = Flag("kubeconfig", "Kubeconfig of the cluster; - is standard input", placeholder="FILE")
    context = Flag("context", "Context of the kubeconfig (default: its current one)", placeholder="NAME")
    local = Flag("local", "Add the server's own machine as a cluster", "boolean")
    takes_name: dict[str, Any] = {"usage": "NAME", "min_names": 1, "max_names": 1}
    return (
        *lists.commands(noun),
        Command("add", "Add a cluster to the server", _add, (kubeconfig, context, local), **takes_name),
        Command(
            "connect", "Give a cluster a kubeconfig", _connect, (kubeconfig, context), **takes_name, completes=noun
        ),
        Command(
            "remove",
            "Remove a cluster that has no projects",
            _remove,
            **takes_name,
            aliases=("delete",),
            completes=noun,
        ),
    )


def _add(invocation: Invocation) -> int:
    is_local = bool(invocation.get("local"))
    if is_local is bool(invocation.get("kubeconfig")):
        raise UsageError("Pass the cluster's kubeconfig with --kubeconfig FILE, or --local for the server's machine.")
    body: Json = {"name": invocation.names[0], "engine": "local" if is_local else "kubernetes"}
    if not is_local:
        body["kubeconfig"] = _read(invocation)
    session = ServerSession(invocation)
    session.client.request("POST", _BASE, body)
    session.console.say(
        f"Added cluster {body['name']}, with the department {body['name']}. Create a project in it with "
        f"`fairlead project create NAME --cluster {body['name']}`."
    )
    session.close()
    return OK


def _connect(invocation: Invocation) -> int:
    kubeconfig = _read(invocation)
    session = ServerSession(invocation)
    cluster = session.find_cluster(invocation.names[0])
    session.client.request("PUT", f"{_BASE}/{cluster['uuid']}", {"name": cluster["name"], "kubeconfig": kubeconfig})
    session.console.say(f"Cluster {cluster['name']} has a new kubeconfig.")
    session.close()
    return OK


def _remove(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    cluster = session.find_cluster(invocation.names[0])
    session.client.request("DELETE", f"{_BASE}/{cluster['uuid']}")
    session.console.say(f"Removed cluster {cluster['name']}. Nothing was deleted in the cluster itself.")
    session.close()
    return OK


def _read(invocation: Invocation) -> str:
    """The part of the kubeconfig that the context needs, with the content of the files that it names."""
    path = invocation.get("kubeconfig")
    if not path:
        raise UsageError("Pass the kubeconfig with --kubeconfig FILE.")
    try:
        entries = find_entries(read_text(invocation, path), invocation.get("context") or "")
    except Invalid as error:
        raise UsageError(f"{path}: the kubeconfig {error.issues[0].details}.") from None
    if "exec" in entries.user or "auth-provider" in entries.user:
        raise UsageError(
            f"{path}: its user runs a command (exec), which the server cannot run. Create a service account with a "
            "token for the server (docs/several-clusters.md)."
        )
    folder = Path(path).absolute().parent
    return render_kubeconfig(_inline(entries.cluster, folder), _inline(entries.user, folder))


def _inline(part: Json, folder: Path) -> Json:
    """The part with the content of files instead of their names."""
    inlined = dict(part)
    for name, instead in FILES.items():
        if part.get(name):
            try:
                content = (folder / str(part[name])).read_bytes()
            except OSError as error:
                raise UsageError(f"{part[name]} cannot be read: {error.strerror}.") from None
            inlined[instead] = content.decode().strip() if instead == "token" else base64.b64encode(content).decode()
    return inlined
