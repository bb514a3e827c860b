"""Follows a workload: tells how the wait goes, passes its output on, and knows how it ended.

Used by `run`, by `submit --attach`, by `logs --follow` and by `wait`.
"""

import time
from collections.abc import Iterator
from typing import Any

from fairlead.cli.exit_codes import OK, RUN_FAILED
from fairlead.cli.session import Session
from fairlead.client import TimedOut, Unreachable

Json = dict[str, Any]

ENDED = ("Completed", "Failed")
#: Phases in which a workload has or had pods, or will have none without somebody's doing.
_WITH_PODS = (*ENDED, "Running", "Degraded", "Stopped", "Stopping", "Terminating", "Deleting")
_NO_TIME = 0.001


def changes(session: Session, workload_id: str, timeout: float | None = None) -> Iterator[Json]:
    """The workload now and whenever it changes; raises TimedOut when the time is over.

    The watch is opened before the first look, so that nothing happens unseen in between.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    watch = session.client.watch()
    try:
        found = session.client.workload(workload_id)
        yield found
        for change in watch.changes(lambda: _left(deadline)):
            if change is not None and change["workloadId"] == workload_id:
                found = change["workload"] or {**found, "phase": "Deleting", "deletedAt": found["updatedAt"]}
                yield found
            if _left(deadline) == _NO_TIME:
                raise _too_late(found)
    except TimedOut as error:
        raise _too_late(found) from error
    finally:
        watch.close()
    raise Unreachable("The server ended the stream of changes; it is stopping or was stopped.")


def _left(deadline: float | None) -> float | None:
    """Seconds until the deadline, for the socket: never 0, which would mean not to wait for what is there already."""
    return None if deadline is None else max(deadline - time.monotonic(), _NO_TIME)


def _too_late(found: Json) -> TimedOut:
    return TimedOut(f"{found['name']} is {found['phase']}. {found.get('phaseMessage') or ''}".rstrip())


def wait_for_pod(session: Session, workload_id: str, timeout: float | None = None) -> Json:
    """Tell how the wait goes until the workload has a pod, or is in a phase in which none is to come."""
    found = session.client.workload(workload_id)
    if found["phase"] in _WITH_PODS:
        return found
    told = ""
    for found in changes(session, workload_id, timeout):
        if found["phase"] in _WITH_PODS:
            session.console.clear()
            return found
        text = narrate(session, found)
        if text != told:
            session.console.live(text)
            told = text
    raise AssertionError("changes() ends by an exception only")


def narrate(session: Session, found: Json) -> str:
    """One line on where a waiting workload is: its phase, its place in the queue, what it waits for."""
    text = f"{found['name']}: {found['phase']}"
    if found["phase"] == "Pending":
        text += f", {_position(session, found)}"
    return f"{text} · {found['phaseMessage']}" if found.get("phaseMessage") else text


def _position(session: Session, found: Json) -> str:
    """Its place among those of the project that wait, by the time they came."""
    waiting = [f"projectId=={found['projectId']}", "phase==Pending"]
    count = session.client.count_workloads(filterBy=waiting)
    before = session.client.count_workloads(filterBy=[*waiting, f"createdAt<={found['createdAt']}"])
    return f"{max(before, 1)} of {max(count, before, 1)} in line"


def follow_to_end(session: Session, created: Json, patience: float | None = None) -> int:
    """Pass on the output of every pod, one after another, until the workload ends; the answer is its exit code."""
    workload_id, name = created["workloadId"], created["name"]
    shown: set[str] = set()
    while True:
        found = wait_for_pod(session, workload_id, patience)
        fresh = [pod for pod in _pods(session, workload_id) if pod["id"] not in shown]
        for pod in fresh:
            shown.add(pod["id"])
            for piece in session.client.logs(workload_id, pod=pod["name"], follow=True):
                session.console.raw(piece)
        if fresh:
            continue
        if found["phase"] in ENDED:
            return _tell_end(session, found, name)
        if found["phase"] in ("Stopped", "Stopping", "Deleting"):
            session.console.say(f"{name} is {found['phase']}.")
            return RUN_FAILED
        _wait_for_change(session, found)


def _wait_for_change(session: Session, before: Json) -> None:
    for found in changes(session, before["id"]):
        if (found["phase"], found["updatedAt"]) != (before["phase"], before["updatedAt"]):
            return


def _pods(session: Session, workload_id: str) -> list[Json]:
    return sorted(session.client.pods(workload_id), key=lambda pod: (pod["createdAt"], pod["name"]))


def _tell_end(session: Session, found: Json, name: str) -> int:
    if found["phase"] == "Completed":
        return OK
    message = found.get("phaseMessage") or ""
    session.console.complain(f"{name} failed. {message}".rstrip())
    return command_exit_code(_pods(session, found["id"]))


def command_exit_code(pods: list[Json]) -> int:
    """The exit code of the pod that ended last; 128 and the number for a signal, as shells have it."""
    for pod in reversed(pods):
        if pod.get("exitCode") is not None:
            return int(pod["exitCode"])
        if pod.get("signal"):
            return 128 + int(pod["signal"])
    return RUN_FAILED
