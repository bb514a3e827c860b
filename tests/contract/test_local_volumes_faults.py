"""Volumes when things go wrong: a supervisor killed on the way, a disk that is full."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.base import PodState, Start
from fairlead.model.pods.supplies import Supplies
from tests.contract.engine_harness import eventually, opened, scenario, shell
from tests.contract.storage_engine import call, claim, engine_maker, loops_of, nothing_left, personal, say
from tests.contract.test_local_engine import said, state_of
from tests.contract.test_local_volumes import SECRETS, data, needs_root

#: A fixture that is used by its name.
__all__ = ["data"]

STEPS: dict[str, Callable[[Path], list[Any]]] = {
    "claimed": lambda data: [path for path in (data / "pods" / "live").glob("*") if b"\n" in path.read_bytes()],
    "image-begun": lambda data: list((data / "claims").glob("*/image*")),
    "image-made": lambda data: list((data / "claims").glob("*/image")),
    "device-open": loops_of,
    "running": lambda data: [path for path in (data / "pods" / "live").glob("*") if b"Running" in path.read_bytes()],
}


@needs_root
class TestKilled:
    @pytest.mark.parametrize("step", STEPS)
    @scenario
    async def test_a_supervisor_killed_on_the_way_leaves_nothing(self, data: Path, step: str) -> None:
        supplies = Supplies(claims={0: claim("kept", size_bytes=64_000_000)}, secrets=SECRETS)
        storage = {
            "pvc": [{"path": "/claimed"}],
            "emptyDirVolume": [{"path": "/bounded", "sizeLimit": "16Mi"}],
            "secretVolume": [{"secret": "token", "mountPath": "/token"}],
        }
        async with opened(engine_maker(data, supplies)) as harness:
            spec = shell("sleep 600", fields={"storage": storage})
            await harness.engine.apply([Start(spec)])
            await eventually(lambda: STEPS[step](data), step)
            os.kill(state_of(data, spec)["pid"], signal.SIGKILL)
            assert (await harness.until(spec, PodState.LOST)).reason == "SupervisorLost"
            await nothing_left(data)
            assert await say(harness, "touch /claimed/x /bounded/y; ls /claimed /token", storage=storage) == (
                "/claimed:\nx\n\n/token:\nkey\nother\n"
            )
        await nothing_left(data)


class TestFullDisk:
    @needs_root
    @scenario
    async def test_a_pod_on_a_full_disk_ends_with_its_own_code(self, data: Path) -> None:
        call("mkdir", "-p", data)
        call("mount", "-t", "tmpfs", "-o", "size=3m", "none", data)
        try:
            async with opened(engine_maker(data, **personal())) as harness:
                go = data.parent / "go"
                spec = shell(f"echo early; until [ -e {go} ]; do sleep 0.02; done; seq 1 100000; exit 7")
                await harness.start(spec)
                await said(harness, spec, b"early")
                fill(data / "ballast")
                go.touch()
                report = await harness.until(spec, PodState.EXITED)
                assert report.exit_code == 7
                assert "was not kept: No space left on device" in report.message
                (data / "ballast").unlink()
                assert await say(harness, "echo on it goes") == "on it goes\n"
        finally:
            call("umount", "-l", data)


def fill(path: Path) -> None:
    """Write until the disk takes no more."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
