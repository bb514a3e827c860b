"""What every engine does with orders, seen through the seam alone."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.engines.base import Forget, LogRequest, PodState, Start, Stop
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import NotFound
from fairlead.model.pods.podset import PodSpec
from tests.contract.engine_harness import EngineHarness, RunningEngine, clock, myself, opened, pod, scenario, shell

Make = Callable[[], RunningEngine]


@pytest.fixture(params=["local"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A maker of engines that all look after the same pods."""
    settings = LocalSettings(data_dir=str(tmp_path / "data"), owner=load_identity(myself()))
    return lambda: LocalEngine(settings, clock)


@scenario
async def test_a_pod_runs_and_ends_well(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("echo out; echo err >&2")
        before = clock()
        report = await harness.run(spec)
        assert (report.state, report.exit_code, report.signal) == (PodState.EXITED, 0, None)
        assert report.workload_id == spec.workload_id
        assert report.started_at is not None
        assert report.ended_at is not None
        assert before - 1 <= report.started_at <= report.ended_at <= clock() + 1
        assert await harness.output(spec) == b"out\nerr\n"


@pytest.mark.parametrize(
    ("script", "want_code", "want_signal"),
    [("exit 0", 0, None), ("exit 3", 3, None), ("exit 255", 255, None), ("kill -9 $$", 137, 9), ("kill -6 $$", 134, 6)],
    ids=["ok", "three", "255", "killed", "aborted"],
)
@scenario
async def test_how_it_ended_is_reported(make: Make, script: str, want_code: int, want_signal: int | None) -> None:
    async with opened(make) as harness:
        report = await harness.run(shell(script))
        assert (report.exit_code, report.signal) == (want_code, want_signal)
        assert report.by_itself


@scenario
async def test_running_is_reported_before_the_end(make: Make) -> None:
    async with opened(make) as harness:
        spec = pod("sleep", "600")
        report = await harness.start(spec)
        assert report.state == PodState.RUNNING
        assert report.ended_at is None
        assert report.ready


@scenario
async def test_a_stop_sends_term_and_waits_for_the_grace(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
        await harness.start(spec)
        await _until_output(harness, spec, b"ready")
        report = await harness.stop(spec, grace=20)
        assert report.exit_code == 0
        assert not report.by_itself
        assert await harness.output(spec) == b"ready\nsaved\n"


@scenario
async def test_what_ignores_term_is_killed_after_the_grace(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        await harness.start(spec)
        await _until_output(harness, spec, b"ready")
        before = clock()
        report = await harness.stop(spec, grace=1)
        assert report.signal == signal.SIGKILL
        assert clock() - before >= 1000


@scenario
async def test_a_grace_of_zero_kills_at_once(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("trap 'echo never' TERM; echo ready; while :; do sleep 0.01; done")
        await harness.start(spec)
        await _until_output(harness, spec, b"ready")
        report = await harness.stop(spec, grace=0)
        assert report.signal == signal.SIGKILL
        assert await harness.output(spec) == b"ready\n"


@scenario
async def test_a_later_stop_shortens_the_grace(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        await harness.start(spec)
        await _until_output(harness, spec, b"ready")
        await harness.engine.apply([Stop(spec.pod_id, 1, 600)])
        report = await harness.stop(spec, grace=0)
        assert report.signal == signal.SIGKILL


@scenario
async def test_orders_can_be_repeated(make: Make, tmp_path: Path) -> None:
    async with opened(make) as harness:
        spec = shell(f"echo x >> {tmp_path}/starts")
        await harness.engine.apply([Start(spec), Start(spec)])
        await harness.run(spec)
        await harness.engine.apply(
            [Start(spec), Stop(spec.pod_id, 1, 0), Stop(spec.pod_id, 1, 0), Stop("unknown", 1, 0)]
        )
        await harness.engine.apply([Forget("unknown")])
        await harness.reopen()
        await harness.run(spec)
        assert (tmp_path / "starts").read_text() == "x\n"


@scenario
async def test_a_next_attempt_is_a_run_of_its_own(make: Make) -> None:
    async with opened(make) as harness:
        first = shell("echo one; exit 1")
        second = shell("echo two", pod_id=first.pod_id, attempt=2)
        assert (await harness.run(first)).exit_code == 1
        assert (await harness.run(second)).exit_code == 0
        assert await harness.output(first) == b"two\n"
        assert await harness.output(first, attempt=1) == b"one\n"


@scenario
async def test_a_new_server_finds_running_pods_and_what_ended_meanwhile(make: Make, tmp_path: Path) -> None:
    async with opened(make) as harness:
        lives, ends = pod("sleep", "600"), shell(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done; exit 5")
        await harness.start(lives)
        await harness.start(ends)
        await harness.engine.close()
        (tmp_path / "go").touch()
        await harness.reopen()
        assert (await harness.until(ends, PodState.EXITED)).exit_code == 5
        assert (await harness.until(lives, PodState.RUNNING)).started_at is not None
        assert await harness.output(ends) == b"done\n"
        assert (await harness.stop(lives)).signal == signal.SIGKILL


@scenario
async def test_the_first_observation_after_a_return_shows_every_pod(make: Make) -> None:
    async with opened(make) as harness:
        specs = [shell(f"exit {code}") for code in range(3)]
        for spec in specs:
            await harness.run(spec)
        await harness.reopen()
        await harness.look()
        reports = [harness.last(spec) for spec in specs]
        assert [report and report.exit_code for report in reports] == [0, 1, 2]


@scenario
async def test_a_forgotten_pod_is_gone_and_its_output_stays_until_dropped(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("echo kept")
        await harness.run(spec)
        await harness.engine.apply([Forget(spec.pod_id)])
        await harness.reopen()
        await harness.look()
        assert harness.last(spec) is None
        assert await harness.output(spec) == b"kept\n"
        await harness.engine.drop_logs([spec.pod_id])
        with pytest.raises(NotFound):
            await harness.output(spec)


@scenario
async def test_a_command_that_does_not_exist_is_an_end_with_a_reason(make: Make) -> None:
    async with opened(make) as harness:
        report = await harness.run(pod("no-such-command"))
        assert (report.state, report.reason, report.exit_code) == (PodState.EXITED, "StartError", 127)
        assert "no-such-command" in report.message


@scenario
async def test_output_can_be_followed_to_its_end(make: Make, tmp_path: Path) -> None:
    async with opened(make) as harness:
        spec = shell(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo two")
        await harness.start(spec)
        seen = b""
        async for piece in harness.engine.logs(_follow(spec.pod_id)):
            seen += piece
            if seen == b"one\n":
                (tmp_path / "go").touch()
        assert seen == b"one\ntwo\n"


@scenario
async def test_environment_and_identity_reach_the_process(make: Make) -> None:
    async with opened(make) as harness:
        spec = shell("echo $RUNAI_PROJECT $NODE_NAME $NVIDIA_VISIBLE_DEVICES")
        await harness.run(spec)
        assert await harness.output(spec) == b"research here void\n"


@scenario
async def test_capacity_names_nodes_with_cpu_and_memory(make: Make) -> None:
    async with opened(make) as harness:
        nodes = await harness.engine.capacity()
        assert nodes
        assert all(node.cpu_milli > 0 and node.memory_bytes > 0 and node.name for node in nodes)


def _follow(pod_id: str) -> LogRequest:
    return LogRequest(pod_id=pod_id, follow=True)


async def _until_output(harness: EngineHarness, spec: PodSpec, words: bytes) -> None:
    """Wait until the pod has said `words`, as it does when it is ready for what the test does next."""
    seen = b""
    async for piece in harness.engine.logs(_follow(spec.pod_id)):
        seen += piece
        if words in seen:
            return
    raise AssertionError(f"the pod ended and said only {seen!r}")
