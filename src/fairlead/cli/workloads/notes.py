"""Notes about a new workload: fields that the server accepted but does not enforce here. Used by `run` and `submit`."""

from fairlead.cli.session.session import ServerSession
from fairlead.client import TimedOut
from fairlead.client.json_object import Json

#: The image that stands for this machine: nothing is pulled, the command sees the machine's own files.
HOST_IMAGE = "fairlead.local/host"
_NOT_ENFORCED, _NEW = "NotEnforced", "Creating"
#: Seconds to wait for the server's review of a new workload.
_REVIEW = 2.0


def note_unenforced(session: ServerSession, created: Json) -> None:
    """Say which of the requested fields have no effect here. That the host's image is not pulled is its meaning."""
    if session.console.is_quiet:
        return
    try:
        workload = next(one for one in session.client.changes(created["workloadId"], _REVIEW) if one["phase"] != _NEW)
    except TimedOut:
        return
    for condition in workload.get("conditions") or ():
        is_expected = condition["reason"] == "image" and workload.get("images") == [HOST_IMAGE]
        if condition["type"] == _NOT_ENFORCED and not is_expected:
            session.console.say(f"Note: {condition['reason']}: {condition['message']}.")
