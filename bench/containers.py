"""A container by podman through the engine, beside `podman run` alone, in turns: from the order to the end.

`python -m bench.containers [--quick]`; an image of busybox in a store of its own, nothing is left behind.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvloop

from bench.engine import Watch, clock, pod
from bench.table import Measurement, Options, render_table
from fairlead.engines.base import PodState, Start
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.container_fields import ContainerFields

IMAGE = "localhost/fairlead-bench:1"
GOAL = 1.2


def make_image(podman: list[str], folder: Path) -> None:
    archive = folder / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(shutil.which("busybox") or "", arcname="bin/busybox")
        link = tarfile.TarInfo("bin/true")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
    subprocess.run([*podman, "import", "--quiet", str(archive), IMAGE], check=True, capture_output=True)


def run_alone(podman: list[str]) -> float:
    """Milliseconds of `podman run` for the same program, with what it needs here and no more."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    bounds = [f"--ulimit=nofile={min(most, 65_536)}", "--ulimit=nproc=16384"]
    began = time.monotonic()
    words = [*podman, "run", "--rm", "--network=host", "--pull=never", *bounds, IMAGE, "/bin/true"]
    subprocess.run(words, check=True, capture_output=True)
    return (time.monotonic() - began) * 1000


async def measure_both(folder: Path, podman: list[str], rounds: int) -> tuple[list[float], list[float]]:
    options = tuple(podman[3:])
    settings = LocalSettings(
        data_dir=str(folder / "data"),
        owner=load_identity(os.geteuid()),
        runtimes=("podman",),
        runtime_options=options,
    )
    engine = LocalEngine(settings, clock)
    watch = Watch(engine)
    await engine.start(watch.news.set)
    ours, alone = [], []
    try:
        for _ in range(rounds + 1):
            spec = pod("/bin/true")
            container = msgspec.structs.replace(
                spec.container, image=IMAGE, fields=ContainerFields(image_pull_policy="Never")
            )
            spec = msgspec.structs.replace(spec, container=container)
            began = time.monotonic()
            await engine.apply([Start(spec)])
            await watch.until([spec], PodState.EXITED)
            ours.append((time.monotonic() - began) * 1000)
            if watch.reports[spec.pod_id].exit_code != 0:
                raise SystemExit(f"the container failed: {watch.reports[spec.pod_id].message}")
            await engine.drop_logs([spec.pod_id])
            alone.append(run_alone(podman))
    finally:
        await engine.close()
    return ours[1:], alone[1:]


def measure(options: Options) -> Iterator[Measurement]:
    missing = [name for name in ("podman", "runc", "busybox") if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"not installed here: {', '.join(missing)}; as root on Debian: make system-packages")
    rounds = 5 if options.quick else 30
    # Podman takes no longer path than 50 characters for what it keeps while it runs.
    running = tempfile.mkdtemp(prefix="fairlead")
    stores = [f"--root={options.folder}/store", f"--runroot={running}"]
    podman = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", *stores]
    try:
        make_image(podman, options.folder)
        ours, alone = uvloop.run(measure_both(options.folder, podman, rounds))
    finally:
        subprocess.run(["umount", f"{options.folder}/store/overlay"], check=False, capture_output=True)
        shutil.rmtree(running)
    yield Measurement("podman run alone, /bin/true to its end", "ms", alone)
    yield Measurement("the same as a pod, order to its recorded end", "ms", ours)
    ratios = [mine / theirs for mine, theirs in zip(ours, alone, strict=True)]
    note = f"medians {statistics.median(ours):.0f} and {statistics.median(alone):.0f} ms, in turns"
    yield Measurement("a container, beside podman run alone", "×", ratios, GOAL, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.containers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look")
    with tempfile.TemporaryDirectory(prefix="fairlead-containers-") as folder:
        options = Options(quick=parser.parse_args().quick, folder=Path(folder))
        print(render_table(list(measure(options))))


if __name__ == "__main__":
    main()
