"""`lint FILE...` and `lint --server`: finds contradictions and traps in workloads, policies and clusters."""

import msgspec

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.files.lint_material import read_file, read_server
from fairlead.cli.files.sarif import render_sarif
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import render
from fairlead.foresight.lint.material import LintFinding, LintMaterial
from fairlead.foresight.lint.table import RULES, lint

_FORMATS = ("table", "json", "sarif")
_FLAGS = (
    Flag("server", "Check what the server has, as far as you may see it", "boolean"),
    Flag("project", "Project of workloads whose files name none", short="p", placeholder="NAME"),
    Flag("output", "Output format", short="o", choices=_FORMATS, placeholder="FORMAT", default="table"),
)
_INTRODUCTION = """\
FILE is a workload in any format that `convert` reads, except a command line, a
file of policies, a snapshot (`fairlead snapshot`) or an export (`fairlead
export`); - is standard input. All files are checked together: rules on quotas
need a snapshot or an export, rules on nodes need a snapshot.
The exit code is 0 without findings, 1 with findings and 2 for bad input.

Rules:
"""
_DETAILS = _INTRODUCTION + "\n".join(f"  {rule.id}\n      {rule.summary}" for rule in RULES)


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Find contradictions and pitfalls in files or on the server"
    return (Command("", summary, _run, _FLAGS, "[FILE...]", 0, None, details=_DETAILS),)


def _run(invocation: Invocation) -> int:
    if bool(invocation.names) == bool(invocation.get("server")):
        raise UsageError("Name the files to check, or pass --server to check what the server has.")
    console = Console(invocation)
    if invocation.get("server"):
        session = ServerSession(invocation)
        material, hidden = read_server(session.client)
        session.close()
        for line in hidden:
            console.say(f"Not checked: {line}")
    else:
        project = invocation.get("project", "")
        material = _joined([read_file(read_text(invocation, path), path, project) for path in invocation.names])
    findings = lint(material)
    _show(console, invocation.get("output", "table"), findings)
    console.say(_summary(material, findings))
    return FAILED if findings else OK


def _joined(materials: list[LintMaterial]) -> LintMaterial:
    """The material of all files. A snapshot knows everything of the cluster that an export does."""
    clusters = [each.cluster for each in materials if each.cluster is not None]
    for has_nodes, what in ((True, "snapshot"), (False, "export")):
        same = [cluster.file for cluster in clusters if (cluster.nodes is not None) is has_nodes]
        if len(same) > 1:
            raise UsageError(f"Pass one {what} at a time: {' and '.join(same)} may be of different clusters.")
    return LintMaterial(
        workloads=tuple(workload for each in materials for workload in each.workloads),
        policies=tuple(policy for each in materials for policy in each.policies),
        cluster=max(clusters, key=lambda cluster: cluster.nodes is not None, default=None),
    )


def _show(console: Console, form: str, findings: tuple[LintFinding, ...]) -> None:
    if form == "sarif":
        console.data(render(console, "json", render_sarif(findings)))
    elif form == "json":
        console.data(render(console, "json", {"findings": msgspec.to_builtins(findings)}))
    else:
        for each in findings:
            level = console.paint(each.level, "red" if each.level == "error" else "yellow")
            console.data(f"{level}  {each.rule}  {each.file}: {each.subject}: {each.path}")
            console.data(f"    {each.message}\n    {each.counter_example}")


def _summary(material: LintMaterial, findings: tuple[LintFinding, ...]) -> str:
    workloads = _count(len(material.workloads), "workload", "workloads")
    policies = _count(len(material.policies), "policy", "policies")
    cluster = material.cluster
    if cluster is None:
        known = "no cluster: to check quotas, add a snapshot or an export"
    elif cluster.nodes is None:
        known = "quotas, but no nodes: to check nodes, add a snapshot"
    else:
        known = f"a cluster of {_count(len(cluster.nodes), 'node', 'nodes')}"
    return f"Findings: {len(findings)}. Checked: {workloads} and {policies}, {known}."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
