"""The folders of attempts below the data folder, and what their journals say. Reads and removes; supervisors write.

pods/live/<pod>.<attempt>      the journal: launch, claim, state, end; gone when the pod is forgotten, like the next two
pods/records/<pod>.<attempt>   what was launched, if version 0.1 started it
pods/control/<pod>.<attempt>   the supervisor's socket, while it lives
pods/private/<pod>.<attempt>/  a shared pod's own home and /tmp
pods/leaving/                  folders of forgotten pods that are being removed
pods/members/<workload>.<group>.<role>/<name>  links to the sockets of the pods that others of their group may command
pods/logs/<pod>/               output: kept for a time of its own
"""

import contextlib
import os
import shutil
import time

from fairlead.engines.base import PodReport, PodState
from fairlead.engines.local import journal
from fairlead.engines.local.linux import procfs
from fairlead.model.clock import Millis
from fairlead.model.errors import Refused

#: (pod, attempt)
Key = tuple[str, int]
SUPERVISOR_LOST = "SupervisorLost"
NODE_REBOOTED = "NodeRebooted"
#: A journal without a line is a claim that is just being written; older, its writer died before it began.
CLAIM_SECONDS = 1.0


class AttemptFolders:
    def __init__(self, data_dir: str) -> None:
        self.data = os.path.abspath(data_dir)
        self.root = f"{self.data}/pods"

    def prepare(self) -> None:
        for name in ("", "/live", "/control", "/private", "/leaving", "/members", "/logs"):
            os.makedirs(self.root + name, mode=0o700, exist_ok=True)

    def journal(self, key: Key) -> str:
        return f"{self.root}/live/{_name(key)}"

    def load_record(self, key: Key) -> bytes:
        """The records of the pod and its workload at its start, for a server that lost them; empty without any."""
        launched = journal.load_launched(self.journal(key))
        if launched:
            return launched
        try:
            with open(self._earlier_record(key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _earlier_record(self, key: Key) -> str:
        return f"{self.root}/records/{_name(key)}"

    def control(self, key: Key) -> str:
        return f"{self.root}/control/{_name(key)}"

    def private(self, key: Key) -> str:
        return f"{self.root}/private/{_name(key)}"

    def members(self, workload_id: str, group: int, role: str) -> str:
        """Where the pods of one role in one group are found by name."""
        return f"{self.root}/members/{workload_id}.{group}.{role}"

    def sweep_members(self) -> None:
        """Remove names that killed supervisors left."""
        for folder, _, names in os.walk(f"{self.root}/members", topdown=False):
            for name in names:
                if not os.path.exists(f"{folder}/{name}"):
                    os.unlink(f"{folder}/{name}")
            if folder != f"{self.root}/members":
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    def logs(self, key: Key) -> str:
        """What the names of an attempt's output files begin with."""
        return f"{self.root}/logs/{_name(key).replace('.', '/')}"

    def has_control(self, key: Key) -> bool:
        return os.path.exists(self.control(key))

    def claimed(self) -> list[Key]:
        """Every attempt that was claimed and is not forgotten."""
        keys = []
        for name in sorted(os.listdir(f"{self.root}/live")):
            pod, _, attempt = name.rpartition(".")
            key = (pod, int(attempt))
            if not self.drop_unclaimed(key):
                keys.append(key)
        return keys

    def drop_unclaimed(self, key: Key) -> bool:
        """Whether no supervisor has claimed the attempt; removes what one left that died while it did."""
        path = self.journal(key)
        with contextlib.suppress(FileNotFoundError):
            while journal.load(path) is None:
                if time.time() - os.stat(path).st_mtime > CLAIM_SECONDS:
                    os.unlink(path)
                    return True
                time.sleep(0.01)
            return False
        return True

    def latest_log(self, pod_id: str) -> int | None:
        """The last attempt of a pod of which output is kept."""
        return max((attempt for attempt, _ in self.log_files(pod_id)), default=None)

    def has_logs(self, key: Key) -> bool:
        return any(attempt == key[1] for attempt, _ in self.log_files(key[0]))

    def log_files(self, pod_id: str) -> list[tuple[int, str]]:
        """(attempt, path) of every file of output that is kept of a pod."""
        folder = self.pod_logs(pod_id)
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return []
        return [(int(name.partition(".")[0]), f"{folder}/{name}") for name in names]

    def forget(self, key: Key) -> None:
        """Remove the journal and the socket of an attempt."""
        for path in (self.journal(key), self._earlier_record(key), self.control(key)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def move_to_trash(self, folder: str) -> str | None:
        """Rename a folder, at once however much it holds; its new path, or None if there was no folder."""
        aside = f"{self.root}/leaving/{os.path.basename(folder)}.{time.time_ns()}"
        try:
            os.rename(folder, aside)
        except FileNotFoundError:
            return None
        return aside

    def trash(self) -> list[str]:
        """Folders that were moved to the trash and are not removed yet."""
        return [f"{self.root}/leaving/{name}" for name in os.listdir(f"{self.root}/leaving")]

    def pod_logs(self, pod_id: str) -> str:
        """Where all output of a pod lies."""
        return os.path.dirname(self.logs((pod_id, 0)))


def remove_folder(path: str) -> None:
    """Remove a folder with everything in it; what cannot be removed stays."""
    shutil.rmtree(path, ignore_errors=True)


def _name(key: Key) -> str:
    pod, attempt = key
    if "/" in pod or "." in pod or not pod:
        raise Refused(f"'{pod}' cannot be the id of a pod here: it names files")
    return f"{pod}.{attempt}"


def has_supervisor(record: journal.Record) -> bool:
    return procfs.is_alive(record["pid"], record["start"], record["boot"])


def record_loss(path: str, record: journal.Record, now: Millis, leftovers_ended: bool) -> journal.Record:
    """Record that the attempt was lost, so that every later report says the same."""
    if record["boot"] != procfs.boot_id():
        reason, message = NODE_REBOOTED, "the machine was restarted while the pod ran"
    else:
        reason, message = SUPERVISOR_LOST, "the pod's supervisor was killed, and the pod was stopped with it"
        if not leftovers_ended:
            message += ", but some of its processes could not be killed"
    lost = {**record, "state": "Lost", "reason": reason, "message": message, "ended_at": now}
    journal.add(path, lost)
    return lost


def render_report(record: journal.Record) -> PodReport:
    """The content of a journal as a report."""
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
        by_itself=record.get("by_itself", False),
        ready=record.get("ready", True),
        ports=tuple((inside, outside) for inside, outside in record.get("ports", ())),
    )
