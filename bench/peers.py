"""Peers measured in the same run as ours, when asked for with --peers: Slurm from Debian, dstack from PyPI.

Slurm is installed with apt (as root), dstack below `.tools/peers`; both run from a temporary folder with ports of their
own. Slurm's scheduler parameters are set to its shortest intervals, so that it is not measured waiting for a default.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.commands import time_of
from bench.jobs import percentile
from bench.server import memory_of, wait_until
from bench.table import Measurement, Options

ROOT = Path(__file__).parents[1]
DSTACK = ROOT / ".tools" / "peers" / "dstack"
SLURM_CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=27817
SlurmdPort=27818
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def measure(options: Options) -> Iterator[Measurement]:
    if options.peers:
        yield from measure_dstack(options.folder / "dstack", 2 if options.quick else 7)
        yield from measure_slurm(options.folder / "slurm", 3 if options.quick else 20)


def measure_slurm(folder: Path, jobs: int) -> Iterator[Measurement]:
    if not shutil.which("slurmctld"):
        if os.geteuid() or not shutil.which("apt-get"):
            raise SystemExit("Slurm is not here, and installing it takes root on Debian: apt-get install slurm-wlm")
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "slurm-wlm", "munge"]
        subprocess.run(command, check=True, capture_output=True)
    with running_slurm(folder) as (pids, environment):
        asked = subprocess.run(["sbatch", "--version"], env=environment, capture_output=True, text=True, check=True)
        version, found, submitted = asked.stdout.strip(), [], []
        for number in range(jobs):
            output = folder / f"time-{number}"
            began = time.time_ns()
            command = ["sbatch", "--quiet", f"--output={output}", "--wrap", "date +%s%N"]
            submitted.append(time_of(command, environment))
            wait_until(lambda: not queue(environment))
            found.append((int(output.read_text()) - began) / 1e6)
        yield Measurement(f"{version}: submit → first instruction, p50", "ms", [percentile(found, 0.5)])
        yield Measurement(f"{version}: `sbatch`", "ms", submitted)
        began_all = time.perf_counter()
        array = ["sbatch", "--quiet", "--output=/dev/null", f"--array=1-{jobs}", "--wrap", "true"]
        time_of(array, environment)
        wait_until(lambda: not queue(environment))
        rate = jobs / (time.perf_counter() - began_all)
        yield Measurement(f"{version}: short jobs (`true`)", "/s", [rate], note=f"an array of {jobs}")
        yield Measurement(f"{version}: memory when idle", "MB", [memory_of(pids)], note="slurmctld and slurmd")


def queue(environment: dict[str, str]) -> str:
    return subprocess.run(["squeue", "--noheader"], env=environment, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def running_slurm(folder: Path) -> Iterator[tuple[list[int], dict[str, str]]]:
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    names = {"host": socket.gethostname().split(".")[0], "folder": folder, "cores": len(os.sched_getaffinity(0))}
    (folder / "slurm.conf").write_text(SLURM_CONFIGURATION.format(**names))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    quiet: dict[str, Any] = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([program, "-D"], **quiet) for program in ("slurmctld", "slurmd")]
    sinfo = ["sinfo", "--noheader", "--format=%T"]
    try:
        wait_until(lambda: "idle" in subprocess.run(sinfo, env=environment, capture_output=True, text=True).stdout)
        yield [process.pid for process in processes], environment
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def install_dstack() -> Path:
    """Its environment, made once."""
    if not (DSTACK / "bin" / "dstack").exists():
        uv = str(ROOT / ".tools" / "uv")
        subprocess.run([uv, "venv", "--quiet", str(DSTACK)], check=True)
        python = str(DSTACK / "bin" / "python")
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, "dstack[server]"]
        subprocess.run(install, check=True)
    return DSTACK


def measure_dstack(folder: Path, rounds: int) -> Iterator[Measurement]:
    program = install_dstack() / "bin" / "dstack"
    environment = {**os.environ, "HOME": str(folder), "DSTACK_SERVER_DIR": str(folder / "server")}
    folder.mkdir(parents=True)
    shown = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    version = f"dstack {shown.split()[-1]}"
    yield Measurement(
        f"{version}: `dstack --help`", "ms", [time_of([str(program), "--help"], environment) for _ in range(rounds)]
    )
    # Its first start makes the database; those after it are what an operator sees.
    started = [start_dstack(program, environment) for _ in range(rounds + 1)][1:]
    yield Measurement(f"{version}: server ready from cold start", "s", [ready for ready, _ in started])
    yield Measurement(f"{version}: memory when idle", "MB", [size for _, size in started])


def start_dstack(program: Path, environment: dict[str, str]) -> tuple[float, float]:
    began = time.perf_counter()
    command = [str(program), "server", "--yes", "--port", "27819"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_ready() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen("http://127.0.0.1:27819/healthcheck") as answer:
            return bool(answer.status == 200)
        return False

    try:
        wait_until(is_ready, every=0.005)
        ready = time.perf_counter() - began
        return ready, memory_of([process.pid])
    finally:
        process.terminate()
        process.wait()
