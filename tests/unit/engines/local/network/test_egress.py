"""What keeps pods from the outside: the firewall's rules as `nft` prints them, and what the operator is told."""

import pytest

from fairlead.engines.local.doctor import describe_egress, describe_networks
from fairlead.engines.local.network.egress import find_dropping_chains
from fairlead.engines.local.network.tools import Lack, NetworkTools

LACK = Lack("nftables", "the program nft is not installed", "install nftables (Debian: apt-get install nftables)")
DOCKER = """table ip nat {
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
	}
}
table ip filter {
	chain DOCKER-USER {
		return
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		jump DOCKER-USER
	}
}
"""
OURS = """table ip fl_1234abcd {
	chain through {
		type filter hook forward priority filter; policy accept;
		oifname "fv1234ab*" drop
	}
}
"""


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        ("", []),
        (OURS, []),
        (OURS + DOCKER, ["ip filter FORWARD"]),
        (DOCKER.replace("policy drop", "policy accept"), []),
        (DOCKER.replace("\t\tjump", '\t\tiifname "fv*" accept\n\t\tjump'), []),
    ],
    ids=["no rules", "our own", "Docker's", "Docker's, open", "Docker's, with a rule for pods"],
)
def test_a_firewall_that_drops_what_pods_send_is_found(rules: str, want: list[str]) -> None:
    assert find_dropping_chains(rules) == want


def test_the_doctor_says_which_command_mends_it() -> None:
    [finding] = describe_egress([LACK])
    assert (finding.state, finding.advice) == ("missing", LACK.advice)
    assert [finding.state for finding in describe_egress([])] == ["ok"]


@pytest.mark.parametrize(
    ("tools", "is_shared", "want"),
    [
        (NetworkTools(True, "", "/usr/sbin/nft"), True, ["ok"]),
        (NetworkTools(False, "/usr/bin/pasta", ""), True, ["ok"]),
        (NetworkTools(True, "", "", (LACK,)), True, ["missing", "missing"]),
        (NetworkTools(True, "", "", (LACK,)), False, ["note", "note"]),
        (NetworkTools(False, "", "", (LACK,)), False, ["note", "note"]),
    ],
    ids=["root", "pasta", "shared without nft", "personal without nft", "personal without anything"],
)
def test_what_is_missing_is_worse_on_a_shared_server(tools: NetworkTools, is_shared: bool, want: list[str]) -> None:
    findings = describe_networks(tools, is_shared=is_shared)
    assert [finding.state for finding in findings] == want
    assert all("apt-get install nftables" in finding.advice for finding in findings[1:])
