"""`exec` and `bash`: run commands in a pod as if they ran here. The exit code is that of the remote command."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import RUN_FAILED
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.pods.terminal_session import run_session, window
from fairlead.cli.pods.waiting import check_container, wait_for_pod
from fairlead.cli.session.session import ServerSession
from fairlead.client.access.urls import quote
from fairlead.client.duplex import Duplex, open_duplex
from fairlead.client.json_object import Json

_CUT = "The connection to the pod was lost before the command ended."

POD_FLAGS = (
    PROJECT,
    Flag("pod", "Pod (default: the first that is running)", placeholder="NAME"),
    Flag("container", "Container; pods have only one", short="c", placeholder="NAME"),
    Flag("wait-timeout", "Wait at most this long for a pod to run", "duration"),
)
EXEC_FLAGS = (
    *POD_FLAGS,
    Flag("stdin", "Pass standard input to the command", "boolean", "i"),
    Flag("tty", "Allocate a terminal", "boolean", "t"),
)


def commands(noun: str) -> tuple[Command, ...]:
    by_verb = {command.verb: command for command in verbs()}
    return (by_verb[noun]._replace(verb=""),)


def verbs() -> tuple[Command, ...]:
    """The verbs of this module."""
    return (
        Command(
            "exec",
            "Run a command in a pod",
            _exec,
            EXEC_FLAGS,
            "NAME",
            1,
            1,
            trailing="COMMAND [ARGUMENT...]",
            details="The exit code is that of the command.",
            completes="workload",
        ),
        Command("bash", "Open a shell in a pod", _bash, EXEC_FLAGS, "NAME", 1, 1, completes="workload"),
    )


def _exec(invocation: Invocation) -> int:
    command = invocation.parsed.trailing
    if not command:
        raise UsageError("No command given. Put it after --, as in: fairlead exec NAME -- nvidia-smi")
    return _run(invocation, command, bool(invocation.get("stdin")), bool(invocation.get("tty")))


def _bash(invocation: Invocation) -> int:
    has_terminal = invocation.environment.stdin.isatty()
    shell = ["/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"]
    return _run(invocation, shell, invocation.get("stdin", True), invocation.get("tty", has_terminal))


def _run(invocation: Invocation, command: list[str], stdin: bool, with_terminal: bool) -> int:
    session = ServerSession(invocation)
    try:
        workload = find_with_pod(session, invocation.names[0])
        duplex = open_command(session, workload, command, stdin=stdin, with_terminal=with_terminal)
        try:
            ended = run_session(duplex, stdin=stdin, with_terminal=with_terminal)
        finally:
            duplex.close()
        if ended.code is None:
            session.console.complain(_CUT)
            return RUN_FAILED
        return ended.code
    finally:
        session.close()


def find_with_pod(session: ServerSession, name: str) -> Json:
    """The workload with that name, after the wait that was asked for; its container is checked."""
    workload = session.workload(name)
    if session.invocation.get("wait-timeout"):
        wait_for_pod(session, workload["id"], session.invocation.get("wait-timeout"))
    check_container(session, workload)
    return workload


def open_command(
    session: ServerSession, workload: Json, command: list[str], *, stdin: bool, with_terminal: bool
) -> Duplex:
    """Start a command in a pod of the workload."""
    columns, rows = window()
    query = "&".join(f"command={quote(word)}" for word in command)
    options = f"stdin={_yes(stdin)}&tty={_yes(with_terminal)}&columns={columns}&rows={rows}"
    return open_in_pod(session, workload, "exec", f"{query}&{options}")


def open_in_pod(session: ServerSession, workload: Json, verb: str, query: str) -> Duplex:
    """Open a stream to the pod that --pod names, or to the first that runs."""
    pod = session.invocation.get("pod")
    named = f"pod={quote(pod)}" if pod else ""
    return open_duplex(
        session.client, f"/api/v1/workloads/{workload['id']}/{verb}", "&".join(part for part in (query, named) if part)
    )


def _yes(value: bool) -> str:
    return "true" if value else "false"
