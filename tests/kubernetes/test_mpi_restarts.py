"""MPI whose launcher starts with its workers, in real containers: it fails and starts again until they are known.

Run by `make test-operators`, because containers that fail are started again after ever longer pauses.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import cluster as clusters
from tests.kubernetes.cluster_harness import ClusterHarness
from tests.kubernetes.mpi_image import provide_image
from tests.kubernetes.test_mpi import answer_of, gather, job

pytestmark = pytest.mark.operators


@pytest.fixture(scope="module", autouse=True)
def operator(harness: ClusterHarness) -> Iterator[None]:
    with harness.installed("mpi"):
        yield


@pytest.mark.debian("openmpi-bin", "python3-mpi4py", "openssh-server")
def test_a_launcher_that_may_start_again_starts_with_its_workers(
    cluster: clusters.Cluster, harness: ClusterHarness, tmp_path: Path
) -> None:
    provide_image(cluster.layout, tmp_path)
    workload = gather(harness, restartPolicy="OnFailure", mpiLauncherCreationPolicy="AtStartup")
    assert answer_of(harness, workload) == f"{[(rank, f'gathers-worker-{rank // 2}') for rank in range(4)]} 4"
    assert job(harness)["spec"]["launcherCreationPolicy"] == "AtStartup"
