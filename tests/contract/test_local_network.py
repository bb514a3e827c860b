"""The local engine's network: who is ready, pods with a network of their own, ports, and what people open into pods."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fairlead.engines.base import PodState
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.network.plan import PodNetworks
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.podset import EnvironmentVariable, PodSpec
from tests.contract.engine_harness import (
    DEADLINE,
    clock,
    eventually,
    is_running,
    opened,
    pod,
    scenario,
    shell,
)
from tests.contract.network_pods import (
    ask,
    beyond,
    needs_namespaces,
    ports,
    probe,
    server,
    until_ready,
    until_said,
)

Make = Callable[[], LocalEngine]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


class TestProbes:
    @scenario
    async def test_a_pod_is_ready_when_its_probe_passes_and_not_before(
        self, make: Make, tmp_path: Path, port: int
    ) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, fields=probe(port))
            report = await harness.start(spec)
            assert not report.ready
            await until_ready(harness, spec)
            assert seen.read_text().startswith(f"127.0.0.1:{port} /\n")

    @scenario
    async def test_path_and_host_are_what_is_asked(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, fields=probe(port, get={"path": "/ready/now", "host": "model.example.com"}))
            await harness.start(spec)
            await until_ready(harness, spec)
            assert seen.read_text().splitlines()[0] == "model.example.com /ready/now"

    @pytest.mark.debian("openssl")
    @scenario
    async def test_https_is_asked_without_looking_at_the_certificate(
        self, make: Make, tmp_path: Path, port: int
    ) -> None:
        certificate = make_certificate(tmp_path)
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, "0.0.0.0", str(certificate), fields=probe(port, scheme="HTTPS"))
            await harness.start(spec)
            await until_ready(harness, spec)
            assert seen.read_text().startswith(f"127.0.0.1:{port} /\n")

    @scenario
    async def test_failing_again_after_the_threshold_ends_readiness_and_passing_brings_it_back(
        self, make: Make, tmp_path: Path, port: int
    ) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, fields=probe(port, periodSeconds=1, failureThreshold=2))
            await harness.start(spec)
            await until_ready(harness, spec)
            sick = seen.with_name("seen.sick")
            sick.touch()
            before = len(seen.read_text().splitlines())
            await until_ready(harness, spec, wanted=False)
            assert len(seen.read_text().splitlines()) - before == 2
            sick.unlink()
            await until_ready(harness, spec)

    @scenario
    async def test_the_first_question_waits_for_the_initial_delay(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            spec = server(tmp_path / "seen", port, fields=probe(port, initialDelaySeconds=2))
            started = await harness.start(spec)
            await until_ready(harness, spec)
            assert started.started_at is not None
            assert clock() - started.started_at >= 2000

    @scenario
    async def test_as_many_good_answers_in_a_row_as_asked_for(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, fields=probe(port, successThreshold=4))
            await harness.start(spec)
            await until_ready(harness, spec)
            assert len(seen.read_text().splitlines()) == 4

    @scenario
    async def test_a_probe_that_hangs_is_given_up_after_its_timeout(self, make: Make, port: int) -> None:
        silent = (
            "import socket, sys; s = socket.create_server(('', int(sys.argv[1]))); c = []\n"
            "while True: c.append(s.accept()); print(len(c), flush=True)"
        )
        async with opened(make) as harness:
            spec = pod(sys.executable, "-c", silent, str(port), fields=probe(port))
            await harness.start(spec)
            await until_said(harness, spec, lambda said: len(said.split()) > 1)
            await harness.look()
            report = harness.last(spec)
            assert report is not None
            assert not report.ready

    @scenario
    async def test_readiness_is_asked_on_while_no_server_runs(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, fields=probe(port, periodSeconds=1, failureThreshold=1))
            await harness.start(spec)
            await until_ready(harness, spec)
            await harness.engine.close()
            seen.with_name("seen.sick").touch()
            asked = len(seen.read_text().splitlines())
            await eventually(lambda: len(seen.read_text().splitlines()) > asked, "a question while nobody listens")
            harness.engine = make()
            await harness.open()
            report = await until_ready(harness, spec, wanted=False)
            assert report.state is PodState.RUNNING


def make_certificate(folder: Path) -> Path:
    """A certificate of somebody else and its key, in one file."""
    file = folder / "certificate.pem"
    subject = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=somebody-else"]
    made = subprocess.run(["openssl", "req", *subject, "-keyout", "-"], check=True, capture_output=True)
    file.write_bytes(made.stdout)
    return file


@needs_namespaces
class TestOwnNetwork:
    @scenario
    async def test_two_pods_listen_on_the_same_port_at_once(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            fields = ports({"container": port}) | probe(port)
            specs = [named(server(tmp_path / name, port, fields=fields), name) for name in ("one", "two")]
            for spec in specs:
                await harness.start(spec)
            for spec in specs:
                report = await until_ready(harness, spec)
                ((inside, outside),) = report.ports
                assert inside == port
                assert 30_000 <= outside <= 32_767
                assert await ask("127.0.0.1", outside) == spec.pod_name.encode()

    @scenario
    async def test_the_probe_leaves_from_the_pods_own_network(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            seen = tmp_path / "seen"
            spec = server(seen, port, "127.0.0.1", fields=ports({"container": port}) | probe(port))
            await harness.start(spec)
            report = await until_ready(harness, spec)
            with pytest.raises(ConnectionRefusedError):
                await ask("127.0.0.1", port)
            assert await ask("127.0.0.1", report.ports[0][1]) == b"train-0-0"

    @scenario
    async def test_it_knows_its_own_and_its_groups_names(self, make: Make, port: int) -> None:
        async with opened(make) as harness:
            script = "getent hosts $(hostname) other-0-0 other-0-0.train.runai-research.svc.cluster.local || exit 3"
            first = shell("sleep 600", fields=ports({"container": port}))
            other = msgspec.structs.replace(first, pod_id="the-other", pod_name="other-0-0")
            looking = msgspec.structs.replace(
                shell(f"until {script}; do sleep 0.05; done; hostname", fields=ports({"container": port})),
                workload_id=first.workload_id,
            )
            await harness.start(looking)
            await harness.start(other)
            await harness.until(looking, PodState.EXITED)
            said = (await harness.output(looking)).decode()
            assert "other-0-0" in said
            assert said.splitlines()[-1] == "train-0-0"

    @scenario
    async def test_it_is_told_its_own_address_and_its_hosts(self, make: Make, port: int) -> None:
        async with opened(make) as harness:
            fields = [("OWN", "status.podIP"), ("HOST", "status.hostIP")]
            variables = tuple(EnvironmentVariable(name=name, pod_field=path) for name, path in fields)
            script = "hostname -i; echo $OWN; echo $HOST; ip route | cut -d' ' -f3 | head -1"
            spec = shell(script, environment=variables, fields=ports({"container": port}))
            await harness.run(spec)
            named, own, host, gateway = (await harness.output(spec)).decode().split()
            assert named == own
            assert host == gateway

    @scenario
    async def test_pods_of_one_workload_reach_each_other_by_name(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            fields = ports({"container": port}) | probe(port)
            leader = server(tmp_path / "seen", port, fields=fields)
            await harness.start(leader)
            await until_ready(harness, leader)
            program = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
            worker = pod(sys.executable, "-c", program, f"http://train-0-0:{port}", fields=fields)
            worker = msgspec.structs.replace(worker, workload_id=leader.workload_id, pod_name="train-0-1")
            report = await harness.run(worker)
            assert report.exit_code == 0, await harness.output(worker)
            assert await harness.output(worker) == b"train-0-0\n"

    @pytest.mark.debian("nftables")
    @scenario
    async def test_connections_beyond_the_machine_go_out(self, make: Make) -> None:
        async with opened(make) as harness:
            with beyond() as (address, port):
                program = (
                    "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\n"
                    "print(s.recv(99).decode())"
                )
                spec = pod(sys.executable, "-c", program, address, str(port), fields=ports({"container": 80}))
                report = await harness.run(spec)
                assert report.exit_code == 0, await harness.output(spec)
                # The other machine sees ours, not the pod.
                assert (await harness.output(spec)).decode().strip() == "198.51.100.1"

    @scenario
    async def test_nothing_is_left_after_the_last_pod(self, make: Make, data: Path, port: int) -> None:
        async with opened(make) as harness:
            specs = [named(shell("sleep 600", fields=ports({"container": port})), name) for name in ("one", "two")]
            for spec in specs:
                await harness.start(spec)
            assert traces(data)
            for spec in specs:
                await harness.stop(spec)
            await eventually(lambda: not traces(data), "the kernel's removal of what they had")

    @scenario
    async def test_nothing_is_left_when_supervisor_and_server_were_killed(
        self, make: Make, data: Path, port: int
    ) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600", fields=ports({"container": port}))
            await harness.start(spec)
            await harness.engine.close()
            journal = data / "pods" / "live" / f"{spec.pod_id}.1"
            record = msgspec.json.decode(journal.read_bytes().splitlines()[-1])
            os.kill(record["pid"], signal.SIGKILL)
            harness.reports = {}
            harness.engine = make()
            await harness.open()
            report = await harness.until(spec, PodState.LOST)
            assert report.reason == "SupervisorLost"
            await eventually(lambda: not traces(data), "the kernel's removal of what it had")

    @scenario
    async def test_what_a_server_left_that_never_comes_back_goes_with_the_next_one_of_the_machine(
        self, make: Make, settings: LocalSettings, data: Path, port: int
    ) -> None:
        async with opened(make) as harness:
            spec = shell("sleep 600", fields=ports({"container": port}))
            await harness.start(spec)
            journal = data / "pods" / "live" / f"{spec.pod_id}.1"
            record = msgspec.json.decode(journal.read_bytes().splitlines()[-1])
            await harness.engine.close()
            os.kill(record["pid"], signal.SIGKILL)
            await eventually(lambda: not is_running(record["main"]), "the pod's end")
            await eventually(lambda: not devices(data), "the device's end")
            other = msgspec.structs.replace(settings, data_dir=f"{data}-of-another")
            async with opened(lambda: LocalEngine(other, clock)):
                assert not traces(data)
            harness.reports = {}
            harness.engine = make()
            await harness.open()
            await harness.until(spec, PodState.LOST)

    @scenario
    async def test_a_server_that_comes_back_serves_the_same_port(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            spec = server(tmp_path / "seen", port, fields=ports({"container": port}) | probe(port))
            await harness.start(spec)
            before = await until_ready(harness, spec)
            await harness.reopen()
            after = await until_ready(harness, spec)
            assert after.ports == before.ports
            assert await _eventually_answers(after.ports[0][1]) == b"train-0-0"


@needs_namespaces
def test_servers_that_run_at_once_never_share_a_range(tmp_path: Path) -> None:
    """Even where both would choose the same, and neither has a pod yet."""
    claim = (
        "import sys; from fairlead.engines.local.network.plan import PodNetworks\n"
        "network = PodNetworks(sys.argv[1]); network.prepare(); print(network.gateway, flush=True); sys.stdin.read()"
    )
    first = PodNetworks(str(tmp_path / "first"))
    first.prepare()
    kept = tmp_path / "second" / "network" / "range"
    kept.parent.mkdir(parents=True)
    kept.write_text(first.gateway.split(".")[1])

    def ask_second() -> str:
        command = [sys.executable, "-c", claim, str(tmp_path / "second")]
        return subprocess.run(command, input="", capture_output=True, text=True, check=True).stdout.strip()

    assert ask_second() != first.gateway
    first.close()
    kept.write_text(first.gateway.split(".")[1])
    assert ask_second() == first.gateway


def named(spec: PodSpec, name: str) -> PodSpec:
    return msgspec.structs.replace(spec, pod_name=f"{name}-0-0", workload_name=name)


def traces(data: Path) -> list[str]:
    """Devices and rules of the server of a data folder."""
    table = PodNetworks(str(data / "pods")).table
    rules = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True).stdout if _has_nft() else ""
    number = (data / "pods" / "network" / "range").read_text()
    addresses = subprocess.run(["ip", "-4", "addr", "show", "lo"], capture_output=True, text=True, check=True).stdout
    gateway = f"10.{number}.0.1/32"
    return devices(data) + [line for line in rules.splitlines() if table in line] + [gateway] * (gateway in addresses)


def devices(data: Path) -> list[str]:
    """Devices of this machine that lead to pods of a data folder's server."""
    mark = PodNetworks(str(data / "pods")).table.removeprefix("fl_")[:6]
    return [name for name in os.listdir("/sys/class/net") if name.startswith(f"fv{mark}")]


def _has_nft() -> bool:
    return subprocess.run(["sh", "-c", "command -v nft"], capture_output=True).returncode == 0


async def _eventually_answers(port: int) -> bytes:
    async with asyncio.timeout(DEADLINE):
        while True:
            with contextlib.suppress(OSError):
                if body := await ask("127.0.0.1", port):
                    return body
            await asyncio.sleep(0.01)


class TestPorts:
    @scenario
    async def test_a_taken_port_is_refused_before_the_start_naming_who_holds_it(self, make: Make, taken: int) -> None:
        async with opened(make) as harness:
            asked = {"container": 8080, "serviceType": "LoadBalancer", "external": taken}
            report = await harness.run(shell("echo ran", fields=ports(asked)))
            assert report.reason == "StartError"
            assert f"port {taken}" in report.message
            assert f"process {os.getpid()}" in report.message

    @scenario
    async def test_a_port_of_another_workload_is_refused_naming_it(self, make: Make, port: int) -> None:
        async with opened(make) as harness:
            fields = ports({"container": 8080, "serviceType": "ClusterIP", "external": port})
            await harness.start(named(shell("sleep 600", fields=fields), "first"))
            report = await harness.run(named(shell("sleep 600", fields=fields), "second"))
            assert "in use by workload first of project research" in report.message

    @scenario
    async def test_a_node_port_outside_its_range_is_refused(self, make: Make) -> None:
        async with opened(make) as harness:
            report = await harness.run(shell("true", fields=ports({"container": 80, "external": 8080})))
            assert "30000 to 32767" in report.message

    @scenario
    async def test_pods_that_share_the_machines_network_clash_and_the_second_names_the_first(
        self, make: Make, port: int
    ) -> None:
        async with opened(make) as harness:
            fields = ports({"container": port}) | {"security": {"hostNetwork": True}}
            await harness.start(named(shell("sleep 600", fields=fields), "first"))
            report = await harness.run(named(shell("sleep 600", fields=fields), "second"))
            assert f"port {port} is in use by workload first of project research" in report.message
            elsewhere = msgspec.structs.replace(named(shell("true", fields=fields), "third"), project="other")
            report = await harness.run(elsewhere)
            assert f"port {port} is in use by a workload of another project" in report.message

    @scenario
    async def test_so_do_two_of_one_workload_until_the_first_has_ended(self, make: Make, port: int) -> None:
        """As when a change takes over; also after a start of the server, which knows the first from its files only."""
        fields = ports({"container": port}) | {"security": {"hostNetwork": True}}
        first = named(shell("sleep 600", fields=fields), "one")
        async with opened(make) as harness:
            await harness.start(first)
            await harness.reopen()
            second = msgspec.structs.replace(first, pod_id=f"{first.pod_id}-next", pod_name="one-next")
            report = await harness.run(second)
            assert f"port {port} is in use by" in report.message
            assert "fairlead doctor" in report.message
            await harness.stop(first)
            third = msgspec.structs.replace(first, pod_id=f"{first.pod_id}-last", pod_name="one-last")
            assert (await harness.start(third)).state is PodState.RUNNING

    @scenario
    async def test_a_port_is_free_again_after_its_workload(self, make: Make, port: int) -> None:
        async with opened(make) as harness:
            fields = ports({"container": 8080, "serviceType": "ClusterIP", "external": port})
            spec = shell("sleep 600", fields=fields)
            await harness.start(spec)
            with socket.create_connection(("127.0.0.1", port)):
                pass
            await harness.stop(spec)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            again = shell("sleep 600", fields=fields)
            assert (await harness.start(again)).state is PodState.RUNNING

    @scenario
    async def test_only_pods_that_are_ready_are_given_connections(self, make: Make, tmp_path: Path, port: int) -> None:
        async with opened(make) as harness:
            fields = ports({"container": port})
            good = server(tmp_path / "good", port, fields=fields | probe(port))
            bad = server(tmp_path / "bad", port, fields=fields | probe(port, get={"port": 9}))
            bad = msgspec.structs.replace(bad, workload_id=good.workload_id, pod_name="train-0-1")
            if not PodNetworks("/nowhere").is_able:
                pytest.skip("two pods on one port need networks of their own")
            await harness.start(bad)
            await harness.start(good)
            report = await until_ready(harness, good)
            assert {await ask("127.0.0.1", report.ports[0][1]) for _ in range(6)} == {b"train-0-0"}
