"""`logs`: the output of one pod as it is, or of all pods of workloads with the name of the pod before each line."""

import threading
from collections.abc import Iterable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import NOT_ALLOWED, OK
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.pods.waiting import check_container, wait_for_pod
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import next_command
from fairlead.client import ServerError
from fairlead.client.json_object import Json
from fairlead.client.output import sorted_pods
from fairlead.client.phases import ENDED, LEFT

LOGS_FLAGS = (
    PROJECT,
    Flag("name", "Name of the workload, if it is not the first argument", placeholder="NAME"),
    Flag("all", "Show all pods, each line with the name of its pod", "boolean", "A"),
    Flag("pod", "Pod (default: the master or leader, or the newest)", placeholder="NAME"),
    Flag("container", "Container; pods have only one", short="c", placeholder="NAME"),
    Flag("follow", "Follow the output until the pod ends", "boolean", "f"),
    Flag("previous", "Show the output of the previous attempt", "boolean"),
    Flag("since", "Show only output newer than this", "duration"),
    Flag("since-time", "Show only output since this time (ISO 8601)", placeholder="MOMENT"),
    Flag("tail", "Show only this many last lines; -1 for all", "integer", "t", default="-1"),
    Flag("limit-bytes", "Show at most this many bytes", "integer"),
    Flag("timestamps", "Start each line with its time", "boolean"),
    Flag("wait-timeout", "Wait at most this long for a pod to start", "duration"),
)
_COLOURS = ("cyan", "green", "yellow", "blue", "magenta")


def commands(_noun: str) -> tuple[Command, ...]:
    return (logs_command()._replace(verb=""),)


def logs_command(title: str | None = None, what: str = "workloads") -> Command:
    return Command(
        "logs",
        f"Show the output of {what}",
        lambda call: show_logs(call, title),
        LOGS_FLAGS,
        "NAME...",
        0,
        None,
        completes="workload",
        details="With --all or several names, each line begins with the name of its pod.",
    )


def show_logs(invocation: Invocation, title: str | None = None) -> int:
    """Print the output of a pod, or of all pods; with --follow, also new output."""
    session = ServerSession(invocation)
    names = invocation.names or [invocation.get("name")]
    if not names[0]:
        raise UsageError("No workload given. Pass its name.")
    workloads = [session.workload(name, title) for name in names]
    for workload in workloads:
        if invocation.get("wait-timeout") is not None or invocation.get("follow"):
            wait_for_pod(session, workload["id"], invocation.get("wait-timeout"))
        check_container(session, workload)
    if invocation.get("all") or len(workloads) > 1:
        _MarkedOutput(session, workloads).show()
    else:
        for piece in session.client.logs(workloads[0]["id"], **_log_query(invocation)):
            session.console.raw(piece)
    is_hidden = invocation.get("follow") and _check_end(session, workloads)
    if not (is_hidden or invocation.get("all") or invocation.get("pod") or len(workloads) > 1):
        _mention_others(session, workloads[0])
    session.close()
    return NOT_ALLOWED if is_hidden else OK


def _mention_others(session: ServerSession, workload: Json) -> None:
    """Say that other pods have output too."""
    pods = len(session.client.pods(workload["id"]))
    if pods > 1:
        command = next_command(session.invocation, f"logs {workload['name']} --all", "project")
        session.console.say(f"This is the output of one of {pods} pods; `{command}` shows all of them.")


def _check_end(session: ServerSession, workloads: list[Json]) -> bool:
    """Say so, and return True, if the output ended before the workload: the server ends it with the caller's rights."""
    is_hidden = False
    for workload in workloads:
        try:
            session.client.workload(workload["id"])
        except ServerError as error:
            if error.status != 404:
                raise
            session.console.complain(f"You may no longer read the output of {workload['name']}, or it was deleted.")
            is_hidden = True
    return is_hidden


def _log_query(invocation: Invocation) -> Json:
    tail = invocation.get("tail", -1)
    since = invocation.get("since-time")
    return {
        "pod": invocation.get("pod"),
        "follow": invocation.get("follow"),
        "previous": invocation.get("previous"),
        "since": since if since else _seconds(invocation.get("since")),
        "tail": tail if tail >= 0 else None,
        "limitBytes": invocation.get("limit-bytes"),
        "timestamps": invocation.get("timestamps"),
    }


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


class _MarkedOutput:
    """The lines of several pods at once, each after the name of its pod in a colour of its own."""

    def __init__(self, session: ServerSession, workloads: list[Json]) -> None:
        self._session = session
        self._workloads = workloads
        self._query = _log_query(session.invocation)
        self._lock = threading.Lock()
        self._width = 0

    def show(self) -> None:
        if not self._query["follow"]:
            for workload in self._workloads:
                for pod in self._pods(workload):
                    self._pass_on(workload, pod, self._session)
            return
        following = [threading.Thread(target=self._follow, args=(each,), daemon=True) for each in self._workloads]
        for thread in following:
            thread.start()
        for thread in following:
            thread.join()

    def _pods(self, workload: Json, session: ServerSession | None = None) -> list[Json]:
        wanted = self._query["pod"]
        pods = [
            pod
            for pod in sorted_pods((session or self._session).client, workload["id"])
            if wanted in (None, pod["name"])
        ]
        self._width = max([self._width, *(len(pod["name"]) for pod in pods)])
        return pods

    def _follow(self, workload: Json) -> None:
        """Follow every pod that the workload has or gets, each in a thread, until the workload ends."""
        session = ServerSession(self._session.invocation)
        started: dict[str, threading.Thread] = {}
        for now in session.client.changes(workload["id"]):
            for pod in self._pods(workload, session):
                if pod["id"] not in started:
                    other = ServerSession(self._session.invocation)
                    started[pod["id"]] = threading.Thread(
                        target=self._pass_on, args=(workload, pod, other), daemon=True
                    )
                    started[pod["id"]].start()
            if now["phase"] in (*ENDED, *LEFT):
                break
        for thread in started.values():
            thread.join()

    def _pass_on(self, workload: Json, pod: Json, session: ServerSession) -> None:
        console = self._session.console
        colour = _COLOURS[sum(pod["name"].encode()) % len(_COLOURS)]
        mark = console.paint(f"{pod['name']:<{self._width}} |", colour)
        try:
            for line in _lines(session.client.logs(workload["id"], **self._query | {"pod": pod["name"]})):
                with self._lock:
                    console.raw(f"{mark} ".encode() + line + b"\n")
        except ServerError as error:
            # A pod that never ran has no output.
            if error.status != 404:
                raise


def _lines(pieces: Iterable[bytes]) -> Iterable[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest
