"""How limits hold on the local engine: by control groups where they can be made, else as well as can be."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import ExecRequest, PodState, Stop
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.linux import cgroups
from fairlead.engines.local.plan.limits import LimitSupport, observe_means
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.podset import EnvironmentVariable, PodSpec
from tests.contract.engine_harness import EngineHarness, clock, eventually, myself, opened, pod, scenario, shell
from tests.contract.network_pods import whole_output

Make = Callable[..., LocalEngine]
MEBIBYTE = 1024 * 1024
GROUPS = cgroups.observe()
needs_groups = pytest.mark.skipif(
    GROUPS is None or not {"cpu", "memory", "pids"} <= set(GROUPS.parents), reason="control groups cannot be written"
)
#: Takes memory in steps, and would go on for a while.
HUNGRY = (
    "import time\nheld = []\nfor _ in range(64):\n    held.append(b'x' * 2**23)\n    time.sleep(0.01)\ntime.sleep(60)"
)
#: Turns for as long as it is let, and says how much CPU time a second of it was.
BUSY = """
import time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() - begin < 1.5:
    pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""


def _hands_on(root: str) -> bool:
    """Whether a tree of the newer layout is there and lets us hand the controller on."""
    with contextlib.suppress(OSError):
        if "hugetlb" in Path(root, "cgroup.controllers").read_text().split():
            Path(root, "cgroup.subtree_control").write_text("+hugetlb")
            return True
    return False


class WithoutGroups(LocalEngine):
    """As on a machine where control groups cannot be written."""

    async def start(self, notify: Callable[[], None]) -> None:
        await super().start(notify)
        means = LimitSupport(groups=None, cores=self._rights.means.cores)
        self._rights = msgspec.structs.replace(self._rights, means=means)


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(data_dir=str(tmp_path / "data"), owner=load_identity(myself()))


@pytest.fixture
def make(settings: LocalSettings) -> Make:
    return lambda: LocalEngine(settings, clock)


def python(program: str, **container: Any) -> PodSpec:
    return pod("/usr/bin/env", "python3", "-c", program, **container)


def folders_of(spec: PodSpec) -> list[str]:
    assert GROUPS is not None
    names = {f"{parent}/{cgroups.PREFIX}{spec.pod_id}.{spec.attempt}" for parent in GROUPS.parents.values()}
    return [name for name in names if os.path.exists(name)]


@needs_groups
@scenario
async def test_memory_by_control_group(make: Make) -> None:
    async with opened(make) as harness:
        spec = python(HUNGRY, memory_limit_bytes=64 * MEBIBYTE)
        report = await harness.run(spec)
        assert (report.reason, report.exit_code) == ("OOMKilled", 137)
        assert str(64 * MEBIBYTE) in report.message
        assert folders_of(spec) == []


@needs_groups
@scenario
async def test_a_limit_below_what_any_process_needs(make: Make) -> None:
    """The process is killed on its way to the command, before it has said anything."""
    async with opened(make) as harness:
        report = await harness.run(shell("true", memory_limit_bytes=100_000))
        assert report.reason == "OOMKilled"
        assert "100000" in report.message


@needs_groups
@scenario
async def test_a_child_that_runs_out_of_memory_ends_the_pod(make: Make) -> None:
    async with opened(make) as harness:
        report = await harness.run(shell(f'python3 -c "{HUNGRY}"; sleep 600', memory_limit_bytes=64 * MEBIBYTE))
        assert report.reason == "OOMKilled"


@needs_groups
@scenario
async def test_a_command_beside_the_pod_counts_against_its_limits(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("sleep 600", memory_limit_bytes=64 * MEBIBYTE, cpu_limit_milli=500)
        await harness.start(spec)
        session = await harness.engine.exec(ExecRequest(pod_id=spec.pod_id, command=("cat", "/proc/self/cgroup")))
        output, _, _ = await whole_output(session)
        own = f"{cgroups.PREFIX}{spec.pod_id}.{spec.attempt}"
        held = [line for line in output.decode().splitlines() if line.endswith(own)]
        assert len(held) == (2 if GROUPS is not None and GROUPS.version == 1 else 1)
        session = await harness.engine.exec(ExecRequest(pod_id=spec.pod_id, command=("python3", "-c", HUNGRY)))
        assert (await whole_output(session))[2] != b"0"


@scenario
async def test_memory_by_watching(settings: LocalSettings) -> None:
    async with opened(lambda: WithoutGroups(settings, clock)) as harness:
        report = await harness.run(python(HUNGRY, memory_limit_bytes=64 * MEBIBYTE))
        assert (report.reason, report.exit_code) == ("OOMKilled", 137)


@needs_groups
@scenario
async def test_cpu_by_control_group(make: Make) -> None:
    async with opened(make) as harness:
        spec = python(BUSY, cpu_limit_milli=200)
        await harness.run(spec)
        assert float(await harness.output(spec)) < 0.35


@scenario
async def test_cpu_by_affinity(settings: LocalSettings) -> None:
    async with opened(lambda: WithoutGroups(settings, clock)) as harness:
        spec = python("import os; print(len(os.sched_getaffinity(0)), os.nice(0))", cpu_limit_milli=500)
        await harness.run(spec)
        assert (await harness.output(spec)).split() == [b"1", b"10"]


@needs_groups
@scenario
async def test_a_fork_bomb_ends_at_its_number(settings: LocalSettings) -> None:
    settings = msgspec.structs.replace(settings, pids_limit=30)
    async with opened(lambda: LocalEngine(settings, clock)) as harness:
        spec = shell("i=0; while [ $i -lt 60 ]; do sleep 600 & i=$((i+1)); done; echo not reached")
        report = await harness.run(spec)
        assert (report.state, report.exit_code) == (PodState.EXITED, 2)
        output = await harness.output(spec)
        assert b"not reached" not in output
        assert b"ork" in output  # the shell's own words for it
        assert folders_of(spec) == []
        # Nobody else was hindered.
        assert (await harness.run(shell("true"))).exit_code == 0


@needs_groups
@scenario
async def test_no_group_is_left_behind(make: Make, tmp_path: Path) -> None:
    async with opened(make) as harness:
        spec = shell("sleep 600", memory_limit_bytes=64 * MEBIBYTE, cpu_limit_milli=500)
        await harness.start(spec)
        assert folders_of(spec)
        await harness.engine.apply([Stop(spec.pod_id, spec.attempt, 0)])
        await harness.until(spec, PodState.EXITED)
        assert folders_of(spec) == []
        lost = shell("sleep 600", memory_limit_bytes=64 * MEBIBYTE)
        await harness.start(lost)
        await _kill_supervisor(harness, lost, tmp_path)
    await eventually(lambda: not folders_of(lost), "the group of a lost pod is gone once it is forgotten")


async def _kill_supervisor(harness: EngineHarness, spec: PodSpec, tmp_path: Path) -> None:
    journal = tmp_path / "data" / "pods" / "live" / f"{spec.pod_id}.{spec.attempt}"
    os.kill(msgspec.json.decode(journal.read_text().splitlines()[-1])["pid"], 9)
    await harness.until(spec, PodState.LOST)


class TestWithinReason:
    @scenario
    async def test_a_thousand_variables_and_a_long_argument(self, make: Make) -> None:
        async with opened(make) as harness:
            variables = tuple(EnvironmentVariable(name=f"V{number}", value="x" * 20) for number in range(1000))
            spec = pod("/bin/sh", "-c", "env | grep -c ^V; echo ${#1}", "sh", "y" * 100_000, environment=variables)
            assert (await harness.run(spec)).exit_code == 0
            assert (await harness.output(spec)).split() == [b"1000", b"100000"]

    @scenario
    async def test_more_than_the_kernel_takes(self, make: Make) -> None:
        async with opened(make) as harness:
            report = await harness.run(pod("/bin/echo", "z" * 200_000))
            assert (report.reason, report.exit_code) == ("StartError", 126)
            assert "Argument list too long" in report.message


def test_what_this_machine_has() -> None:
    means = observe_means()
    assert means.cores
    assert means.threads > 0


# The newer layout, by the kernel's own word. Machines with both layouts leave it this controller, if any.

CONTROLLER = "hugetlb"
NEWER = next((root for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if _hands_on(root)), "")


@pytest.fixture
def service() -> Iterator[Path]:
    """A service's group as a service manager makes it, in the machine's own tree of the newer layout."""
    folder = Path(NEWER) / f"fairlead-test-{os.getpid()}.service"
    folder.mkdir()
    yield folder
    aside = Path(NEWER) / "fairlead"
    for each in (*aside.glob("fairlead-test*"), folder / "fairlead.server", folder, aside):
        with contextlib.suppress(OSError):
            each.rmdir()


@pytest.mark.skipif(not NEWER, reason=f"no tree of the newer layout has the controller {CONTROLLER} to hand on")
def test_a_service_starts_again_while_pods_with_limits_live(service: Path, tmp_path: Path) -> None:
    """Groups of pods lie beside the service's: into one that hands controllers on, the kernel lets nobody."""
    membership = tmp_path / "membership"
    membership.write_text(f"0::/{service.name}\n")
    server, pod_process = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    try:
        (service / "cgroup.procs").write_text(str(server.pid))
        observed = cgroups.observe(NEWER, str(membership), (CONTROLLER,))
        assert observed == cgroups.Groups(2, {CONTROLLER: f"{NEWER}/fairlead"})
        own = Path(NEWER) / "fairlead" / f"fairlead-test-{os.getpid()}.1"
        own.mkdir()
        assert CONTROLLER in (own / "cgroup.controllers").read_text()
        (own / "cgroup.procs").write_text(str(pod_process.pid))
        server.kill()
        server.wait()
        # As the manager does at a restart.
        server = subprocess.Popen(["sleep", "600"])
        (service / "cgroup.procs").write_text(str(server.pid))
        assert (service / "cgroup.procs").read_text().split() == [str(server.pid)]
        # What would have been, had the pods' groups been below the service's.
        (service / "leaf").mkdir()
        (service / "leaf" / "cgroup.procs").write_text(str(server.pid))
        (service / "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
        with pytest.raises(OSError, match="busy"):
            (service / "cgroup.procs").write_text(str(server.pid))
    finally:
        for process in (server, pod_process):
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            (service / "leaf").rmdir()
