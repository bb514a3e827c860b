"""Waits until a workload has a pod, and shows meanwhile what it waits for. Used by every command that needs a pod."""

from fairlead.cli.scheduling.questions import load_suggestions
from fairlead.cli.session.session import ServerSession
from fairlead.client import NameNotFound, Unreachable
from fairlead.client.json_object import Json
from fairlead.client.phases import WITH_PODS

_WAITING = "Waiting for "


def wait_for_pod(session: ServerSession, workload_id: str, timeout: float | None = None) -> Json:
    """Show progress until the workload has a pod, or is in a phase in which it gets none."""
    workload = session.client.workload(workload_id)
    if workload["phase"] in WITH_PODS:
        return workload
    progress = PendingProgress(session)
    for workload in session.client.changes(workload_id, timeout=timeout):
        if workload["phase"] in WITH_PODS:
            session.console.clear()
            return workload
        progress(workload)
    raise Unreachable("The server closed the stream of changes.")


class PendingProgress:
    """Shows the progress of a pending workload, whenever it changes."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._shown = ""

    def __call__(self, workload: Json) -> None:
        text = progress_line(self._session, workload)
        if text != self._shown:
            self._session.console.live(text)
            self._shown = text


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
        more = f" · {message}" if message != workload["phase"] else ""
        return f"{workload['name']}: {workload['phase']}{more}"
    if message.startswith(_WAITING):
        waiting = session.client.explanation(workload["id"]).get("waiting") or {}
        message = str(waiting.get("headline") or message).rstrip(".")
        suggestion = load_suggestions(session.client.suggestions, (workload["id"],)).get(workload["id"])
        if suggestion:
            message = f"{message} · To start it: {suggestion}"
    return f"{message} · {workload['name']} is {_position(session, workload)}"


def _position(session: ServerSession, workload: Json) -> str:
    """Its place among the pending workloads of the project, oldest first."""
    waiting = [f"projectId=={workload['projectId']}", "phase==Pending"]
    count = session.client.count_workloads(filterBy=waiting)
    before = session.client.count_workloads(filterBy=[*waiting, f"createdAt<={workload['createdAt']}"])
    return f"{max(before, 1)} of {max(count, before, 1)} in the queue"
