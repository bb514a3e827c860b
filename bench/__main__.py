"""Runs the benches and prints one table, the goals beside the numbers, then the tables of single parts.

Called by `make bench`. What the server does as a whole is measured from outside, over HTTP and the command line; the
parts (`python -m bench.store` and so on) are programs of their own and are run as such.
"""

import argparse
import dataclasses
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import Measurement, Options, render_table

#: In the order in which they run; each has `measure(options) -> Iterator[Measurement]`.
WHOLE = (
    *("start", "commands", "jobs", "isolation", "groups", "waking", "submissions", "network", "kubernetes", "scale"),
    "page",
    "peers",
)
#: Programs that print a table of their own.
PARTS = (
    "store",
    "formats",
    "yaml",
    "engine",
    "volumes",
    "output",
    "containers",
    "scheduling",
    "foresight",
    "calibration",
    "permissions",
    "policies",
    "cycles",
)
BENCHES = (*WHOLE, *PARTS)
#: A load average above which the machine is not ours alone.
BUSY = 0.5


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure, beside the goals.")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"which ones: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a short look: fewer rounds and smaller numbers")
    parser.add_argument("--peers", action="store_true", help="install dstack and Slurm and measure them beside ours")
    options = parser.parse_args(arguments)
    unknown = set(options.benches) - set(BENCHES)
    if unknown:
        parser.error(f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    return options


def describe_machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    cores = len(os.sched_getaffinity(0))
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return f"{model}, {cores} cores, {system}, load before: {os.getloadavg()[0]:.1f}"


def run(names: list[str], options: Options) -> list[Measurement]:
    measurements: list[Measurement] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        began = time.monotonic()
        for measurement in importlib.import_module(f"bench.{name}").measure(options):
            if options.quick:
                # Too few rounds to hold against a goal.
                measurement = dataclasses.replace(measurement, goal=None)
            measurements.append(measurement)
            print(f"  {measurement.what}: {measurement.median:,.2f} {measurement.unit}", file=sys.stderr, flush=True)
        print(f"  took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return measurements


def run_part(name: str, options: Options) -> int:
    print(f"\n{name}\n", flush=True)
    arguments = ["--quick"] if options.quick else []
    if options.peers and name == "calibration":
        arguments.append("--peers")
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments]).returncode


def main() -> int:
    arguments = parse(sys.argv[1:])
    # What is measured runs as on a user's machine, which keeps bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = Path(tempfile.mkdtemp(prefix="fairlead-bench-"))
    try:
        options = Options(quick=arguments.quick, peers=arguments.peers, folder=folder)
        wanted = arguments.benches or list(BENCHES)
        print(describe_machine(), flush=True)
        if os.getloadavg()[0] > BUSY:
            print("Other work runs on this machine: read rates as a lower and times as an upper bound.", flush=True)
        measurements = run([name for name in WHOLE if name in wanted], options)
        if measurements:
            print("\n" + render_table(measurements), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return max([run_part(name, options) for name in PARTS if name in wanted], default=0)


if __name__ == "__main__":
    sys.exit(main())
