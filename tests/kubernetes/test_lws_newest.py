"""The tests of distributed inference once more, with the newest LeaderWorkerSet in the place of the usual one."""

from collections.abc import Iterator

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.options import add, drop
from tests.kubernetes.test_distributed_inference import (
    test_groups_serve_scale_and_go,
    test_what_a_failed_pod_brings_about,
    test_who_may_ask_and_where,
    test_workers_start_when_their_leader_is_ready,
)

__all__ = [
    "test_groups_serve_scale_and_go",
    "test_what_a_failed_pod_brings_about",
    "test_who_may_ask_and_where",
    "test_workers_start_when_their_leader_is_ready",
]

pytestmark = pytest.mark.operators


@pytest.fixture(scope="module", autouse=True)
def newest(cluster: clusters.Cluster) -> Iterator[None]:
    add(cluster, "lws-newest")
    try:
        yield
    finally:
        drop(cluster, "lws-newest")
