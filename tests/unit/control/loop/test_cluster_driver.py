"""Orders for whole workloads: in which node pools they can wait, of those that they name; and orders for nodes."""

import asyncio
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from fairlead.control.context import Context, ControlSettings
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.serving.urls import UrlRegistry
from fairlead.engines.base import ApplyOrganization, ApplyWorkload, DesiredWorkload, MaintainNode
from fairlead.model.records.organization import Node, NodePool
from fairlead.model.records.phase import Phase
from fairlead.store.collections import NODE_POOLS, NODES, PROJECTS
from tests import builders
from tests.contract.quiet_engines import QuietCluster


def make_driver(*pools: str) -> ClusterDriver:
    known = {
        name: NodePool(id=name, version=1, name=name, cluster_id="c", created_at=0, updated_at=0) for name in pools
    }
    directory = SimpleNamespace(departments={}, projects={}, nodes={}, node_pools=known)
    context = SimpleNamespace(
        directory=directory, url_registry=UrlRegistry(), open_workloads={}, settings=ControlSettings()
    )
    return ClusterDriver(cast(Context, context), QuietCluster())


def entry(*pools: str, name: str = "train") -> WorkloadEntry:
    workload = builders.workload(name, phase=Phase.PENDING, node_pools=pools)
    return WorkloadEntry(workload=workload, pods=(), podsets=(builders.podset(),), lifetime_after_end=60_000)


def render_desired(held: WorkloadEntry, *pools: str) -> DesiredWorkload:
    driver = make_driver(*pools)
    [order] = driver.orders(driver.decide(held, 1000))
    assert isinstance(order, ApplyWorkload)
    return order.workload


@pytest.mark.parametrize(
    ("asked", "known", "want"),
    [
        (("h100", "default"), ("default", "h100"), ("h100", "default")),
        (("h100", "default"), ("default",), ("default",)),
        (("h100", "a100", "default"), ("default", "a100"), ("a100", "default")),
        (("h100", "a100"), ("default",), ("h100", "a100")),
        (("h100",), ("default",), ("h100",)),
        ((), ("default",), ()),
    ],
    ids=["all there", "the first gone", "one of three gone", "all gone", "its only one gone", "none named"],
)
def test_pools_that_do_not_exist_are_skipped(
    asked: tuple[str, ...], known: tuple[str, ...], want: tuple[str, ...]
) -> None:
    found = render_desired(entry(*asked), *known)
    assert (found.node_pools, found.tried_pools) == (asked, want)


def test_a_deleted_pool_changes_the_order_of_workloads_that_name_it() -> None:
    both, default = entry("h100", "default"), entry("default", "a100")
    assert render_desired(both, "default", "a100", "h100") != render_desired(both, "default", "a100")
    assert render_desired(default, "default", "a100", "h100") == render_desired(default, "default", "a100")


def test_a_change_of_node_pools_looks_again_at_workloads_that_name_several() -> None:
    driver = make_driver("default")
    for held in (entry("h100", "default", name="both"), entry("h100", name="one"), entry(name="none")):
        driver.board.put(held.workload, ())
    pools_too = asyncio.run(driver.on_directory_change([(PROJECTS.name, "1"), (NODE_POOLS.name, "2")]))
    assert ([type(order) for order in pools_too.orders], pools_too.workload_ids) == ([ApplyOrganization], {"id-both"})
    assert asyncio.run(driver.on_directory_change([(PROJECTS.name, "1")])).workload_ids == set()


def test_nodes_are_maintained_once_and_again_after_a_start() -> None:
    driver = make_driver("default")
    nodes = driver._context.directory.nodes
    node = Node(id="n", name="n", cpu_milli=1, memory_bytes=1)

    def orders() -> list[object]:
        return [*asyncio.run(driver.on_directory_change([(NODES.name, "n")])).orders]

    nodes["n"] = node
    assert orders() == []
    nodes["n"] = msgspec.structs.replace(node, cordon_request=True, draining=True)
    assert (orders(), orders()) == ([MaintainNode("n", cordon=True, evicts=True)], [])
    nodes["n"] = msgspec.structs.replace(node, cordoned=True, draining=True)
    assert orders() == [MaintainNode("n", evicts=True)]
    assert asyncio.run(restart(driver).resume()) == [MaintainNode("n", evicts=True)]
    nodes["n"] = node
    assert orders() == [MaintainNode("n")]


def restart(driver: ClusterDriver) -> ClusterDriver:
    return ClusterDriver(driver._context, QuietCluster())
