"""Names of pods, rules of their bridge, and what is said of a network that lacks something."""

import pytest

from fairlead.engines.local.network.bridge import render_rules
from fairlead.engines.local.network.hosts import has_local_resolver, names_of, render_hosts
from fairlead.engines.local.network.plan import PodNetworks
from fairlead.engines.local.order import NetworkPlan
from fairlead.model.pods.podset import PodContainer
from tests.builders import container_fields

PLAN = NetworkPlan(
    address="10.101.0.2", gateway="10.101.0.1", hostname="a", workload="w", bridge="fl-1234abcd", subnet="10.101.0.0/16"
)


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
    assert 'oifname "fl-1234abcd" iifname != "fl-1234abcd" drop' in rules
    assert "ip saddr 10.101.0.0/16" in rules
    assert 'iifname != "fl-*"' not in rules


def test_a_machine_that_did_not_forward_forwards_nothing_else() -> None:
    assert 'iifname != "fl-*" oifname != "fl-*" drop' in render_rules(PLAN, closed=True)


def test_plain_pods_and_pods_on_the_machines_own_network_hear_nothing(tmp_path: object) -> None:
    network = PodNetworks(str(tmp_path))
    assert network.remarks(PodContainer(image="x")) == []
    own = {"ports": [{"container": 80}], "security": {"hostNetwork": True}}
    assert network.remarks(PodContainer(image="x", fields=container_fields(own))) == []


def test_where_no_network_can_be_made_the_clash_is_said(tmp_path: object) -> None:
    network = PodNetworks(str(tmp_path))
    network.is_able = False
    ((field, why),) = network.remarks(
        PodContainer(image="x", fields=container_fields({"exposedUrls": [{"container": 80}]}))
    )
    assert field == "exposedUrls"
    assert "share this machine's network" in why
