"""`demo`: two teams with four GPUs each borrow and reclaim GPUs, with real processes on declared GPUs.

It starts its own server in a temporary folder, talks to it by REST like any other command, and always cleans up. It
touches neither the user's server nor the user's configuration.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Parsed
from fairlead.cli.session.background import find_or_start
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.cli.workloads.why import show_why
from fairlead.cli.workloads.workload import list_workloads
from fairlead.client import TimedOut
from fairlead.client.kinds import load_kinds

_NODES = ("node-1", "node-2")
_NODE = "cpu=64,memory=64Gi,gpus=4,gpu-memory=80Gi,gpu-model=A100-80G"
_PATIENCE = 20.0
_PAUSE = 0.05
#: A job that saves a checkpoint when it is stopped, as jobs should.
_JOB = """trap 'echo stopping: saving a checkpoint; sleep 1; echo saved; exit 143' TERM
echo "training on GPU $CUDA_VISIBLE_DEVICES"
while true; do sleep 0.1; done"""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Watch two teams share eight GPUs, in under a minute"
    return (Command("", summary, _demo),)


def _demo(invocation: Invocation) -> int:
    console = Console(invocation)
    began = time.monotonic()
    with _interruptible(), _own_server(invocation) as inner:
        Demo(inner, console).play()
    console.data("")
    console.data(
        f"Cleaned up: processes, server and folder are deleted. The demo took {time.monotonic() - began:.0f} s."
    )
    return OK


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _own_server(invocation: Invocation) -> Iterator[Invocation]:
    """A server in a temporary folder, and an invocation that finds it."""
    console = Console(invocation)
    folder = tempfile.mkdtemp(prefix="fairlead-demo-")
    try:
        nodes = [word for name in _NODES for word in ("--node", f"{name}:{_NODE}")]
        server = find_or_start(folder, ["--port", "0", *nodes], lambda text: None)
        values = {"data-dir": folder, "config-path": folder, "url": server.url, "quiet": console.is_quiet}
        environment = invocation.environment._replace(environ=_without_ours(invocation.environment.environ))
        yield Invocation(Parsed(values, [], None), environment, invocation.words)
    finally:
        # Nothing may interrupt the cleanup.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        _remove(folder)
        signal.signal(signal.SIGINT, before)


def _without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(("FAIRLEAD_", "RUNAI_"))}


def _remove(folder: str) -> None:
    """Stop every process that belongs to the folder (server, fork server, supervisors, jobs), then delete it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _processes(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + 5
        while _processes(folder) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
    shutil.rmtree(folder, ignore_errors=True)


def _processes(folder: str) -> list[int]:
    """The running processes with this folder in their command line or environment; a zombie has neither."""
    needle, pids = folder.encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    pids.append(int(entry.name))
    return pids


class Demo:
    """The steps of the demo."""

    def __init__(self, invocation: Invocation, console: Console) -> None:
        self.invocation = invocation
        self.console = console
        self.session = ServerSession(invocation)
        self.client = self.session.client
        self.kind = next(iter(load_kinds()))
        self.cluster_id = str(self.client.clusters()[0]["uuid"])

    def play(self) -> None:
        self._set_the_stage()
        borrowers = self._borrow()
        winner, victims = self._reclaim(borrowers)
        self._ask_why(victims[0])
        self._give_back(winner, victims)
        self.session.close()

    def _say(self, title: str, *lines: str) -> None:
        self.console.data("")
        self.console.data(self.console.paint(title, "bold"))
        for line in lines:
            self.console.data(line)
        # A reader behind a pipe sees each step as it happens.
        self.invocation.environment.stdout.flush()

    def _show(self) -> None:
        self.console.data("")
        list_workloads(self._with(all=True))

    def _with(self, *names: str, **values: object) -> Invocation:
        parsed = Parsed({**self.invocation.parsed.values, **values}, list(names), None)
        return self.invocation._replace(parsed=parsed)

    def _set_the_stage(self) -> None:
        self._say(
            "Two teams, eight GPUs",
            f"This demo has started a server with {len(_NODES)} declared nodes of 4 GPUs each. It needs no",
            "real GPUs: the scheduler assigns GPU numbers, and real processes run with them.",
            "  fairlead project create team-a --gpu-quota 4",
            "  fairlead project create team-b --gpu-quota 4",
        )
        self.teams = {name: self._project(name) for name in ("team-a", "team-b")}

    def _project(self, name: str) -> str:
        quota = {"nodePool": {"id": "1"}, "gpu": {"deserved": 4}}
        body = {"name": name, "clusterId": self.cluster_id, "resources": [quota]}
        return str(self.client.request("POST", "/api/v1/org-unit/projects", body)["id"])

    def _submit(self, team: str, name: str, gpus: int) -> str:
        spec = {
            "image": "fairlead.local/host",
            "command": "sh -c",
            "args": "'" + _JOB.replace("'", "'\\''") + "'",
            "terminationGracePeriodSeconds": 10,
            "compute": {"gpuDevicesRequest": gpus},
        }
        body = {"name": name, "projectId": self.teams[team], "clusterId": self.cluster_id, "spec": spec}
        return str(self.client.kind(self.kind).submit(body)["workloadId"])

    def _borrow(self) -> list[str]:
        self._say(
            "Borrowing",
            "Team A submits eight trainings of one GPU each. Its quota is 4. Nobody uses the other 4, so it gets them.",
            "  for i in 1 2 3 4 5 6 7 8; do fairlead run -p team-a --name a$i --gpu 1 --detach -- sh train.sh; done",
        )
        ids = [self._submit("team-a", f"a{number}", 1) for number in range(1, 9)]
        self._until(lambda: all(self._phase(id) == "Running" for id in ids), "all eight are running")
        self._show()
        return ids

    def _reclaim(self, borrowers: list[str]) -> tuple[str, list[str]]:
        self._say(
            "Reclaiming",
            "Team B wants its quota: one training with 4 GPUs. Four of team A's are evicted and get time to save.",
            "Team B's training starts on their GPUs as soon as their processes have exited.",
            "  fairlead run -p team-b --name b1 --gpu 4 --detach -- sh train.sh",
        )
        winner = self._submit("team-b", "b1", 4)
        self._until(lambda: self._phase(winner) in ("Pending", "Running"), "the scheduler has looked at it")
        self._until(lambda: self._phase(winner) == "Running", "team B's training is running")
        self._until(
            lambda: sum(self._phase(id) == "Pending" for id in borrowers) == 4, "four of team A's trainings are pending"
        )
        victims = [id for id in borrowers if self._phase(id) == "Pending"]
        self._show()
        explanation = self.client.explanation(victims[0], waiting=False)
        self._say(f"The eviction notice of {explanation['name']}", explanation["lastEviction"]["message"])
        self._say("The output of its process", *self._printed(victims[0]))
        return winner, victims

    def _printed(self, workload_id: str) -> list[str]:
        pods = self.client.request("GET", f"/api/v1/workloads/{workload_id}/pods", deleted=True)["pods"]
        content = b"".join(self.client.logs(workload_id, pod=pods[0]["name"]))
        return [f"  {line}" for line in content.decode("utf-8", "replace").splitlines()]

    def _ask_why(self, victim: str) -> None:
        name = str(self.client.workload(victim)["name"])
        self._say("Why it is pending", f"  fairlead why {name} -p team-a", "")
        show_why(self._with(name, project="team-a"))

    def _give_back(self, winner: str, victims: list[str]) -> None:
        self._say(
            "Giving the GPUs back",
            "Team B's training is deleted. The pending trainings start again by themselves.",
            "  fairlead workload delete b1 -p team-b",
        )
        self.client.kind(self.kind).delete(winner)
        self._until(lambda: all(self._phase(id) == "Running" for id in victims), "team A's trainings are running again")
        self._show()

    def _phase(self, workload_id: str) -> str:
        return str(self.client.workload(workload_id)["phase"])

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                self._show()
                raise TimedOut(f"The demo waited {_PATIENCE:g} s until {what}, and gave up.")
            time.sleep(_PAUSE)
