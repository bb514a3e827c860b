"""`doctor`: checks that a cluster has what workloads need, and says how to fix what is missing."""

import json
from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag
from fairlead.cli.session.local import load_local
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import data_folder
from fairlead.client import ClientError
from fairlead.engines.kubernetes.install.checks import Finding
from fairlead.engines.kubernetes.install.doctor import examine

_ENGINES = ("kubernetes",)
_MARKS = {"ok": "ok", "note": "note", "missing": "MISSING"}
_FLAGS = (
    Flag("engine", "Engine to check", choices=_ENGINES, default=_ENGINES[0], placeholder="ENGINE"),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("json", "Print the findings as JSON", "boolean"),
)


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Check that a cluster has what workloads need", run_doctor, flags=_FLAGS),)


def run_doctor(invocation: Invocation, examine: Callable[[str, str], list[Finding]] = examine) -> int:
    examined = examine(invocation.get("kubeconfig", ""), _own_cluster(invocation))
    out = invocation.environment.stdout
    if invocation.get("json"):
        names = ("what", "state", "found", "advice")
        out.write(json.dumps([{name: getattr(each, name) for name in names} for each in examined], indent=2) + "\n")
    else:
        width = max(len(each.what) for each in examined)
        for each in examined:
            out.write(f"{_MARKS[each.state]:8}{each.what:{width}}  {each.found}\n")
            if each.advice and each.state != "ok":
                out.write(f"{'':8}{'':{width}}  → {each.advice}.\n")
    return FAILED if any(each.state == "missing" for each in examined) else OK


def _own_cluster(invocation: Invocation) -> str:
    """The cluster's id on the server of the data folder; empty if none runs, or if it has another engine."""
    local = load_local(data_folder(invocation))
    if local is None or local.engine != "kubernetes":
        return ""
    try:
        client = ServerSession(invocation).connect(local.url)
        try:
            clusters = client.clusters()
        finally:
            client.close()
    except ClientError:
        return ""
    return str(clusters[0]["uuid"]) if clusters else ""
