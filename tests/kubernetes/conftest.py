"""A cluster for the tests of this folder, and servers on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import cluster as clusters
from tests.clusters import running_cluster, set_nodes
from tests.kubernetes.cluster_harness import ClusterHarness
from tests.kubernetes.meddler import Meddler

NODES = ("node-1", "node-2")
CRDS = Path(__file__).parents[2] / "deploy" / "crds"


#: The files that take longest, longest first: begun early, they leave no process alone at the end.
LONG = (
    *("test_faults_network.py", "test_faults.py", "test_kubernetes_cluster.py", "test_kubeflow.py"),
    *("test_same_phases.py", "test_mpi.py", "test_fields_storage.py", "test_trainings.py", "test_servers.py"),
    *("test_distributed_inference.py", "test_doctor.py", "test_fields_life.py", "test_inference.py"),
    *("test_kubernetes_chart.py", "test_examples.py", "test_engine_contract.py", "test_pools.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In this order for the processes of xdist, which take whole files one after the other."""

    def place(item: pytest.Item) -> int:
        is_long = item.path.name in LONG and item.get_closest_marker("kubernetes") is not None
        return LONG.index(item.path.name) if is_long else len(LONG)

    items.sort(key=place)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def two_nodes(cluster: clusters.Cluster) -> None:
    """Others may have left the cluster with other ones."""
    set_nodes(cluster, *NODES)


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    """A server on the cluster with a project of its own, so that test files do not meet."""
    yield from _opened(ClusterHarness(cluster, tmp_path_factory.mktemp("server")))


@pytest.fixture(scope="module")
def meddler(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meddler]:
    meddler = Meddler(cluster.layout, tmp_path_factory.mktemp("meddler")).start()
    try:
        yield meddler
    finally:
        meddler.close()


@pytest.fixture(scope="module")
def meddled_harness(
    cluster: clusters.Cluster, meddler: Meddler, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterHarness]:
    """As `harness`, with a server that goes through the proxy."""
    yield from _opened(ClusterHarness(cluster, tmp_path_factory.mktemp("server"), meddler.kubeconfig))


def _opened(harness: ClusterHarness) -> Iterator[ClusterHarness]:
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


@pytest.fixture(autouse=True)
def clean(harness: ClusterHarness) -> Iterator[None]:
    """Nothing of a test is left for the next."""
    yield
    harness.delete_all()
