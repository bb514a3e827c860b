"""A cluster for the tests of this folder, and servers on it. `make test-kubernetes` builds the cluster first.

`FAIRLEAD_CLUSTER` names the folder of one that runs already (`make cluster-up`), which is then used and left alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes
from deploy.cluster.parts import PARTS
from tests.kubernetes.room import Room

NODES = ("node-1", "node-2")
CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """All of it, with one real node, and two nodes of eight GPUs that nobody runs."""
    given = os.environ.get("FAIRLEAD_CLUSTER", "")
    folder = Path(given) if given else tmp_path_factory.mktemp("cluster")
    try:
        running = clusters.up(folder, PARTS[-1])
        known = observe_nodes(running.api())
        add_nodes(running.api(), [name for name in NODES if name not in known], Shape(gpus=8))
        yield running
    finally:
        if not given:
            clusters.down(folder)


@pytest.fixture(scope="module")
def room(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A server on the cluster with a project of its own, so that test files do not meet."""
    room = Room(cluster, tmp_path_factory.mktemp("server"))
    try:
        room.open(CRDS)
        yield room
    finally:
        room.close()


@pytest.fixture(autouse=True)
def clean(room: Room) -> Iterator[None]:
    """Nothing of a test is left for the next."""
    yield
    room.delete_all()
