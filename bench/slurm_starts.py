"""How good Slurm's `squeue --start` is on the arrivals of a trace, for the comparison in `bench.calibration --peers`.

A day of the trace is played in minutes: submissions, running times and time limits are divided by one factor, and the
answers are multiplied by it. Slurm knows what users tell it, the time limit: the running time rounded up to 1 h, 4 h, 1
day or 7 days. Its controller and one daemon per node come from Debian and run on loopback; the packaged emulator does
not start, because its programs and the library that they load were built with different options. GPUs are CPUs here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import NamedTuple

from bench.server import wait_until
from fairlead.simulator.history import Arrival

LIMITS = (3_600, 4 * 3_600, 86_400, 7 * 86_400)
#: Seconds in which everything is submitted, and after which it is judged.
SUBMITTING, JUDGED = 600, 840
PORT = 27_830
CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1,bf_max_job_test=2000,bf_window=20160
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={gpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class ForetoldStart(NamedTuple):
    """Seconds of the trace after the moment at which Slurm told the start for the first time."""

    foretold: float
    was: float


def limit_of(arrival: Arrival) -> float:
    """What a user would ask for."""
    return next((limit for limit in LIMITS if arrival.duration <= limit), LIMITS[-1])


def find_missing_programs() -> list[str]:
    return [program for program in ("slurmctld-wlm", "slurmd-wlm", "sbatch", "squeue") if not shutil.which(program)]


def install() -> None:
    if not find_missing_programs():
        return
    if os.geteuid() or not shutil.which("apt-get"):
        raise SystemExit("Slurm is missing, and installing it takes root on Debian: apt-get install slurm-wlm")
    command = ["apt-get", "install", "--yes", "--no-install-recommends", "slurm-wlm"]
    subprocess.run(command, check=True, capture_output=True)


def measure_slurm(history: Sequence[Arrival], nodes: int, gpus: int) -> tuple[list[ForetoldStart], int]:
    """Of all that waited and started: foretold and real starts; and how many still waited at the end."""
    install()
    factor = (history[-1].at - history[0].at) / SUBMITTING
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder, _running(Path(folder), nodes, gpus):
        run = _SlurmRun(factor)
        began = time.time()
        for arrival in history:
            due = began + (arrival.at - history[0].at) / factor
            while time.time() < due:
                run.look()
                time.sleep(min(0.5, max(0, due - time.time())))
            run.submit(arrival)
        while time.time() < began + JUDGED:
            run.look()
            time.sleep(0.5)
        return run.judge()


class _SlurmRun:
    def __init__(self, factor: float) -> None:
        self.factor = factor
        #: When a start was foretold for the first time, and the start; by job.
        self.foretold: dict[str, tuple[float, float]] = {}
        self._looked = 0.0

    def submit(self, arrival: Arrival) -> None:
        minutes = ceil(limit_of(arrival) / self.factor / 60)
        size = [f"--nodes={arrival.pods}", f"--ntasks-per-node={int(arrival.gpus)}"]
        sleep = f"exec sleep {arrival.duration / self.factor:.2f}"
        common = ["sbatch", "--quiet", "--output=/dev/null", "--chdir=/", f"--time={minutes}", "--wrap", sleep]
        subprocess.run([*common, *size], check=True, capture_output=True)

    def look(self) -> None:
        """Note new answers about jobs that wait; at most once a second."""
        now = time.time()
        if now < self._looked + 1:
            return
        self._looked = now
        for job, start, _ in _ask("--start"):
            if start is not None and job not in self.foretold:
                self.foretold[job] = (now, start)

    def judge(self) -> tuple[list[ForetoldStart], int]:
        states = {job: (start, state) for job, start, state in _ask("--states=all")}
        judged, waiting = [], 0
        for job, (asked, foretold) in self.foretold.items():
            start, state = states[job]
            if state == "PENDING" or start is None:
                waiting += 1
            else:
                judged.append(ForetoldStart((foretold - asked) * self.factor, (start - asked) * self.factor))
        return judged, waiting


def _ask(*words: str) -> Iterator[tuple[str, float | None, str]]:
    """Id, start and state of jobs."""
    command = ["squeue", "--noheader", "--format=%i|%S|%T", *words]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        job, start, state = line.split("|")
        yield job, None if start == "N/A" else datetime.fromisoformat(start).timestamp(), state


@contextlib.contextmanager
def _running(folder: Path, nodes: int, gpus: int) -> Iterator[None]:
    (folder / "state").mkdir()
    for number in range(1, nodes + 1):
        (folder / f"n{number}").mkdir()
    ports = {"port": PORT, "first": PORT + 1, "last": PORT + nodes}
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(host=host, folder=folder, nodes=nodes, gpus=gpus, **ports)
    (folder / "slurm.conf").write_text(text)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    commands = [["slurmctld-wlm", "-D"], *(["slurmd-wlm", "-D", "-N", f"n{each}"] for each in range(1, nodes + 1))]
    quiet = subprocess.DEVNULL
    processes = [subprocess.Popen(command, stdout=quiet, stderr=quiet) for command in commands]
    sinfo = ["sinfo", "--noheader", "--format=%D %T"]
    try:
        wait_until(lambda: f"{nodes} idle" in subprocess.run(sinfo, capture_output=True, text=True).stdout)
        yield
    finally:
        subprocess.run(["scancel", "--user=root"], capture_output=True)
        wait_until(lambda: not list(_ask()), every=0.5)
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()
