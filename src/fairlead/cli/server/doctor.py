"""`doctor`: checks that a cluster or this machine has what workloads need, and says how to fix what is missing."""

from collections.abc import Callable
from typing import NamedTuple

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import OUTPUT, Flag
from fairlead.cli.server.server_checks import check_server, restart_with_flags
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import data_folder
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.client import ClientError
from fairlead.client.access.local import is_personal_folder, load_flags, load_local, read_flag
from fairlead.engines.kubernetes.install.doctor import examine as examine_cluster
from fairlead.engines.local.doctor import examine as examine_machine
from fairlead.model.finding import RESTART, Finding

_LOCAL, _KUBERNETES = "local", "kubernetes"
_MARKS = {"ok": "ok", "note": "note", "missing": "MISSING"}
_FLAGS = (
    Flag(
        "engine", "Engine to check (default: that of your server)", choices=(_LOCAL, _KUBERNETES), placeholder="ENGINE"
    ),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
)


class Checks(NamedTuple):
    """What is asked about each engine."""

    #: (data folder, whether its server is personal) → findings.
    machine: Callable[[str, bool], list[Finding]] = examine_machine
    #: (kubeconfig, id of the server's own cluster) → findings.
    cluster: Callable[[str, str], list[Finding]] = examine_cluster


_CHECKS = Checks()


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command("", "Check that a cluster or this machine has what workloads need", run_doctor, (*_FLAGS, *OUTPUT)),
    )


def run_doctor(invocation: Invocation, checks: Checks = _CHECKS) -> int:
    examined = _examine(invocation, checks)
    out = invocation.environment.stdout
    form = chosen_format(invocation, {})
    if form in ("json", "yaml"):
        names = ("what", "state", "found", "advice")
        rows = [{name: getattr(each, name) for name in names} for each in examined]
        out.write(render(Console(invocation), form, rows) + "\n")
    else:
        width = max(len(each.what) for each in examined)
        for each in examined:
            out.write(f"{_MARKS[each.state]:8}{each.what:{width}}  {each.found}\n")
            if each.advice and each.state != "ok":
                out.write(f"{'':8}{'':{width}}  → {each.advice}.\n")
    return FAILED if any(each.state == "missing" for each in examined) else OK


def _examine(invocation: Invocation, checks: Checks) -> list[Finding]:
    if _engine(invocation) == _LOCAL:
        if not invocation.get("engine") and ServerSession(invocation).is_of_machine:
            return check_server(invocation)
        folder = data_folder(invocation)
        of_machine = checks.machine(folder, is_personal_folder(folder))
        return [*check_server(invocation), *(_with_recorded_flags(each, invocation) for each in of_machine)]
    return checks.cluster(invocation.get("kubeconfig", ""), _own_cluster(invocation))


def _with_recorded_flags(finding: Finding, invocation: Invocation) -> Finding:
    """Advice that adds a flag to the server keeps the others; a server with declared nodes needs no more of them."""
    flags = load_flags(data_folder(invocation))
    declaring = [name for name in ("--node", "--nodes") if read_flag(flags, name)]
    if RESTART in finding.advice and declaring:
        return Finding(finding.what, finding.state, f"{finding.found}; the server has declared nodes ({declaring[0]})")
    advice = finding.advice.replace(RESTART, restart_with_flags(invocation))
    return Finding(finding.what, finding.state, finding.found, advice)


def _engine(invocation: Invocation) -> str:
    """The one asked for; else that of the server of the data folder; else a cluster, if a kubeconfig names one."""
    if invocation.get("engine") or invocation.get("kubeconfig"):
        return str(invocation.get("engine") or _KUBERNETES)
    local = load_local(data_folder(invocation))
    if local is not None and local.engine:
        return local.engine
    return _KUBERNETES if invocation.environment.environ.get("KUBECONFIG") else _LOCAL


def _own_cluster(invocation: Invocation) -> str:
    """The cluster's id on the server of the data folder; empty if none runs, or if it has another engine."""
    local = load_local(data_folder(invocation))
    if local is None or local.engine != _KUBERNETES:
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
