"""What the journal says about the end of a pod: its exit code, the reason, the message.

The supervisor calls these functions when its command could not be started or has ended. Each updates the record; only
`is_container_out_of_memory` acts, because a runtime has to be asked before its container is removed.
"""

import json

from fairlead.engines.local import journal
from fairlead.engines.local.launch_order import LaunchOrder
from fairlead.engines.local.linux import cgroups
from fairlead.engines.local.supervisor import container, launch

#: The reason of a pod whose command has ended and whose changes are being uploaded.
UPLOADING = "Uploading"


def describe_failed_start(state: journal.Record, order: LaunchOrder, failure: bytes) -> None:
    """The command never ran; `failure` is what the process on its way there reported."""
    problem = json.loads(failure)
    code, message = launch.describe_failure(problem, order)
    reason = "FetchError" if problem["step"] == "fetch" else "StartError"
    state.update(exit_code=code, reason=reason, message=message)


def describe(state: journal.Record, order: LaunchOrder, code: int, cause: str) -> None:
    """The command ended with an exit code or, if negative, by a signal; `cause` is why we killed it, if we did."""
    if code >= 0:
        state["exit_code"] = code
    else:
        state.update(exit_code=128 - code, signal=-code)
    limits = order.limits
    if code != 0 and limits.groups is not None and cgroups.is_out_of_memory(limits.groups):
        cause = "OOMKilled"
        state["message"] = f"used more memory than its limit of {limits.memory_limit} bytes"
    if cause:
        state["reason"] = cause
    elif code == 0:
        for member in ("reason", "message"):
            state.pop(member, None)
    else:
        more = container.explain(order.container, code, is_made="main" in state)
        state.update(reason="Error", message=f"ended with {launch.describe_code(code)}{more}")


def describe_upload(state: journal.Record, output: bytes) -> None:
    """Changes of buckets were uploaded; an uploader that did not say how it ended was killed."""
    last = read_progress(output)
    failure = last.get("failure", "changes could not be uploaded within the grace period")
    if failure:
        state["message"] = f"{state.get('message', '')} {failure}".strip()
        if state["exit_code"] == 0:
            state.update(exit_code=1, reason="FetchError")


def read_progress(output: bytes) -> dict[str, str]:
    """The last whole line that the uploader wrote."""
    lines = output.rpartition(b"\n")[0].splitlines()
    last: dict[str, str] = json.loads(lines[-1]) if lines else {}
    return last


def is_container_out_of_memory(
    state: journal.Record, order: LaunchOrder, status: int | None, *, is_stopped: bool
) -> bool:
    """Remove what is left of the pod's container, if it has one; whether its memory limit killed it."""
    return order.container is not None and container.remove(
        order.container, order.command.env, status, is_made="main" in state, is_stopped=is_stopped
    )
