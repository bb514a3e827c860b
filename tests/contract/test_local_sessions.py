"""What people open into pods of the local engine: commands beside them, their input and output, their ports."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

from fairlead.engines.base import ExecRequest
from fairlead.engines.local.engine import LocalEngine
from tests.contract.engine_harness import eventually, opened, scenario, shell
from tests.contract.network_pods import (
    exchange,
    needs_namespaces,
    ports,
    probe,
    server,
    until_ready,
    until_said,
    whole_output,
)

Make = Callable[[], LocalEngine]


class TestSessions:
    @scenario
    async def test_a_command_runs_beside_the_pod_and_its_exit_code_comes_back(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600")
            await harness.start(spec)
            command = ("/bin/sh", "-c", "echo $RUNAI_PROJECT; echo wrong >&2; exit 7")
            session = await harness.engine.exec(ExecRequest(pod_id=spec.pod_id, command=command))
            assert await whole_output(session) == (b"research\n", b"wrong\n", b"7")

    @scenario
    async def test_input_reaches_the_command_and_its_end_too(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600")
            await harness.start(spec)
            request = ExecRequest(pod_id=spec.pod_id, command=("sort",), stdin=True)
            session = await harness.engine.exec(request)
            await session.write(b"b\na\n" * 50_000)
            session.close_input()
            output, _, code = await whole_output(session)
            assert output == b"a\n" * 50_000 + b"b\n" * 50_000
            assert code == b"0"

    @scenario
    async def test_tty_is_a_real_terminal_of_the_asked_size(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600")
            await harness.start(spec)
            command = ("/bin/sh", "-c", "tty && stty size && read go && stty size")
            request = ExecRequest(pod_id=spec.pod_id, command=command, tty=True, stdin=True, columns=99, rows=33)
            session = await harness.engine.exec(request)
            session.resize(120, 50)
            await session.write(b"go\n")
            output, _, code = await whole_output(session)
            assert b"/dev/pts/" in output
            assert b"50 120" in output
            assert code == b"0"

    @needs_namespaces
    @scenario
    async def test_a_command_is_in_the_pods_own_network(self, make: Make, port: int) -> None:
        async with opened(make) as harness:
            spec = shell("readlink /proc/self/ns/net; exec sleep 600", fields=ports({"container": port}))
            await harness.start(spec)
            session = await harness.engine.exec(
                ExecRequest(pod_id=spec.pod_id, command=("readlink", "/proc/self/ns/net"))
            )
            inside, _, _ = await whole_output(session)
            await until_said(harness, spec, lambda said: said == inside)
            assert inside.decode().strip() != os.readlink("/proc/self/ns/net")

    @scenario
    async def test_a_command_that_is_not_there_ends_with_127_and_says_so(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600")
            await harness.start(spec)
            for tty, end in ((False, b"\n"), (True, b"\r\n")):
                request = ExecRequest(pod_id=spec.pod_id, command=("no-such-command",), tty=tty)
                output, errors, code = await whole_output(await harness.engine.exec(request))
                assert (output, code) == (b"", b"127")
                assert errors == b"cannot run 'no-such-command': No such file or directory" + end

    @scenario
    async def test_leaving_hangs_up_on_the_command(self, make: Make, tmp_path: Path) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600")
            await harness.start(spec)
            left = tmp_path / "left"
            script = f"exec 2>/dev/null; trap 'touch {left}; exit' HUP; echo up; while :; do sleep 0.02; done"
            session = await harness.engine.exec(ExecRequest(pod_id=spec.pod_id, command=("/bin/sh", "-c", script)))
            assert await session.read() == ("output", b"up\n")
            await session.close()
            await eventually(left.exists, "the command hears that nobody listens")

    @scenario
    async def test_attach_reads_the_pods_output_and_writes_its_input(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("while read line; do echo got $line; done", stdin=True)
            await harness.start(spec)
            session = await harness.engine.attach(spec.pod_id)
            await session.write(b"one\n")
            assert await session.read() == ("output", b"got one\n")
            await session.close()
            assert (await harness.output(spec)) == b"got one\n"
            again = await harness.engine.attach(spec.pod_id, from_start=True)
            assert await again.read() == ("output", b"got one\n")
            await again.close()

    @scenario
    async def test_attach_ends_with_the_exit_code_of_the_process(self, make: Make) -> None:
        async with opened(make) as harness:
            spec = shell("read line; echo got $line; exit 3", stdin=True)
            await harness.start(spec)
            session = await harness.engine.attach(spec.pod_id)
            await session.write(b"one\n")
            assert await whole_output(session) == (b"got one\n", b"", b"3")

    @scenario
    async def test_dial_reaches_a_port_of_the_pod(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            spec = server(tmp_path / "seen", port, "127.0.0.1", fields=ports({"container": port}) | probe(port))
            await harness.start(spec)
            await until_ready(harness, spec)
            reader, writer = await asyncio.open_connection(
                sock=socket.socket(fileno=await harness.engine.dial(spec.pod_id, port))
            )
            assert await exchange(reader, writer)
