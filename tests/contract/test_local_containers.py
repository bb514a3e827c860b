"""Sessions into a container: a command beside the pod's own runs in the container, never on the machine itself."""

import contextlib
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fairlead.engines.base import ExecRequest, PodState
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from tests.builders import container_fields
from tests.contract.engine_harness import clock, eventually, myself, opened, pod, scenario
from tests.contract.network_pods import whole_output

pytestmark = [pytest.mark.debian("podman"), pytest.mark.debian("runc"), pytest.mark.debian("busybox-static")]
IMAGE = "localhost/fairlead-box:1"
STORAGE = {"emptyDirVolume": [{"path": "/scratch"}]}


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[list[str]]:
    """A podman with a store of its own that holds one image, as the words before its verb."""
    # Podman takes no longer path than 50 characters for what it keeps while it runs.
    running = tempfile.mkdtemp(prefix="fairlead")
    options = [f"--root={tmp_path}/store", f"--runroot={running}"]
    command = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", *options]
    archive = tmp_path / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(shutil.which("busybox") or "", arcname="bin/busybox")
        for name in ("sh", "echo", "sleep", "cat", "ls"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    subprocess.run([*command, "import", str(archive), IMAGE], check=True, capture_output=True)
    yield command
    subprocess.run([*command, "rm", "--all", "--force"], check=True, capture_output=True)
    subprocess.run(["umount", f"{tmp_path}/store/overlay"], check=False, capture_output=True)
    shutil.rmtree(running)


@pytest.fixture
def make(podman: list[str], tmp_path: Path) -> Callable[[], LocalEngine]:
    settings = LocalSettings(
        data_dir=str(tmp_path / "data"),
        owner=load_identity(myself()),
        runtimes=("podman",),
        runtime_options=tuple(podman[3:]),
    )
    return lambda: LocalEngine(settings, clock)


def names(podman: list[str]) -> bytes:
    """The containers that there are."""
    return subprocess.run([*podman, "ps", "--all", "--format={{.Names}}"], check=True, capture_output=True).stdout


@scenario
async def test_a_command_beside_the_pod_runs_in_its_container(
    make: Callable[[], LocalEngine], podman: list[str]
) -> None:
    async with opened(make) as harness:
        spec = pod("/bin/sleep", "600")
        container = msgspec.structs.replace(spec.container, image=IMAGE, termination_grace_seconds=0)
        spec = msgspec.structs.replace(spec, container=container)
        await harness.start(spec)
        await eventually(lambda: names(podman), "it runs")
        command = ("/bin/sh", "-c", "ls /bin; echo wrong >&2; exit 7")
        session = await harness.engine.exec(ExecRequest(pod_id=spec.pod_id, command=command))
        output, errors, code = await whole_output(session)
        assert output.split() == [b"busybox", b"cat", b"echo", b"ls", b"sh", b"sleep"]
        assert (errors.strip(), code) == (b"wrong", b"7")
        await harness.stop(spec)
    assert names(podman) == b""


def find_process(program: str, container: str) -> int:
    """The process of a program that looks after a container; 0 for none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if os.path.basename(arguments[0]) == program and any(container in word for word in arguments[1:]):
                    return int(entry.name)
    return 0


@pytest.mark.parametrize("program", ["podman", "conmon", "the command"])
@scenario
async def test_a_runtime_killed_in_the_middle_leaves_a_clear_end_and_no_container(
    make: Callable[[], LocalEngine], podman: list[str], program: str
) -> None:
    # Found by the length of its sleep, which no container of a test beside this one shares.
    seconds = f"600.{os.getpid()}"
    async with opened(make) as harness:
        spec = pod("/bin/sleep", seconds)
        container = msgspec.structs.replace(spec.container, image=IMAGE, fields=container_fields({"storage": STORAGE}))
        spec = msgspec.structs.replace(spec, container=container)
        await harness.start(spec)
        name = f"fairlead-{spec.pod_id}.1"
        running = [*podman, "ps", "--format={{.Names}}"]
        await eventually(lambda: name in subprocess.run(running, capture_output=True, text=True).stdout, "it runs")
        found = find_process("sleep", seconds) if program == "the command" else find_process(program, name)
        assert found
        os.kill(found, signal.SIGKILL)
        report = await harness.until(spec, PodState.EXITED)
        assert report.exit_code not in (None, 0)
        assert report.message
        await eventually(lambda: names(podman) == b"", "no container is left")
        assert find_process("sleep", seconds) == 0
        assert find_process("conmon", name) == 0
