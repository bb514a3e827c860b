"""Names of pods, rules of their bridge, and what is said of a network that lacks something."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from fairlead.engines.local.launch_order import NetworkPlan, RouterPlan
from fairlead.engines.local.network.hosts import has_local_resolver, names_of, render_hosts
from fairlead.engines.local.network.plan import PodNetworks
from fairlead.engines.local.network.router import render_rules
from fairlead.engines.local.network.tools import Lack, NetworkTools, find_tools
from fairlead.engines.local.network.user_network import render_pasta, render_slirp4netns
from fairlead.model.pods.podset import PodContainer
from tests import builders
from tests.builders import container_fields

PLAN = RouterPlan("fl_1234abcd", "fv1234ab", "10.101.0.1", "10.101.0.0/16", "/usr/sbin/nft")


def test_a_pods_hosts_are_its_group_and_what_the_operator_named() -> None:
    machine = "127.0.0.1 localhost here\n127.0.1.1 here\n# a remark\n::1 localhost\n192.0.2.7 store  # the disks\n"
    assert render_hosts([("10.101.0.2", ["a-0", "a-0.a"])], machine) == (
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n10.101.0.2 a-0 a-0.a\n"
        "192.0.2.7 store  # the disks\n"
    )


def test_a_pod_is_found_as_on_a_cluster() -> None:
    assert names_of("a-0", "a", "runai-x")[-1] == "a-0.a.runai-x.svc.cluster.local"


@pytest.mark.parametrize(
    ("resolv", "want"),
    [
        ("nameserver 127.0.0.53\n", True),
        ("search x\nnameserver 192.0.2.1\nnameserver ::1\n", True),
        ("nameserver 192.0.2.1\n", False),
        ("", False),
    ],
)
def test_a_resolver_that_no_other_network_reaches(resolv: str, want: bool) -> None:
    assert has_local_resolver(resolv) is want


def test_only_answers_come_in() -> None:
    rules = render_rules(PLAN, closed=False)
    assert 'oifname "fv1234ab*" drop' in rules
    assert "ip saddr 10.101.0.0/16" in rules
    assert 'iifname != "fv*"' not in rules


def test_a_machine_that_did_not_forward_forwards_nothing_else() -> None:
    assert 'iifname != "fv*" oifname != "fv*" drop' in render_rules(PLAN, closed=True)


def test_plain_pods_and_pods_on_the_machines_own_network_hear_nothing(tmp_path: Path) -> None:
    network = PodNetworks(str(tmp_path))
    assert network.remarks(PodContainer(image="x")) == []
    own = {"ports": [{"container": 80}], "security": {"hostNetwork": True}}
    assert network.remarks(PodContainer(image="x", fields=container_fields(own))) == []


def test_where_no_network_can_be_made_the_clash_and_the_remedy_are_said(tmp_path: Path) -> None:
    lack = Lack("network device", "pasta cannot open /dev/net/tun (Permission denied)", "run as root: chmod 0666 it")
    network = PodNetworks(str(tmp_path), tools=NetworkTools(False, "", "", (lack,)))
    served = PodContainer(image="x", fields=container_fields({"exposedUrls": [{"container": 80}]}))
    shared = "pods share this machine's network: a second pod that uses the same port is refused"
    assert network.remarks(served) == [("exposedUrls", f"{shared}; {lack}")]
    assert network.remarks(served, is_addressed=True) == [("exposedUrls", shared)]


class TestTools:
    """Of a user who is not root: each asked in a process of that user."""

    @pytest.mark.parametrize(
        ("mode", "want"),
        [
            (0o666, []),
            (0o600, ["Permission denied", "run as root: chmod 0666 {device}"]),
            (None, ["No such file or directory", "modprobe tun", "mknod -m 0666 {device} c 10 200"]),
        ],
        ids=["everybody's", "root's alone", "not there"],
    )
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_the_device_is_tried_as_the_user(self, mode: int | None, want: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            device = Path(folder) / "tun"
            if mode is not None:
                device.touch()
                device.chmod(mode)
            tools = find_tools_as_nobody(str(device))
        assert bool(tools.helper) is not bool(tools.lacks)
        lacks = {lack.tool: str(lack) for lack in tools.lacks}
        said = lacks.get("network device", "")
        assert bool(said) == bool(want)
        assert [words for words in want if words.format(device=device) not in said] == []

    @pytest.mark.parametrize(
        ("installed", "want"),
        [
            (("pasta", "slirp4netns"), "pasta"),
            (("slirp4netns",), "slirp4netns"),
            ((), "neither pasta nor slirp4netns is installed: install pasta (Debian: apt-get install passt)"),
        ],
        ids=["both", "slirp4netns", "neither"],
    )
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_slirp4netns_is_for_machines_without_pasta(self, installed: tuple[str, ...], want: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            for name in (*installed, "tun"):
                (Path(folder) / name).touch(0o777)
                (Path(folder) / name).chmod(0o777)
            tools = find_tools_as_nobody(f"{folder}/tun", folder)
        assert os.path.basename(tools.helper) == (want if installed else "")
        assert [want in str(lack) for lack in tools.lacks] == ([] if installed else [True])


@pytest.mark.parametrize(
    ("is_shared", "want_machine", "want_option"),
    [(True, False, True), (False, True, False)],
    ids=["shared", "personal"],
)
def test_the_loopback_of_the_machine_by_slirp4netns(
    tmp_path: Path, is_shared: bool, want_machine: bool, want_option: bool
) -> None:
    """A personal server's pods reach it by the machine's name; those of a shared one do not at all."""
    tools = NetworkTools(False, "", "", slirp4netns="/usr/bin/slirp4netns")
    networks = PodNetworks(str(tmp_path), tools=tools, is_shared=is_shared)
    networks.prepare()
    container = PodContainer(image="x", fields=container_fields({"ports": [{"container": 80}]}))
    plan = networks.plan(builders.pod_spec(builders.workload(), builders.pod(), builders.podset(container=container)))
    assert plan is not None
    assert (plan.helper, plan.pasta) == ("/usr/bin/slirp4netns", "")
    [hosts] = [Path(file).read_text() for shown, file in plan.files if shown == "/etc/hosts"]
    assert ("10.0.2.2 host.fairlead.internal" in hosts) is want_machine
    words = render_slirp4netns(plan, (7, 8, 9))
    assert ("--disable-host-loopback" in words) is want_option
    assert {"--disable-dns", "--userns-path=/proc/self/fd/7", "--ready-fd=9"} <= set(words)
    assert words[-2:] == ["/proc/self/fd/8", "eth0"]


def find_tools_as_nobody(device: str, path: str = "") -> NetworkTools:
    """By a process that changes its user and answers through a pipe; with this search path for programs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
            os.environ["PATH"] = path or os.environ["PATH"]
            tools = find_tools(device)
            os.write(writer, json.dumps(tools).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        is_admin, pasta, nft, lacks, slirp4netns = json.load(pipe)
    os.waitpid(child, 0)
    return NetworkTools(is_admin, pasta, nft, tuple(Lack(*lack) for lack in lacks), slirp4netns)


def test_pasta_gives_no_way_to_the_loopback_but_to_services() -> None:
    plan = NetworkPlan("10.101.0.2", "10.101.0.1", "a-0", "a", pasta="/usr/bin/pasta", services="8479")
    command = render_pasta(plan, (7, 8, 9))
    assert command[command.index("-T") + 1] == "8479"
    assert "--no-map-gw" in command
