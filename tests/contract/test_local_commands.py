"""Commands that programs of one pod run in others of its group: who may, where, and how they come to an end."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import PodState
from fairlead.engines.local import wire
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.plan.remote_exec import AGENT, PLACE
from fairlead.engines.local.settings import LocalSettings
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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def make(data: Path) -> Make:
    settings = LocalSettings(data_dir=str(data), owner=load_identity(myself()))
    return lambda: LocalEngine(settings, clock)


def member(spec: PodSpec, name: str, role: str = "worker", **members: Any) -> PodSpec:
    return msgspec.structs.replace(
        spec, workload_id="w", workload_name="job", pod_name=name, role=role, addressed=True, **members
    )


def worker(name: str = "job-worker-0", script: str = "sleep 600", **members: Any) -> PodSpec:
    return member(shell(script), name, **members)


def launcher(script: str, **members: Any) -> PodSpec:
    return member(shell(script), "job-launcher-0", "launcher", **({"may_exec_in": "worker"} | members))


async def said(harness: EngineHarness, spec: PodSpec) -> str:
    """What it wrote, when it has ended."""
    report = await harness.until(spec, PodState.EXITED)
    assert report.reason != "StartError", report
    return (await harness.output(spec)).decode()


@scenario
async def test_a_command_runs_in_the_other_pod_and_its_output_and_exit_code_come_back(make: Make) -> None:
    asking = f"echo three | {AGENT} job-worker-0 'echo one; echo two >&2; cat; echo $MARK; exit 7' 2>&1; echo $?"
    async with opened(make) as harness:
        await harness.start(worker(variables={"MARK": "worker"}))
        await harness.start(spec := launcher(asking))
        assert sorted((await said(harness, spec)).split()) == sorted(["one", "two", "three", "worker", "7"])


@scenario
async def test_options_of_ssh_and_longer_names_are_understood(make: Make) -> None:
    asking = f"{AGENT} -x -o ConnectionAttempts=10 -l somebody job-worker-0.job.runai-research echo 'a  b' \"'c  d'\""
    async with opened(make) as harness:
        await harness.start(worker())
        await harness.start(spec := launcher(asking))
        assert await said(harness, spec) == "a b c  d\n"


@scenario
async def test_a_pod_that_does_not_run_yet_is_waited_for(make: Make) -> None:
    async with opened(make) as harness:
        await harness.start(spec := launcher(f"echo asks; {AGENT} job-worker-0 echo here"))
        await harness.start(worker())
        assert await said(harness, spec) == "asks\nhere\n"


@scenario
async def test_a_replacement_answers_by_the_same_name(make: Make) -> None:
    async with opened(make) as harness:
        await harness.start(first := worker())
        await harness.stop(first)
        await harness.start(worker(variables={"MARK": "second"}))
        await harness.start(spec := launcher(f"{AGENT} job-worker-0 'echo $MARK'"))
        assert await said(harness, spec) == "second\n"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"workload_id": "another"}, id="of another workload"),
        pytest.param({"group": 1}, id="of another group"),
        pytest.param({"role": "launcher"}, id="of another role"),
    ],
)
@scenario
async def test_other_pods_cannot_be_commanded(make: Make, other: dict[str, Any]) -> None:
    """Asked without the program's patience."""
    request = '{"pod": "job-worker-0", "argv": ["true"]}'
    script = f"""
import socket
link = socket.socket(socket.AF_UNIX)
link.connect("{PLACE}/socket")
request = b'{request}'
link.sendall(len(request).to_bytes(4, "big") + request)
print(link.recv(1000)[4:].decode())
"""
    async with opened(make) as harness:
        await harness.start(msgspec.structs.replace(worker(), **other))
        await harness.start(spec := member(pod(sys.executable, "-c", script), "l-0", "launcher", may_exec_in="worker"))
        assert "no pod 'job-worker-0' runs that this pod may run commands in" in await said(harness, spec)


@scenario
async def test_pods_without_the_right_to_command_others_find_nothing(make: Make) -> None:
    async with opened(make) as harness:
        await harness.start(spec := launcher(f"ls {PLACE}", may_exec_in=""))
        assert "No such file" in await said(harness, spec)


@scenario
async def test_who_is_not_of_the_pod_is_not_heard(make: Make, data: Path) -> None:
    """The owner of the data folder reaches the socket, and the kernel says that it is not the pod's own process."""
    async with opened(make) as harness:
        await harness.start(worker())
        await harness.start(spec := launcher("sleep 600"))
        [path] = (data / "pods" / "private" / f"{spec.pod_id}.1").glob("*/socket")
        with wire.connect(str(path)) as link:
            link.settimeout(120)
            request = b'{"pod": "job-worker-0", "argv": ["true"]}'
            try:
                link.sendall(len(request).to_bytes(4, "big") + request)
                answer = link.recv(100)
            except ConnectionError:
                answer = b""
            assert answer == b""
        await harness.stop(spec)


@scenario
async def test_commands_end_with_the_pod_that_asked_for_them(make: Make, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    async with opened(make) as harness:
        await harness.start(worker())
        await harness.start(spec := launcher(f"{AGENT} job-worker-0 'echo $$ >{mark}; exec sleep 600'"))
        pid = int(await eventually(lambda: mark.exists() and mark.read_text(), "the command's start"))
        assert is_running(pid)
        await harness.stop(spec)
        assert await eventually(lambda: not is_running(pid), "the command's end")


@scenario
async def test_commands_need_no_server(make: Make, tmp_path: Path) -> None:
    go, out = tmp_path / "go", tmp_path / "out"
    script = f"while [ ! -e {go} ]; do sleep 0.02; done; {AGENT} job-worker-0 'echo $MARK' >{out}; sleep 600"
    async with opened(make) as harness:
        await harness.start(worker(variables={"MARK": "worker"}))
        await harness.start(spec := launcher(script))
        await harness.engine.close()
        go.touch()
        assert await eventually(lambda: out.exists() and out.read_text(), "the command's words") == "worker\n"
        await harness.reopen()
        await harness.stop(spec)


@scenario
async def test_names_are_gone_with_their_pods(make: Make, data: Path) -> None:
    async with opened(make) as harness:
        await harness.start(spec := worker())
        assert [path.name for path in (data / "pods" / "members").glob("*/*")] == ["job-worker-0"]
        await harness.stop(spec)
        assert list((data / "pods" / "members").iterdir()) == []


@scenario
async def test_files_of_a_set_are_where_it_wants_them(make: Make) -> None:
    files = {"/etc/mpi/hostfile": "job-worker-0 slots=2\n", "/etc/mpi/more": "x\n"}
    async with opened(make) as harness:
        await harness.start(spec := worker(script="cat /etc/mpi/*; ls /etc/passwd; echo >/etc/mpi/more", files=files))
        output = await said(harness, spec)
        assert output.startswith("job-worker-0 slots=2\nx\n/etc/passwd\n")
        assert "Read-only" in output
