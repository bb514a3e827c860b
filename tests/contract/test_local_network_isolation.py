"""Pods of a shared server against each other: what somebody in one project tries against another's pods."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import PodState
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.network.plan import PodNetworks
from fairlead.engines.local.network.tools import Lack, NetworkTools
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.allowed import Allowed
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodContainer, PodSpec
from tests.builders import container_fields
from tests.contract.engine_harness import DEADLINE, EngineHarness, clock, eventually, opened, pod, scenario, shell
from tests.contract.network_pods import beyond, exchange, needs_namespaces, probe, until_ready, until_said

Make = Callable[..., LocalEngine]
#: A notebook at every address, a service at its loopback only, and an abstract socket; it says who it is to all.
VICTIM = """
import socket, sys, threading
def serve(made):
    while True:
        accepted, _ = made.accept()
        if accepted.recv(999):
            accepted.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nsecret")
        accepted.close()
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0victim")
abstract.listen()
made = [socket.create_server(("0.0.0.0", int(sys.argv[1]))), socket.create_server(("127.0.0.1", int(sys.argv[2])))]
for each in (abstract, *made):
    threading.Thread(target=serve, args=[each]).start()
print(socket.gethostbyname(socket.gethostname()), flush=True)
"""
#: Tries each target and prints which it reached.
ATTACKER = """
import json, socket, sys
reached = []
for name, family, address in json.loads(sys.argv[1]):
    try:
        made = socket.socket(family)
        made.settimeout(5)
        made.connect(tuple(address) if isinstance(address, list) else address.replace("@", "\\0"))
        reached.append(name)
    except OSError:
        pass
print(json.dumps(reached))
"""
#: Sends a packet from an address that is not its own, and then one from its own.
FORGER = """
import socket, sys
_, forged, gateway, port = sys.argv
for address, text in ((forged, b"in another's name"), ("", b"in its own")):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, 0))
    made.sendto(text, (gateway, int(port)))
"""
WEB, PRIVATE = 8_888, 6_006


@pytest.fixture
def make(data: Path) -> Make:
    def make(**allowed: Any) -> LocalEngine:
        return LocalEngine(LocalSettings(data_dir=str(data), allowed=Allowed(**allowed)), clock)

    return make


def owned(spec: PodSpec, project: str, **members: Any) -> PodSpec:
    return msgspec.structs.replace(spec, project=project, workload_name=project, pod_name=f"{project}-0-0", **members)


async def start_victim(harness: EngineHarness, **members: Any) -> tuple[PodSpec, str]:
    """A pod of another project that listens, and its address."""
    victim = owned(pod(sys.executable, "-c", VICTIM, str(WEB), str(PRIVATE), **members), "theirs")
    await harness.start(victim)
    return victim, (await until_said(harness, victim, lambda said: said.endswith(b"\n"))).decode().strip()


def attack(address: str) -> PodSpec:
    targets = [
        ("address", socket.AF_INET, (address, WEB)),
        ("loopback", socket.AF_INET, ("127.0.0.1", PRIVATE)),
        ("abstract", socket.AF_UNIX, "@victim"),
    ]
    return owned(pod(sys.executable, "-c", ATTACKER, msgspec.json.encode(targets).decode()), "mine")


def list_rules(table: str) -> str:
    return subprocess.run(["nft", "list", "table", "ip", table], capture_output=True, text=True).stdout


@needs_namespaces
@pytest.mark.debian("nftables")
class TestAttacks:
    @scenario
    async def test_another_project_reaches_nothing(self, make: Make) -> None:
        async with opened(make) as harness:
            _, address = await start_victim(harness)
            attacker = attack(address)
            report = await harness.run(attacker)
            assert report.exit_code == 0, await harness.output(attacker)
            assert await harness.output(attacker) == b"[]\n"

    @scenario
    async def test_its_own_workload_reaches_it_and_so_does_the_server(self, make: Make) -> None:
        async with opened(make) as harness:
            victim, address = await start_victim(harness)
            member = msgspec.structs.replace(attack(address), workload_id=victim.workload_id, pod_name="theirs-0-1")
            await harness.run(member)
            assert await harness.output(member) == b'["address"]\n'
            for port in (WEB, PRIVATE):
                connected = socket.socket(fileno=await harness.engine.dial(victim.pod_id, port))
                assert await exchange(*await asyncio.open_connection(sock=connected)) == b"secret"

    @scenario
    async def test_other_users_of_the_machine_do_not_reach_it(self, make: Make) -> None:
        async with opened(make) as harness:
            _, address = await start_victim(harness)
            targets = msgspec.json.encode([("address", socket.AF_INET, (address, WEB))]).decode()
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            command = [*user, "/usr/bin/python3", "-c", ATTACKER, targets]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
            assert done.stdout == "[]\n", done.stderr

    @scenario
    async def test_no_pod_sends_in_anothers_name(self, make: Make) -> None:
        """Even with a right that the operator has to allow, by which a pod takes the address of another."""
        async with opened(lambda: make(capabilities=("NET_ADMIN",))) as harness:
            _, address = await start_victim(harness)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
                heard.bind(("", 0))
                heard.settimeout(DEADLINE)
                port = str(heard.getsockname()[1])
                script = 'ip addr add "$1/32" dev eth0 && exec "$0" -c "$2" "$1" $(ip route | cut -d" " -f3) "$3"'
                command = ("/bin/sh", "-c", script, sys.executable, address, FORGER, port)
                forger = owned(pod(*command, fields={"security": {"capabilities": ["NET_ADMIN"]}}), "mine")
                report = await harness.run(forger)
                assert report.exit_code == 0, await harness.output(forger)
                assert heard.recv(99) == b"in its own"

    @scenario
    async def test_a_plain_pod_reaches_the_world_outside(self, make: Make) -> None:
        async with opened(make) as harness:
            with beyond() as (address, port):
                targets = msgspec.json.encode([("outside", socket.AF_INET, (address, port))]).decode()
                spec = pod(sys.executable, "-c", ATTACKER, targets)
                await harness.run(spec)
                assert await harness.output(spec) == b'["outside"]\n'

    @scenario
    async def test_rules_that_somebody_removes_are_made_again(self, make: Make, data: Path) -> None:
        """As a restart of the machine's firewall does, which flushes all rules."""
        async with opened(make) as harness:
            _, address = await start_victim(harness)
            table = PodNetworks(str(data / "pods")).table
            await asyncio.to_thread(subprocess.run, ["nft", "delete", "table", "ip", table], check=True)
            await eventually(lambda: "same_workload" in list_rules(table), "the rules")
            attacker = attack(address)
            await harness.run(attacker)
            assert await harness.output(attacker) == b"[]\n"

    @scenario
    async def test_the_rules_last_as_long_as_the_server_and_its_pods(self, make: Make, data: Path) -> None:
        table = PodNetworks(str(data / "pods")).table

        async with opened(make) as harness:
            assert list_rules(table)
            await harness.run(shell("true"))
            assert list_rules(table)
        assert not list_rules(table)


@needs_namespaces
@pytest.mark.debian("nftables")
class TestProbes:
    @pytest.fixture
    def answering(self, port: int) -> Iterator[int]:
        """A service at this machine's loopback, of somebody else."""
        with socket.create_server(("127.0.0.1", port)):
            yield port

    @scenario
    async def test_a_plain_pod_is_asked_itself_and_not_this_machine(self, make: Make, answering: int) -> None:
        async with opened(make) as harness:
            silent = shell("sleep 600", fields=probe(answering))
            await harness.start(silent)
            spec = owned(pod(sys.executable, "-c", VICTIM, str(WEB), str(answering), fields=probe(answering)), "ready")
            await harness.start(spec)
            await until_ready(harness, spec)
            report = harness.last(silent)
            assert report is not None
            assert (report.state, report.ready) == (PodState.RUNNING, False)


class TestRefusals:
    """A shared server that cannot isolate a pod does not start it."""

    LACK = Lack("nftables", "the program nft is not installed", "install nftables (Debian: apt-get install nftables)")

    def networks(self, tmp_path: Path, tools: NetworkTools, **members: Any) -> PodNetworks:
        return PodNetworks(str(tmp_path), tools=tools, is_shared=True, **members)

    def test_what_is_missing_is_named_with_the_remedy(self, tmp_path: Path) -> None:
        networks = self.networks(tmp_path, NetworkTools(True, "", "", (self.LACK,)))
        [(field, why)] = networks.refusals(PodContainer(image="x"), is_addressed=False)
        assert field == "network"
        assert "apt-get install nftables" in why
        assert why.endswith("or start the server with --allow shared-network")
        with pytest.raises(Refused, match="apt-get install nftables"):
            networks.plan(shell("true"))

    @pytest.mark.parametrize(
        ("tools", "is_addressed", "joins", "want"),
        [
            (NetworkTools(True, "", "/usr/sbin/nft"), True, True, ""),
            (NetworkTools(False, "/usr/bin/pasta", ""), False, True, ""),
            (NetworkTools(False, "/usr/bin/pasta", ""), True, True, "a server that runs as root"),
            (NetworkTools(True, "", "/usr/sbin/nft"), False, False, "use podman, with a server that runs as root"),
        ],
        ids=["root", "pasta", "a group with pasta", "a runtime with networks of its own"],
    )
    def test_who_can_be_isolated(
        self, tmp_path: Path, tools: NetworkTools, is_addressed: bool, joins: bool, want: str
    ) -> None:
        networks = PodNetworks(str(tmp_path), lambda _: joins, tools, is_shared=True)
        refused = networks.refusals(PodContainer(image="x"), is_addressed=is_addressed)
        assert bool(refused) is bool(want)
        assert all(want in why for _, why in refused)
        shares = PodNetworks(str(tmp_path), lambda _: joins, tools, is_shared=True, may_share=True)
        assert shares.refusals(PodContainer(image="x"), is_addressed=is_addressed) == []

    def test_the_condition_says_which_network_a_pod_has(self, tmp_path: Path) -> None:
        able, unable = NetworkTools(True, "", "/usr/sbin/nft"), NetworkTools(False, "", "", (self.LACK,))
        plain = PodContainer(image="x")
        own = PodContainer(image="x", fields=container_fields({"security": {"hostNetwork": True}}))
        isolating = self.networks(tmp_path, able)
        assert isolating.describe(plain, is_addressed=False).startswith("a network of its own")
        assert isolating.describe(own, is_addressed=False) == "it shares this machine's network, as requested"
        shares = self.networks(tmp_path, unable, may_share=True)
        assert "--allow shared-network" in shares.describe(plain, is_addressed=False)
        assert PodNetworks(str(tmp_path), tools=able).describe(plain, is_addressed=False) == ""


def test_a_personal_server_leaves_plain_pods_on_the_machines_network(tmp_path: Path) -> None:
    networks = PodNetworks(str(tmp_path), tools=NetworkTools(True, "", "/usr/sbin/nft"))
    assert networks.plan(shell("true")) is None
