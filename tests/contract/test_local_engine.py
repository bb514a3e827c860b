"""What only the local engine promises: nothing escapes, nothing is lost, nothing runs twice, little is needed."""

import asyncio
import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from fairlead.engines.base import Forget, LogRequest, PodState, Start, Stop
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.linux import procfs
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.clock import from_iso
from fairlead.model.errors import NotFound
from fairlead.model.pods.podset import PodSpec
from tests.contract.engine_harness import (
    EngineHarness,
    clock,
    eventually,
    is_running,
    myself,
    opened,
    pod,
    scenario,
    shell,
)

Make = Callable[[], LocalEngine]
AS_ROOT = os.geteuid() == 0
#: A process that leaves its parent, its session and its terminal, and says who it is.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
time.sleep(float(sys.argv[2]))
"""


def state_of(data: Path, spec: PodSpec) -> dict[str, int]:
    return dict(json.loads(journal_of(data, spec).read_text().splitlines()[-1]))


def journal_of(data: Path, spec: PodSpec) -> Path:
    return data / "pods" / "live" / f"{spec.pod_id}.{spec.attempt}"


async def daemon(harness: EngineHarness, tmp_path: Path, seconds: float) -> tuple[PodSpec, int]:
    """A started pod with a daemonised grandchild, and the grandchild's pid."""
    place = tmp_path / "daemon"
    spec = pod("/usr/bin/env", "python3", "-c", DAEMON, str(place), str(seconds))
    await harness.start(spec)
    await eventually(place.exists, "the daemon says who it is")
    return spec, int(place.read_text())


class TestEnds:
    @scenario
    async def test_no_daemonised_grandchild_survives_a_stop(self, make: Make, tmp_path: Path) -> None:
        async with opened(make) as harness:
            spec, grandchild = await daemon(harness, tmp_path, 600)
            assert is_running(grandchild)
            await harness.stop(spec, grace=0)
            assert not is_running(grandchild)

    @scenario
    async def test_no_grandchild_survives_the_main_process(self, make: Make, tmp_path: Path) -> None:
        async with opened(make) as harness:
            spec, grandchild = await daemon(harness, tmp_path, 0)
            report = await harness.until(spec, PodState.EXITED)
            assert report.exit_code == 0
            assert not is_running(grandchild)

    @scenario
    async def test_term_goes_to_the_main_process_only(self, make: Make) -> None:
        async with opened(make) as harness:
            child = (
                "trap 'echo child got it' TERM; echo ready; for i in 1 2 3 4 5; do sleep 0.02; done; echo child done"
            )
            spec = shell(f"trap 'wait; exit 0' TERM; sh -c \"{child}\" & wait; wait")
            await harness.start(spec)
            await said(harness, spec, b"ready")
            await harness.stop(spec, grace=20)
            assert await harness.output(spec) == b"ready\nchild done\n"

    @scenario
    async def test_a_family_that_keeps_forking_is_ended(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("echo ready; f() { sleep 0.01; f & f & wait; }; ulimit -u 400; f & sleep 600")
            await harness.start(spec)
            await said(harness, spec, b"ready")
            await harness.stop(spec, grace=0)
            assert procfs.marked(f"{spec.pod_id}.1") == []

    @scenario
    async def test_a_killed_supervisor_ends_its_pod(self, make: Make, tmp_path: Path, data: Path) -> None:
        async with opened(make) as harness:
            spec, grandchild = await daemon(harness, tmp_path, 600)
            state = state_of(data, spec)
            os.kill(state["pid"], signal.SIGKILL)
            report = await harness.until(spec, PodState.LOST)
            assert report.reason == "SupervisorLost"
            assert not is_running(state["main"])
            assert not is_running(grandchild)
            await harness.reopen()
            assert (await harness.until(spec, PodState.LOST)).ended_at == report.ended_at

    @scenario
    async def test_a_supervisor_killed_while_the_server_is_away(self, make: Make, tmp_path: Path, data: Path) -> None:
        async with opened(make) as harness:
            spec, grandchild = await daemon(harness, tmp_path, 600)
            await harness.engine.close()
            os.kill(state_of(data, spec)["pid"], signal.SIGKILL)
            await eventually(lambda: not is_running(grandchild), "the fork server ends what is left")
            await harness.reopen()
            assert (await harness.until(spec, PodState.LOST)).reason == "SupervisorLost"

    @scenario
    async def test_supervisor_and_fork_server_both_killed(self, make: Make, tmp_path: Path, data: Path) -> None:
        async with opened(make) as harness:
            spec, grandchild = await daemon(harness, tmp_path, 600)
            state = state_of(data, spec)
            parent = parent_of(state["pid"])
            await harness.engine.close()
            os.kill(parent, signal.SIGKILL)
            await eventually(lambda: not is_running(parent))
            os.kill(state["pid"], signal.SIGKILL)
            await harness.reopen()
            assert (await harness.until(spec, PodState.LOST)).reason == "SupervisorLost"
            assert not is_running(grandchild)
            assert not is_running(state["main"])

    @scenario
    async def test_a_restarted_machine_is_recognized(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = pod("sleep", "600")
            await harness.start(spec)
            state = state_of(data, spec)
            await harness.engine.close()
            os.kill(state["pid"], signal.SIGKILL)
            await eventually(lambda: not is_running(state["pid"]))
            journal_of(data, spec).write_text(json.dumps({**state, "boot": "another"}) + "\n")
            await harness.reopen()
            assert (await harness.until(spec, PodState.LOST)).reason == "NodeRebooted"

    @scenario
    async def test_a_pod_outlives_its_fork_server(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            before = pod("sleep", "600")
            await harness.start(before)
            parent = parent_of(state_of(data, before)["pid"])
            os.kill(parent, signal.SIGKILL)
            await eventually(lambda: not is_running(parent))
            assert (await harness.run(shell("exit 4"))).exit_code == 4
            assert is_running(state_of(data, before)["main"])
            assert (await harness.stop(before)).signal == signal.SIGKILL

    @scenario
    async def test_a_stop_continues_while_the_server_is_away(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
            await harness.start(spec)
            await said(harness, spec, b"ready")
            main = state_of(data, spec)["main"]
            await harness.engine.apply([stop_of(spec, 1)])
            await harness.engine.close()
            await eventually(lambda: not is_running(main))
            await harness.reopen()
            assert (await harness.until(spec, PodState.EXITED)).signal == signal.SIGKILL

    @scenario
    async def test_nothing_is_left_when_all_is_over(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell("exit 0")
            await harness.run(spec)
            longer = pod("sleep", "600")
            await harness.start(longer)
            parent = parent_of(state_of(data, longer)["pid"])
        await eventually(lambda: not is_running(parent), "the fork server goes with the last server and pod")
        assert list((data / "pods" / "live").iterdir()) == []
        assert list((data / "pods" / "logs").iterdir()) == []


class TestStarts:
    @pytest.mark.parametrize(
        ("command", "want_code", "want_words"),
        [
            (("no-such-command",), 127, "No such file or directory"),
            (("/etc/passwd",), 126, "Permission denied"),
            (("{tmp}/binary",), 126, "Exec format error"),
            (("{tmp}/script",), 127, "interpreter"),
            (("{tmp}",), 126, "Permission denied"),
        ],
        ids=["missing", "not executable", "no program", "no interpreter", "a folder"],
    )
    @scenario
    async def test_errors_of_the_system(
        self, make: Make, tmp_path: Path, command: tuple[str, ...], want_code: int, want_words: str
    ) -> None:
        for name, content in (("binary", b"\x00\x01\x02"), ("script", b"#!/no/such/interpreter\n")):
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).chmod(0o755)
        async with opened(make) as harness:
            report = await harness.run(pod(*(word.format(tmp=tmp_path) for word in command)))
            assert (report.reason, report.exit_code) == ("StartError", want_code)
            assert want_words in report.message

    @scenario
    async def test_a_working_directory_that_is_not_there(self, make: Make) -> None:
        async with opened(make) as harness:
            report = await harness.run(shell("pwd", working_dir="/no/such/folder"))
            assert report.reason == "StartError"
            assert "'/no/such/folder': No such file or directory" in report.message

    @scenario
    async def test_an_argument_that_no_process_can_have(self, make: Make) -> None:
        async with opened(make) as harness:
            report = await harness.run(pod("echo", "a\0b"))
            assert report.reason == "StartError"
            assert "null byte" in report.message

    @scenario
    async def test_a_stop_right_behind_the_start(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = pod("sleep", "600")
            await harness.engine.apply([Start(spec), stop_of(spec, 0)])
            assert (await harness.until(spec, PodState.EXITED)).signal == signal.SIGKILL

    @scenario
    async def test_no_command_at_all(self, make: Make) -> None:
        async with opened(make) as harness:
            report = await harness.run(pod())
            assert report.reason == "StartError"
            assert "entry point" in report.message

    @scenario
    async def test_working_directory_and_long_arguments(self, make: Make, tmp_path: Path) -> None:
        async with opened(make) as harness:
            spec = shell("pwd; echo ${#LONG}; printf %s $0 | wc -c", working_dir=str(tmp_path))
            long = msgspec.structs.replace(spec.container, args=("x" * 100_000,))
            spec = msgspec.structs.replace(spec, container=long)
            await harness.run(spec)
            assert (await harness.output(spec)).split() == [str(tmp_path).encode(), b"0", b"100000"]

    @scenario
    async def test_a_terminal_is_a_real_one(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("test -t 0 && test -t 1 && test -t 2 && tty && echo $TERM", tty=True, stdin=True)
            assert (await harness.run(spec)).exit_code == 0
            output = await harness.output(spec)
            assert output.startswith(b"/dev/pts/")
            assert output.endswith(b"xterm-256color\r\n")

    @scenario
    async def test_without_stdin_there_is_an_end_at_once(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = pod("cat")
            assert (await harness.run(spec)).exit_code == 0

    @scenario
    async def test_the_command_finds_signals_and_descriptors_as_usual(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("ls -l /proc/self/fd | grep -c ' -> '; grep -E 'Sig(Blk|Ign)' /proc/self/status; umask")
            await harness.run(spec)
            output = (await harness.output(spec)).split(b"\n")
            # The three streams, and the folder that ls itself has open.
            assert output[0] == b"4"
            # Signals 32 and 33 belong to the C library, which lets no program change them: as inherited.
            assert [int(line.split()[-1], 16) & ~(3 << 31) for line in output[1:3]] == [0, 0]
            assert output[3] == b"0022"

    @scenario
    async def test_a_hundred_pods_at_once(self, make: Make) -> None:
        async with opened(make) as harness:
            specs = [shell("echo $RUNAI_PROJECT; sleep 600") for _ in range(100)]
            await harness.engine.apply([Start(spec) for spec in specs])
            for spec in specs:
                await harness.until(spec, PodState.RUNNING)
            await harness.engine.apply([stop_of(spec, 0) for spec in specs])
            ends = [await harness.until(spec, PodState.EXITED) for spec in specs]
            assert {end.signal for end in ends} == {signal.SIGKILL}

    @scenario
    async def test_a_running_pod_is_light(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            specs = [pod("sleep", "600") for _ in range(20)]
            await harness.start(specs[0])
            parent = parent_of(state_of(data, specs[0])["pid"])
            alone = proportional(parent) + proportional(state_of(data, specs[0])["pid"])
            for spec in specs[1:]:
                await harness.start(spec)
            together = proportional(parent) + sum(proportional(state_of(data, spec)["pid"]) for spec in specs)
            # The goal is 2 MB, which `make bench` measures; what other processes share moves this sum by some 5 %.
            assert (together - alone) / (len(specs) - 1) < 2.5 * 1024 * 1024

    @scenario
    async def test_a_memory_limit_holds(self, make: Make) -> None:
        async with opened(make) as harness:
            hungry = "import time\nx = bytearray(100_000_000)\ntime.sleep(600)"
            report = await harness.run(pod("/usr/bin/env", "python3", "-c", hungry, memory_limit_bytes=50_000_000))
            assert (report.reason, report.exit_code) == ("OOMKilled", 137)
            assert "50000000" in report.message


class TestShared:
    """The mode in which pods do not see each other's and the server's files."""

    @pytest.fixture
    def settings(self, data: Path) -> LocalSettings:
        return LocalSettings(data_dir=str(data))

    @pytest.mark.skipif(not AS_ROOT, reason="needs root")
    @scenario
    async def test_a_root_server_runs_pods_without_root(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("id -u; id -g; id -G; pwd; grep NoNewPrivs /proc/self/status")
            await harness.run(spec)
            arguments = (await harness.output(spec)).split()
            assert arguments == [b"65534", b"65534", b"65534", b"/home/fairlead", b"NoNewPrivs:", b"1"]

    @scenario
    async def test_the_data_folder_is_out_of_sight(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell(f"ls -A {data}; ls -A {data}/pods")
            assert (await harness.run(spec)).exit_code != 0
            assert b"live" not in await harness.output(spec)

    @scenario
    async def test_only_its_own_places_can_be_written(self, make: Make) -> None:
        places = ["/var/tmp/fairlead-try", "/etc/fairlead-try"]
        async with opened(make) as harness:
            writes = "; ".join(f"( : > {place} ) 2>/dev/null && echo {place}" for place in places)
            spec = shell(f"touch ~/a /tmp/b /dev/shm/c && echo own; {writes}; ls /tmp ~")
            await harness.run(spec)
            assert (await harness.output(spec)).split() == [b"own", b"/home/fairlead:", b"a", b"/tmp:", b"b"]

    @scenario
    async def test_private_places_go_with_the_pod(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell("echo secret > ~/file; echo secret > /tmp/file")
            await harness.run(spec)
        assert files_below(data, "file") == []

    @scenario
    async def test_without_isolation_only_where_allowed(self, data: Path, tmp_path: Path) -> None:
        settings = LocalSettings(data_dir=str(data), run_as=load_identity(myself()), allowed=Allowed(no_isolation=True))
        async with opened(lambda: LocalEngine(settings, clock)) as harness:
            spec = shell(f"ls -d {tmp_path}")
            assert (await harness.run(spec)).exit_code == 0


class TestFiles:
    @scenario
    async def test_files_are_their_owners_alone(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = pod("sleep", "600")
            await harness.start(spec)
            for path in (data / "pods").rglob("*"):
                assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path

    @scenario
    async def test_two_engines_of_one_folder_start_one_fork_server(self, make: Make, data: Path) -> None:
        async with opened(make) as first, opened(make) as second:
            specs = pod("sleep", "600"), pod("sleep", "600")
            await asyncio.gather(first.start(specs[0]), second.start(specs[1]))
            parents = {parent_of(state_of(data, spec)["pid"]) for spec in specs}
            assert len(parents) == 1


def files_below(folder: Path, name: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.match(name)]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def stop_of(spec: PodSpec, grace: int) -> Stop:
    return Stop(spec.pod_id, spec.attempt, grace)


async def said(harness: EngineHarness, spec: PodSpec, words: bytes) -> None:
    """Wait until the pod has said `words`, as it does when it is ready for what the test does next."""
    seen = b""
    async for piece in harness.engine.logs(LogRequest(pod_id=spec.pod_id, follow=True)):
        seen += piece
        if words in seen:
            return
    raise AssertionError(f"the pod ended and said only {seen!r}")


class TestLogs:
    @pytest.fixture
    def settings(self, data: Path) -> LocalSettings:
        return LocalSettings(data_dir=str(data), owner=load_identity(myself()), log_segment_bytes=1000, log_segments=3)

    @scenario
    async def test_output_is_rotated_and_the_last_whole_lines_are_kept(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell("i=1000; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")
            await harness.run(spec)
            lines = (await harness.output(spec)).splitlines()
            assert lines[-1] == b"line 1999"
            assert lines == [f"line {number}".encode() for number in range(2000 - len(lines), 2000)]
            assert 150 <= len(lines) <= 300
            assert len(files_below(data, "1.*.log")) == 3

    @scenario
    async def test_tail_limit_and_timestamps(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("echo one; echo two; printf three")
            before = clock()
            await harness.run(spec)
            assert await harness.output(spec, tail=2) == b"two\nthree"
            assert await harness.output(spec, tail=0) == b""
            assert await harness.output(spec, limit_bytes=5) == b"one\nt"
            stamped = (await harness.output(spec, timestamps=True)).splitlines()
            times, words = zip(*(line.split(b" ", 1) for line in stamped), strict=True)
            assert words == (b"one", b"two", b"three")
            assert all(before <= from_iso(time.decode()) <= clock() for time in times)

    @scenario
    async def test_since_cuts_by_the_time_of_arrival(self, make: Make, tmp_path: Path) -> None:
        async with opened(make) as harness:
            spec = shell(f"echo early; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo late")
            await harness.start(spec)
            await said(harness, spec, b"early")
            heard = clock()
            between = await eventually(lambda: clock() > heard and clock())
            (tmp_path / "go").touch()
            await harness.until(spec, PodState.EXITED)
            assert await harness.output(spec, since=between) == b"late\n"
            assert await harness.output(spec, since=clock() + 1000) == b""
            assert await harness.output(spec, since=0) == b"early\nlate\n"

    @scenario
    async def test_many_thousands_of_lines_a_second(self, make: Make) -> None:
        """They neither stop the pod nor another beside it; what is kept ends with the last line."""
        async with opened(make) as harness:
            chatty = shell("seq 1 2000000; echo done")
            await harness.engine.apply([Start(chatty)])
            assert (await harness.run(shell("exit 3"))).exit_code == 3
            assert (await harness.until(chatty, PodState.EXITED)).exit_code == 0
            assert (await harness.output(chatty, tail=2)).split() == [b"2000000", b"done"]

    @scenario
    async def test_binary_output_and_very_long_lines_come_back_as_they_are(self, data: Path) -> None:
        settings = LocalSettings(data_dir=str(data), owner=load_identity(myself()))
        async with opened(lambda: LocalEngine(settings, clock)) as harness:
            script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4000 + b'x' * 3_000_000)"
            spec = pod("/usr/bin/env", "python3", "-c", script)
            await harness.run(spec)
            assert await harness.output(spec) == bytes(range(256)) * 4000 + b"x" * 3_000_000
            assert len(await harness.output(spec, timestamps=True, tail=1)) == 3_000_000 + 245 + len(
                "2026-01-01T00:00:00.000Z "
            )

    @scenario
    async def test_a_follower_sees_all_of_a_chatty_pod(self, data: Path) -> None:
        settings = LocalSettings(data_dir=str(data), owner=load_identity(myself()))
        async with opened(lambda: LocalEngine(settings, clock)) as harness:
            spec = shell("seq 1 200000")
            await harness.start(spec)
            assert await harness.output(spec, follow=True) == b"".join(b"%d\n" % number for number in range(1, 200_001))

    @scenario
    async def test_a_disk_that_takes_no_more_does_not_stop_the_pod(self, make: Make, data: Path) -> None:
        async with opened(make) as harness:
            spec = shell("echo lost; exit 7")
            place = data / "pods" / "logs" / spec.pod_id
            place.write_text("a file where the folder should be")
            report = await harness.run(spec)
            place.unlink()
            assert report.exit_code == 7
            assert "was not kept" in report.message

    @scenario
    async def test_old_logs_of_forgotten_pods_expire(self, settings: LocalSettings) -> None:
        engine = LocalEngine(settings, clock)
        async with opened(lambda: engine) as harness:
            forgotten, known = shell("echo one"), shell("echo two")
            await harness.run(forgotten)
            await harness.run(known)
            await engine.apply([Forget(forgotten.pod_id)])
            assert await engine.expire_logs(clock() - 60_000) == 0
            assert await engine.expire_logs(clock() + 1000) == 1
            assert await harness.output(known) == b"two\n"
            with pytest.raises(NotFound):
                await harness.output(forgotten)
