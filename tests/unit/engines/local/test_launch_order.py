"""The launch order on its way: whole, without what is default, and between versions."""

import json
from typing import Any

import pytest

from fairlead.engines.local import launch_order
from fairlead.engines.local.launch_order import (
    AttemptPlace,
    BucketFetch,
    CommandLine,
    ContainerRun,
    Fetches,
    FetchPlan,
    GitFetch,
    IsolationPlan,
    LaunchOrder,
    MountPlan,
    NetworkPlan,
    ProcessLimits,
    ProcessRights,
    ReadinessCheck,
    RemoteExecPlan,
    RouterPlan,
    Volume,
    WatchedFolder,
)
from fairlead.engines.local.linux.cgroups import CgroupPlan

PLACE = AttemptPlace("w", "p", 1, "/live/p.1", "/control/p.1", "/logs/p/1", 1024, 5)
SMALL = LaunchOrder(PLACE, CommandLine(["true"], {"A": "b"}, "/"))
MOUNTS = MountPlan([Volume("memory", "/etc/x", "storage", files={"a": ("text", 0o644)})], 1000, 1000, "/data")
VIEW = IsolationPlan("isolated", MOUNTS, isolated=True, hidden=["/data"])
FETCHES = Fetches(
    [GitFetch("storage.git[0]", "/code", "https://example.com/x.git")],
    [BucketFetch("storage.s3[0]", "/data", "https://example.com", "bucket", "/m")],
)
RIGHTS = ProcessRights(uid=1000, gid=1000, user_groups=[5], bounding=[], own_processes=True)
WHOLE = SMALL._replace(
    rights=RIGHTS,
    limits=ProcessLimits(groups=CgroupPlan(2, {"memory": "/c"}, [("/c/memory.max", "1", True)]), memory_limit=1),
    isolation=VIEW,
    container=ContainerRun(
        "c", "i", "/f", "/s", "making", MOUNTS, {"variables": "A=b"}, True, ["exec"], ["inspect"], ["rm"], ["load"]
    ),
    fetches=FETCHES,
    fetching=FetchPlan(VIEW, FETCHES, RIGHTS),
    network=NetworkPlan(
        "10.1.0.2",
        "10.1.0.1",
        "h",
        "w",
        [["/etc/hosts", "/f"]],
        ["a"],
        RouterPlan("fl_1", "fv1", "g", "s", "/nft"),
        "l",
        7,
    ),
    readiness=ReadinessCheck(80, is_http=True, path="/ready"),
    remote_exec=RemoteExecPlan("/f", "/m"),
    watched=[WatchedFolder("/d", 1, "storage")],
    ports=[[80, 30080]],
    holds=[["claim", "node"]],
    owner="workload w",
)


def sent(launch: LaunchOrder) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(json.dumps(launch_order.encode(launch)))
    return message


def plain(value: Any) -> Any:
    """Without the difference between tuples and lists, which JSON does not know."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("launch", [SMALL, WHOLE], ids=["small", "whole"])
def test_an_order_arrives_as_it_was_sent(launch: LaunchOrder) -> None:
    received = launch_order.decode(sent(launch))
    assert plain(received) == plain(launch)
    for member in ("rights", "limits", "isolation", "container", "fetching", "network", "readiness"):
        assert type(getattr(received, member)) is type(getattr(launch, member))


def test_members_with_their_default_are_not_sent() -> None:
    assert set(sent(SMALL)) == {"place", "command"}
    assert set(sent(SMALL)["command"]) == {"argv", "env", "cwd"}


def test_what_another_version_adds_is_ignored_and_what_it_lacks_has_its_default() -> None:
    message = sent(WHOLE)
    message["novelty"] = {"a": 1}
    message["command"]["novelty"] = 1
    message["isolation"]["mounts"]["volumes"][0]["novelty"] = 1
    del message["rights"]
    received = launch_order.decode(message)
    assert received.rights == ProcessRights()
    assert received.command.argv == ["true"]
    assert received.isolation is not None
    assert received.isolation.mounts.volumes[0].at == "/etc/x"


def test_the_network_in_the_journal_of_an_earlier_version() -> None:
    written = {
        "router": {"table": "fl_1", "devices": "fv1", "gateway": "10.1.0.1", "subnet": "10.1.0.0/16", "nft": "/nft"},
        "link": "fv1",
        "group": 7,
        "address": "10.1.0.2",
        "gateway": "10.1.0.1",
        "hostname": "h",
        "names": ["h"],
        "workload": "w",
        "files": [["/etc/hosts", "/f"]],
    }
    plan = launch_order.decode_network(written)
    assert (plan.link, plan.pasta, plan.names) == ("fv1", "", ["h"])
    assert launch_order.encode(plan) == written
    without_root = {"pasta": "/usr/bin/pasta", "address": "127.0.0.1", "gateway": "127.0.0.1", "hostname": "h"}
    assert launch_order.decode_network({**without_root, "workload": "w", "files": []}).pasta == "/usr/bin/pasta"
