"""`attach`: the terminal of a pod's main process, and how to leave it. `run -it` uses it too."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK, RUN_FAILED
from fairlead.cli.pods.exec import POD_FLAGS, find_with_pod, open_in_pod
from fairlead.cli.pods.terminal_session import DETACH_KEYS, SessionEnd, redraw, run_session
from fairlead.cli.session.session import ServerSession
from fairlead.client.json_object import Json

_RUNNING = "Running"


def commands(_noun: str) -> tuple[Command, ...]:
    return (verb()._replace(verb=""),)


def verb() -> Command:
    return Command(
        "attach",
        "Attach to a pod's main process",
        _attach,
        POD_FLAGS,
        "NAME",
        1,
        1,
        details=f"{DETACH_KEYS} detaches from a pod with a terminal, Ctrl-C from others; both leave it running. "
        "If the process ends, the exit code is its own. "
        "Input needs a pod that was submitted with --stdin, a terminal one with --tty.",
        completes="workload",
    )


def _attach(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    try:
        ended = attach_to(session, find_with_pod(session, invocation.names[0]))
        return RUN_FAILED if ended.is_cut else ended.code or OK
    finally:
        session.close()


def attach_to(session: ServerSession, workload: Json, *, from_start: bool = False) -> SessionEnd:
    """Say what this attaches to and how to leave, and pass bytes until the process ends or the user leaves."""
    streams = session.main_spec(workload)
    takes_input = bool(streams.get("stdin"))
    pod = _pod_name(session, workload)
    is_typed = session.invocation.environment.stdin.isatty()
    has_terminal = bool(streams.get("tty")) and is_typed
    keys = DETACH_KEYS if has_terminal else "Ctrl-C"
    duplex = open_in_pod(session, workload, "attach", "fromStart=true" if from_start else "")
    try:
        notice = f"Attached to {pod}. {keys} detaches and leaves it running." if is_typed else ""
        if not takes_input:
            notice = f"Attached to the new output of {pod}, which takes no input. {keys} detaches."

        def begin() -> None:
            if notice:
                # A raw terminal does not return to the first column by itself.
                session.console.say(notice + ("\r" if has_terminal else ""))
            if has_terminal:
                redraw(duplex)

        ended = run_session(
            duplex, stdin=takes_input, with_terminal=has_terminal, can_detach=has_terminal, on_ready=begin
        )
    except KeyboardInterrupt:
        ended = SessionEnd(is_detached=True)
    finally:
        duplex.close()
    _report_end(session, workload, ended)
    return ended


def _pod_name(session: ServerSession, workload: Json) -> str:
    if session.invocation.get("pod"):
        return f"pod {session.invocation.get('pod')}"
    running = [pod["name"] for pod in session.client.pods(workload["id"]) if pod.get("k8sPhase") == _RUNNING]
    if len(running) > 1:
        return f"the first of {len(running)} running pods of {workload['name']}"
    return f"pod {running[0]}" if running else str(workload["name"])


def _report_end(session: ServerSession, workload: Json, ended: SessionEnd) -> None:
    if ended.is_detached:
        session.console.say(f"\nDetached. {workload['name']} keeps running.")
    elif ended.is_cut:
        session.console.complain("\nThe connection to the pod was lost.")
    else:
        code = f" with exit code {ended.code}" if ended.code else ""
        session.console.say(f"The main process of {workload['name']} has ended{code}.")
