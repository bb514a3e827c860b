"""What phases and pods of a workload mean for a client: whether it has ended, and how."""

from collections.abc import Sequence

from fairlead.client.json_object import Json

#: The final phases.
ENDED = ("Completed", "Failed")
#: Phases in which a workload gets no pods without an action of the user.
LEFT = ("Stopped", "Stopping", "Deleting")
#: Phases in which a workload has or had pods, or gets none without an action of the user.
WITH_PODS = (*ENDED, *LEFT, "Running", "Degraded", "Terminating")


def exit_code_of(pods: Sequence[Json]) -> int | None:
    """The exit code of the pod that ended last, with the oldest pod first; 128 plus the number for a signal, as in
    shells. None if none has ended."""
    for pod in reversed(pods):
        if pod.get("exitCode") is not None:
            return int(pod["exitCode"])
        if pod.get("signal"):
            return 128 + int(pod["signal"])
    return None
