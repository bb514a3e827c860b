"""Time to the first instruction of a pod with isolation, an emptyDir, a secret and a config map; what others add.

`python -m bench.volumes [--quick]`; it works below a temporary folder and leaves nothing behind.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.engine import Watch, build_probe, clock, cpu_seconds, pod
from bench.table import Measurement, Options, render_table
from fairlead.engines.base import PodState, Start
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.container_fields import ContainerFields
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import ClaimSupply, Supplies

SUPPLIES = Supplies(
    secrets={"token": {"key": "hush"}},
    config_maps={"settings": {"a.conf": "x=1", "b.conf": "y=2"}},
    claims={0: ClaimSupply(id="claim", name="claim", size_bytes=64 << 20)},
)
PLAIN: dict[str, Any] = {
    "emptyDirVolume": [{"path": "/scratch"}],
    "secretVolume": [{"secret": "token", "mountPath": "/secret"}],
    "configMapVolume": [{"configMap": "settings", "mountPath": "/settings"}],
}
CASES: tuple[tuple[str, dict[str, Any], float | None], ...] = (
    ("nothing of its own", {}, None),
    ("an emptyDir, a secret and a config map", PLAIN, 60.0),
    ("and a mount point below /etc", PLAIN | {"emptyDirVolume": [{"path": "/etc/scratch"}]}, None),
    ("and a claim of a size that is there", PLAIN | {"pvc": [{"path": "/claim"}]}, None),
    ("and an emptyDir of a size", PLAIN | {"emptyDirVolume": [{"path": "/scratch", "sizeLimit": "64Mi"}]}, None),
)


async def load(spec: PodSpec) -> Supplies:
    return SUPPLIES


async def measure_starts(folder: Path, rounds: int, storage: dict[str, Any]) -> tuple[list[float], str]:
    """Milliseconds from the order to the command's first instruction, one pod after another; and what each cost."""
    command, note = build_probe(folder)
    data = folder / "data"
    engine = LocalEngine(LocalSettings(data_dir=str(data)), clock, supplies=load)
    watch = Watch(engine)
    await engine.start(watch.news.set)
    took: list[float] = []
    used = 0.0
    try:
        # The first one makes what stays, such as the claim's file system.
        for _ in range(rounds + 1):
            used = used if took else cpu_seconds(data)
            spec = pod(*command, "/tmp/began")
            container = msgspec.structs.replace(
                spec.container, fields=msgspec.convert({"storage": storage}, ContainerFields)
            )
            spec = msgspec.structs.replace(spec, container=container)
            began = time.monotonic_ns()
            await engine.apply([Start(spec)])
            await watch.until([spec], PodState.EXITED)
            written = data / "pods" / "private" / f"{spec.pod_id}.1" / "tmp" / "began"
            took.append((int(written.read_text()) - began) / 1e6)
            await engine.drop_logs([spec.pod_id])
        used = (cpu_seconds(data) - used) * 1000 / len(took)
    finally:
        await engine.close()
    return took[1:], f"{used:.1f} ms of CPU from order to oblivion; {note}"


def measure(options: Options) -> Iterator[Measurement]:
    rounds = 15 if options.quick else 100
    for number, (name, storage, goal) in enumerate(CASES):
        folder = options.folder / str(number)
        folder.mkdir(parents=True)
        took, note = uvloop.run(measure_starts(folder, rounds, storage))
        tail = statistics.quantiles(took, n=100)[98]
        words = f"p99 {tail:.1f} ms; {note}"
        yield Measurement(f"order → first instruction, isolated, {name}", "ms", took, goal, note=words)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.volumes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look")
    # Not below /tmp, which shared pods have of their own, and open to the user as whom they run.
    with tempfile.TemporaryDirectory(prefix="fairlead-volumes-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        options = Options(quick=parser.parse_args().quick, folder=Path(folder))
        print(render_table(list(measure(options))))


if __name__ == "__main__":
    main()
