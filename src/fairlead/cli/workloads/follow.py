"""Follows a workload: shows its progress, passes its output on, and returns its exit code.

Used by `run`, by `submit --attach`, by `logs --follow` and by `wait`.
"""

from fairlead.cli.exit_codes import OK, RUN_FAILED
from fairlead.cli.session.session import NameNotFound, ServerSession
from fairlead.client import ServerError, Unreachable
from fairlead.client.client import ENDED
from fairlead.client.json_object import Json

#: Phases in which a workload has or had pods, or gets none without an action of the user.
_WITH_PODS = (*ENDED, "Running", "Degraded", "Stopped", "Stopping", "Terminating", "Deleting")
_LEFT = ("Stopped", "Stopping", "Deleting")
_WAITING = "Waiting for "


def wait_for_pod(session: ServerSession, workload_id: str, timeout: float | None = None) -> Json:
    """Show progress until the workload has a pod, or is in a phase in which it gets none."""
    workload = session.client.workload(workload_id)
    if workload["phase"] in _WITH_PODS:
        return workload
    shown = ""
    for workload in session.client.changes(workload_id, timeout):
        if workload["phase"] in _WITH_PODS:
            session.console.clear()
            return workload
        text = progress_line(session, workload)
        if text != shown:
            session.console.live(text)
            shown = text
    raise Unreachable("The server closed the stream of changes.")


def check_container(session: ServerSession, workload: Json) -> None:
    """Refuse the name of another container: sessions can only use the workload's main container."""
    wanted, pod = session.invocation.get("container"), session.invocation.get("pod")
    if not wanted:
        return
    pods = [each for each in session.client.pods(workload["id"]) if pod in (None, each["name"])]
    names = {container["name"] for each in pods for container in each["containers"]}
    if names and wanted not in names:
        of_what = f"Pod {pod}" if pod else f"Workload {workload['name']}"
        raise NameNotFound(f"{of_what} has no container '{wanted}'; it has {', '.join(sorted(names))}.")


def progress_line(session: ServerSession, workload: Json) -> str:
    """One line about a workload that has no pods yet. A terminal shows its beginning, so that is what it waits for."""
    message = str(workload.get("phaseMessage") or workload["phase"]).rstrip(".")
    if workload["phase"] != "Pending":
        return f"{workload['name']}: {workload['phase']} · {message}"
    if message.startswith(_WAITING):
        waiting = session.client.explanation(workload["id"]).get("waiting") or {}
        message = str(waiting.get("headline") or message).rstrip(".")
    return f"{message} · {workload['name']} is {_position(session, workload)}"


def _position(session: ServerSession, workload: Json) -> str:
    """Its place among the pending workloads of the project, oldest first."""
    waiting = [f"projectId=={workload['projectId']}", "phase==Pending"]
    count = session.client.count_workloads(filterBy=waiting)
    before = session.client.count_workloads(filterBy=[*waiting, f"createdAt<={workload['createdAt']}"])
    return f"{max(before, 1)} of {max(count, before, 1)} in the queue"


def follow_to_end(session: ServerSession, created: Json, patience: float | None = None) -> int:
    """Pass on the output of every pod, one after another, until the workload ends; returns its exit code.

    If the server goes away, this waits for it and continues the output where it stopped.
    """
    follower = _Follower(session, created)
    while True:
        try:
            code = follower.follow(patience)
        except Unreachable:
            session.console.live("The server does not answer. Waiting for it …")
            session.reconnect()
            continue
        if code is not None:
            return code


class _Follower:
    """How much output of each pod has been passed on."""

    def __init__(self, session: ServerSession, created: Json) -> None:
        self._session = session
        self._id: str = created["workloadId"]
        self._name: str = created["name"]
        self._passed: dict[str, int] = {}
        self._ended: set[str] = set()

    def follow(self, patience: float | None) -> int | None:
        """One round over the pods: pass on their output; returns the exit code after the last round."""
        workload = wait_for_pod(self._session, self._id, patience)
        before = sum(self._passed.values())
        pods = _pods(self._session, self._id)
        for pod in pods:
            if pod["id"] not in self._ended:
                self._pass_on(pod)
        if any(pod["id"] not in self._ended for pod in pods) and sum(self._passed.values()) > before:
            return None
        if workload["phase"] in ENDED:
            return _report_end(self._session, workload, self._name)
        if workload["phase"] in _LEFT:
            self._session.console.say(f"{self._name} is {workload['phase']}.")
            return RUN_FAILED
        self._wait_for_change(workload)
        return None

    def _pass_on(self, pod: Json) -> None:
        """Continue its output. It is complete only if the pod had ended before."""
        skip = self._passed.get(pod["id"], 0)
        try:
            for piece in self._session.client.logs(self._id, pod=pod["name"], follow=True):
                fresh = piece[skip:]
                skip -= len(piece) - len(fresh)
                if fresh:
                    self._session.console.raw(fresh)
                    self._passed[pod["id"]] = self._passed.get(pod["id"], 0) + len(fresh)
        except ServerError as error:
            if error.status != 404:
                raise
        if pod.get("completedAt"):
            self._ended.add(pod["id"])

    def _wait_for_change(self, before: Json) -> None:
        for workload in self._session.client.changes(before["id"]):
            if (workload["phase"], workload["updatedAt"]) != (before["phase"], before["updatedAt"]):
                return


def _pods(session: ServerSession, workload_id: str) -> list[Json]:
    return sorted(session.client.pods(workload_id), key=lambda pod: (pod["createdAt"], pod["name"]))


def _report_end(session: ServerSession, workload: Json, name: str) -> int:
    if workload["phase"] == "Completed":
        return OK
    message = workload.get("phaseMessage") or ""
    session.console.complain(f"{name} failed. {message}".rstrip())
    return command_exit_code(_pods(session, workload["id"]))


def command_exit_code(pods: list[Json]) -> int:
    """The exit code of the pod that ended last; 128 plus the number for a signal, as in shells."""
    for pod in reversed(pods):
        if pod.get("exitCode") is not None:
            return int(pod["exitCode"])
        if pod.get("signal"):
            return 128 + int(pod["signal"])
    return RUN_FAILED
