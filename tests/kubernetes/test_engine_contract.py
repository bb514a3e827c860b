"""What both engines do with orders, asked of each in the same words through its seam."""

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from deploy.cluster import cluster as clusters
from tests.contract.engine_harness import clock, scenario
from tests.kubernetes.seams import ClusterSeam, LocalSeam

pytestmark = pytest.mark.kubernetes
Either = LocalSeam | ClusterSeam
Make = Callable[[], Either]


@pytest.fixture(params=["local", "kubernetes"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "local":
        return lambda: LocalSeam(tmp_path)
    cluster: clusters.Cluster = request.getfixturevalue("cluster")
    return lambda: ClusterSeam(cluster.kubeconfig)


@pytest.fixture
def clean() -> None:
    """Each of these tests leaves nothing by itself; no server is needed."""


@contextlib.asynccontextmanager
async def opened(make: Make) -> AsyncIterator[Either]:
    seam = make()
    await seam.open()
    try:
        yield seam
    finally:
        await seam.close()


@scenario
async def test_a_pod_runs_and_ends_well(make: Make) -> None:
    async with opened(make) as seam:
        before = clock()
        run = await seam.start("echo out; sleep 1; echo err >&2")
        seen = await seam.ended(run)
        assert (seen.exit_code, seen.signal) == (0, None)
        assert seen.started_at is not None
        assert seen.ended_at is not None
        # A cluster tells whole seconds.
        assert before - 1000 <= seen.started_at <= seen.ended_at <= clock() + 1000
        assert await seam.output(run) == b"out\nerr\n"


@scenario
async def test_how_each_ended_is_reported(make: Make) -> None:
    scripts = {"exit 0": 0, "exit 3": 3, "exit 255": 255, "sh -c 'kill -9 $$'; exit $?": 137}
    async with opened(make) as seam:
        runs = {script: await seam.start(script) for script in scripts}
        for script, want_code in scripts.items():
            assert (await seam.ended(runs[script])).exit_code == want_code, script


@scenario
async def test_running_is_reported_before_the_end(make: Make) -> None:
    async with opened(make) as seam:
        seen = await seam.running(await seam.start("sleep 600", grace=0))
        assert (seen.is_running, seen.ended_at) == (True, None)


@scenario
async def test_a_command_that_does_not_exist_is_an_end_with_a_reason(make: Make) -> None:
    async with opened(make) as seam:
        seen = await seam.ended(await seam.start("exec /no/such-command"))
        assert seen.exit_code == 127


@scenario
async def test_orders_can_be_repeated(make: Make) -> None:
    async with opened(make) as seam:
        run = await seam.start("echo once; sleep 600", grace=0)
        await seam.repeat(run)
        first = await seam.running(run)
        await seam.repeat(run)
        await seam.until_said(run, b"once")
        assert await seam.output(run) == b"once\n"
        assert (await seam.running(run)).id == first.id


@scenario
async def test_a_new_server_finds_what_runs_and_what_ended_meanwhile(make: Make) -> None:
    async with opened(make) as seam:
        lives, ends = await seam.start("sleep 600", grace=0), await seam.start("sleep 3; echo done; exit 5")
        was = await seam.running(lives)
        await seam.running(ends)
        await seam.reopen()
        assert (await seam.running(lives)).id == was.id
        assert (await seam.ended(ends)).exit_code == 5
        assert await seam.output(ends) == b"done\n"


@scenario
async def test_output_can_be_followed_to_its_end(make: Make) -> None:
    async with opened(make) as seam:
        run = await seam.start("echo one; sleep 2; echo two")
        await seam.running(run)
        assert await seam.output(run, follow=True) == b"one\ntwo\n"


@scenario
async def test_a_command_beside_the_pods_own(make: Make) -> None:
    async with opened(make) as seam:
        run = await seam.start("trap 'exit 0' TERM; sleep 600 & wait", grace=2)
        await seam.running(run)
        assert await seam.call(run, "sh", "-c", "echo beside; exit 7") == (b"beside\n", b"7")


@scenario
async def test_a_stop_ends_it(make: Make) -> None:
    """With TERM first, which it may take for a good end."""
    async with opened(make) as seam:
        run = await seam.start("trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", grace=20)
        await seam.running(run)
        await seam.until_said(run, b"ready")
        before = clock()
        await seam.stop(run, 20)
        if isinstance(seam, ClusterSeam):
            await seam.removed(run)
        else:
            assert (await seam.ended(run)).exit_code == 0
        assert clock() - before < 15_000


@scenario
async def test_capacity_names_nodes_with_cpu_and_memory(make: Make) -> None:
    async with opened(make) as seam:
        nodes = await seam.engine.capacity()
        assert nodes
        assert all(node.cpu_milli > 0 and node.memory_bytes > 0 and node.name for node in nodes)
