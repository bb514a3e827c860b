"""Where attempts lie below the data folder, and what their files say. Reads and removes; supervisors write.

pods/live/<pod>.<attempt>/   claim, state, control socket, private folders: gone when the pod is forgotten
pods/logs/<pod>/<attempt>/   output: kept for a time of its own
"""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

from fairlead.engines.base import PodReport, PodState
from fairlead.engines.local import procfs
from fairlead.engines.local.supervisor import CLAIM, CONTROL, STATE
from fairlead.model.clock import Millis

#: (pod, attempt)
Key = tuple[str, int]
SUPERVISOR_LOST = "SupervisorLost"
NODE_REBOOTED = "NodeRebooted"


class Folders:
    def __init__(self, data_dir: str) -> None:
        self.root = os.path.join(os.path.abspath(data_dir), "pods")

    def prepare(self) -> None:
        for folder in (self.root, f"{self.root}/live", f"{self.root}/logs"):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def live(self, key: Key) -> str:
        return f"{self.root}/live/{key[0]}.{key[1]}"

    def logs(self, key: Key) -> str:
        return f"{self.root}/logs/{key[0]}/{key[1]}"

    def control(self, key: Key) -> str:
        return f"{self.live(key)}/{CONTROL}"

    def has_control(self, key: Key) -> bool:
        return os.path.exists(self.control(key))

    def claimed(self) -> Iterator[Key]:
        """Every attempt that was claimed and is not forgotten."""
        for name in os.listdir(f"{self.root}/live"):
            pod, _, attempt = name.rpartition(".")
            if os.path.exists(f"{self.root}/live/{name}/{CLAIM}"):
                yield pod, int(attempt)
            else:
                # Its server or its fork ended before the claim: it never ran.
                shutil.rmtree(f"{self.root}/live/{name}", ignore_errors=True)

    def latest_log(self, pod_id: str) -> int | None:
        """The last attempt of a pod of which output is kept."""
        try:
            return max(map(int, os.listdir(f"{self.root}/logs/{pod_id}")), default=None)
        except FileNotFoundError:
            return None

    def forget(self, key: Key) -> None:
        shutil.rmtree(self.live(key), ignore_errors=True)

    def forget_logs(self, pod_id: str) -> None:
        shutil.rmtree(f"{self.root}/logs/{pod_id}", ignore_errors=True)


def load_record(folder: str) -> dict[str, Any] | None:
    """The state of the attempt in `folder`, at least its claim; None when it has none."""
    for name in (STATE, CLAIM):
        try:
            with open(f"{folder}/{name}") as file:
                record: dict[str, Any] = json.load(file)
                return record
        except FileNotFoundError:
            continue
    return None


def has_supervisor(record: dict[str, Any]) -> bool:
    return procfs.is_alive(record["pid"], record["start"], record["boot"])


def record_loss(folder: str, record: dict[str, Any], now: Millis, leftovers_ended: bool) -> dict[str, Any]:
    """Write down that nobody knows how this attempt ended, so that it is said the same way ever after."""
    if record["boot"] != procfs.boot_id():
        reason, message = NODE_REBOOTED, "the machine was restarted while the pod ran"
    else:
        reason, message = SUPERVISOR_LOST, "the process that watched over the pod was killed; the pod was ended with it"
        if not leftovers_ended:
            message += ", but some of its processes could not be"
    lost = {**record, "state": "Lost", "reason": reason, "message": message, "ended_at": now}
    path = f"{folder}/{STATE}"
    with open(f"{path}.new", "w") as file:
        json.dump(lost, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    return lost


def render_report(record: dict[str, Any]) -> PodReport:
    """A state file's content as the seam says it."""
    return PodReport(
        pod_id=record["pod"],
        workload_id=record["workload"],
        attempt=record["attempt"],
        state=PodState(record.get("state", PodState.STARTING)),
        started_at=record.get("started_at"),
        ended_at=record.get("ended_at"),
        exit_code=record.get("exit_code"),
        signal=record.get("signal"),
        reason=record.get("reason", ""),
        message=record.get("message", ""),
    )
