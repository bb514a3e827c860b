"""What tests of volumes share: an engine with things to mount, and a look at what the machine still holds of it."""

import glob
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import ClaimSupply, Supplies
from tests.contract.engine_harness import EngineHarness, clock, eventually, myself, shell

AS_ROOT = os.geteuid() == 0
NOTHING = Supplies()
#: For pods that fetch from a service of the test, which listens at this machine's loopback.
ON_MACHINE: dict[str, Any] = {"security": {"hostNetwork": True}}


def engine_maker(data: Path, supplies: Supplies = NOTHING, **settings: Any) -> Callable[[], LocalEngine]:
    """Of a shared engine, or of a personal one by `owner`."""

    async def load(pod: PodSpec) -> Supplies:
        return supplies

    settings.setdefault("allowed", Allowed(host_namespaces=True))
    return lambda: LocalEngine(LocalSettings(data_dir=str(data), **settings), clock, supplies=load)


def personal() -> dict[str, Any]:
    return {"owner": load_identity(myself())}


def claim(name: str, **members: Any) -> ClaimSupply:
    return ClaimSupply(id=f"id-of-{name}", name=name, **members)


async def say(harness: EngineHarness, script: str, **fields: Any) -> str:
    """What a pod with these fields says to the end of a script that must go well."""
    container = {"working_dir": fields.pop("workingDir")} if "workingDir" in fields else {}
    spec = shell(script, fields=fields, **container)
    report = await harness.run(spec)
    output = (await harness.output(spec)).decode() if report.reason not in ("StartError", "FetchError") else ""
    assert report.exit_code == 0, f"{report.message}\n{output}"
    return output


async def fail(harness: EngineHarness, script: str = "true", **fields: Any) -> str:
    """The words with which a pod with these fields fails."""
    report = await harness.run(shell(script, fields=fields))
    assert report.exit_code != 0
    return report.message


def loops_of(folder: Path) -> list[str]:
    """Loop devices whose files lie below a folder."""
    found = []
    for backing in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            text = Path(backing).read_text()
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found


def mounts_of(folder: Path) -> list[str]:
    """Mounts of this machine that have to do with a folder."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f" {folder}/" in line]


async def nothing_left(folder: Path) -> None:
    await eventually(lambda: not loops_of(folder), "no loop device is left")
    assert mounts_of(folder) == []


def exists(path: str) -> bool:
    return os.path.lexists(path)


def call(*arguments: str | Path) -> str:
    """What a program of this machine says; it must go well."""
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def files_with(folder: Path, words: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def has_nfs() -> bool:
    return "\tnfs" in Path("/proc/filesystems").read_text()
