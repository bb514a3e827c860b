"""`run -- COMMAND`: the shortest way from a command line to a running workload, on this machine.

It starts a server if none is running; the workload uses the same REST API as every other.
"""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import INTERRUPTED, OK, RUN_FAILED
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.pods.attach import attach_to
from fairlead.cli.pods.waiting import wait_for_pod
from fairlead.cli.session import caller_environment
from fairlead.cli.session.background import find_or_start
from fairlead.cli.session.report import render_error
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.workloads import additions
from fairlead.cli.workloads.follow import follow_to_end
from fairlead.cli.workloads.notes import note_unenforced, show_plan_of, submit_checked
from fairlead.cli.workloads.spec_flags import apply_flags, as_flag, load_table
from fairlead.cli.workloads.submit_flags import (
    EXPECTED_RUNTIME,
    SUBMISSION_FLAGS,
    apply_expected_runtime,
    flags_in_errors,
)
from fairlead.client import ClientError, ServerError
from fairlead.client.commands import host_spec, name_for, set_command, set_gpus
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry, load_kinds
from fairlead.client.phases import ENDED

#: The flags for the format of a plan, the only record that `run` prints.
_PLAN_FORMATS = ("output", "json", "yaml")
#: The kind that `run` submits is the first one: work that completes.
_FLAGS = (
    PROJECT,
    Flag("name", "Name (default: made from the command)", short="n", placeholder="NAME"),
    Flag("detach", "Return at once; the command keeps running", "boolean"),
    Flag("image", "Container image (default: the command uses this machine's own files)"),
    Flag("stdin", "Pass this terminal's input to the command; -it opens a terminal", "boolean", "i"),
    Flag("gpu", "GPU devices; below 1, a fraction of one", "number"),
    EXPECTED_RUNTIME,
    *SUBMISSION_FLAGS,
    Flag(
        "env",
        "Environment variable; without a value, that of this shell",
        repeatable=True,
        placeholder="NAME[=VALUE]",
    ),
    *additions.FLAGS,
    *caller_environment.FLAGS,
    *(
        flag._replace(help=f"With --plan: {flag.help[0].lower()}{flag.help[1:]}")
        for flag in OUTPUT
        if flag.name in _PLAN_FORMATS
    ),
)
#: The statuses of an answer if no pod runs any more.
_NO_POD = (400, 404, 503)
_WAITING = ("Creating", "Pending", "Resuming")
_TEMPORARY = "/tmp"  # noqa: S108 - no file is made there


def commands(_noun: str) -> tuple[Command, ...]:
    kind = _kind()
    known = {flag.name for flag in _FLAGS} | {"command", "args"}
    spec = [as_flag(entry) for entry in load_table(kind.key)]
    flags = (
        *_FLAGS,
        *(flag._replace(short="") if flag.short == "n" else flag for flag in spec if flag.name not in known),
    )
    return (
        Command(
            "",
            "Run a command on this machine and show its output",
            _run,
            flags,
            trailing="COMMAND [ARGUMENT...]",
            details="The exit code is that of the command. Ctrl-C asks whether to detach or to stop. "
            "`fairlead run -it -- bash` opens a terminal, which Ctrl-P Ctrl-Q detaches from.",
        ),
    )


def _kind() -> KindEntry:
    return next(iter(load_kinds().values()))


def _run(invocation: Invocation) -> int:
    command = invocation.parsed.trailing
    if not command:
        raise UsageError('No command given. Put it after --, as in: fairlead run -- python3 -c "print(1)"')
    session = ServerSession(invocation)
    if invocation.get("debug") and not invocation.get("detach"):
        # Users of other command lines type -d to detach.
        session.console.say("Note: -d is --debug, which shows requests; --detach returns at once.")
    try:
        if not session.is_elsewhere:
            find_or_start(data_folder(session.invocation), None, session.console.say)
        if invocation.get("plan"):
            with flags_in_errors(_kind().key, invocation):
                show_plan_of(session, _kind().key, make_request(session, command))
            return OK
        is_here = not session.is_elsewhere or session.is_of_machine
        piped = caller_environment.read_input(invocation) if is_here else caller_environment.NO_INPUT
        created = _submit(session, command, piped)
        if invocation.get("image"):
            note_unenforced(session, created)
        if invocation.get("detach"):
            session.console.data(created["name"])
            again = next_command(invocation, f"logs -f {created['name']}", "project")
            others = " and ".join(str(name).removeprefix("any:") for name in invocation.get("after") or ())
            room = f"after {others}, as soon as there is room" if others else "as soon as there is room"
            session.console.say(f"It starts in the background {room}. Show its output with `{again}`.")
            return OK
        if not piped.is_whole:
            caller_environment.InputStream(session, created, piped).start()
        elif created["spec"].get("stdin"):
            return _attach(session, created)
        return _follow(session, created)
    except ClientError as error:
        # 1 to 7 could be exit codes of the command, so failures of `run` itself have their own code.
        session.console.complain(f"fairlead: {render_error(error)}")
        return RUN_FAILED
    finally:
        session.close()


def _submit(session: ServerSession, command: list[str], piped: caller_environment.PipedInput) -> Json:
    request = make_request(session, command)
    if not piped.is_whole:
        if session.invocation.get("detach"):
            raise UsageError(
                "The piped input is too long or has not ended, so it cannot be stored for a command in the background."
            )
        request["spec"]["stdin"] = True
    variables = caller_environment.choose_variables(
        session.invocation, is_own_server=session.is_personal or session.is_of_machine
    )
    with flags_in_errors(_kind().key, session.invocation):
        stored = caller_environment.store(session.client, variables, piped)
        return submit_checked(session, _kind().key, request, caller_environment=stored)


def _refuse_temporary_folder(session: ServerSession, spec: Json) -> None:
    """Output in a folder below /tmp would be lost: on a shared machine each job has its own."""
    invocation = session.invocation
    if invocation.get("working-dir") or invocation.get("image"):
        return
    folder = str(spec.get("workingDir", ""))
    if f"{folder}/".startswith(f"{_TEMPORARY}/") and session.is_of_machine:
        raise UsageError(
            f"Each job on this machine has its own {_TEMPORARY}, so it would not see {folder}. "
            "Call this in another folder, or name one with --working-dir."
        )


def make_request(session: ServerSession, command: list[str]) -> Json:
    """The creation request: run the command once, on this machine, in this folder."""
    invocation = session.invocation
    spec = host_spec(invocation.environment.folder)
    apply_flags(load_table(_kind().key), invocation.parsed.values, spec)
    _refuse_temporary_folder(session, spec)
    apply_expected_runtime(invocation.parsed.values, spec)
    _apply_gpu(invocation, spec)
    additions.apply_additions(invocation.parsed.values, spec)
    _apply_environment(invocation, spec)
    if not invocation.environment.stdin.isatty() and not invocation.get("detach"):
        # There is nobody to type.
        spec.pop("stdin", None)
        spec.pop("tty", None)
    set_command(spec, command)
    project = session.project()
    name = invocation.get("name")
    return {
        "name": name or name_for(command),
        "useGivenNameAsPrefix": name is None,
        "projectId": str(project["id"]),
        "clusterId": project["clusterId"],
        "spec": spec,
    }


def _apply_gpu(invocation: Invocation, spec: Json) -> None:
    wanted = invocation.get("gpu")
    if wanted is None:
        return
    try:
        set_gpus(spec, wanted)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def _apply_environment(invocation: Invocation, spec: Json) -> None:
    variables = spec.setdefault("environmentVariables", [])
    for text in invocation.get("env", ()):
        name, equals, value = text.partition("=")
        if not equals:
            value = invocation.environment.environ.get(name, "")
        variables.append({"name": name, "value": value})
    if not variables:
        del spec["environmentVariables"]


def _attach(session: ServerSession, created: Json) -> int:
    """Attach to the command when it runs; returns its exit code, or 0 after detaching."""
    workload = wait_for_pod(session, created["workloadId"])
    session.console.clear()
    if workload["phase"] in ENDED:
        return follow_to_end(session, created)
    try:
        is_detached = attach_to(session, workload, from_start=True).is_detached
    except ServerError as error:
        if error.status not in _NO_POD:
            raise
        # It ended before this command was attached.
        return follow_to_end(session, created)
    return OK if is_detached else follow_to_end(session, created, passes_output=False)


def _follow(session: ServerSession, created: Json) -> int:
    """Follow the workload to its end; the first Ctrl-C asks what to do, the second detaches."""
    while True:
        try:
            return follow_to_end(session, created)
        except KeyboardInterrupt:
            session.console.clear()
            session.client.close()
            name, is_waiting = created["name"], _is_waiting(session, created["workloadId"])
            answer = _ask(session, name, is_waiting)
            if answer == "stop":
                session.client.kind(_kind().key).suspend(created["workloadId"])
                look = next_command(session.invocation, f"describe {name}", "project")
                state = "has left the queue" if is_waiting else "is stopping"
                session.console.say(f"{name} {state}. Check it with `{look}`.")
                return INTERRUPTED
            if answer == "detach":
                again = next_command(session.invocation, f"logs -f {name}", "project")
                state = "stays in the queue" if is_waiting else "continues without this command"
                session.console.say(f"{name} {state}. Follow it with `{again}`.")
                return INTERRUPTED


def _is_waiting(session: ServerSession, workload_id: str) -> bool:
    return session.client.workload(workload_id)["phase"] in _WAITING


def _ask(session: ServerSession, name: str, is_waiting: bool) -> str:
    environment = session.invocation.environment
    if not environment.stdin.isatty():
        return "detach"
    question = (
        f"{name} waits to start. (d)etach and leave it in the queue, (s)top waiting, or Enter to stay? "
        if is_waiting
        else f"{name} has not finished. (d)etach and let it continue, (s)top it, or Enter to stay? "
    )
    environment.stderr.write(f"\n{question}")
    environment.stderr.flush()
    try:
        answer = environment.stdin.readline()
    except KeyboardInterrupt:
        environment.stderr.write("\n")
        return "detach"
    letter = answer.strip().lower()[:1]
    if not answer or letter == "d":
        return "detach"
    return "stop" if letter == "s" else "stay"
