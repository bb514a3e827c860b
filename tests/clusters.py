"""The cluster of the tests that need one, and its nodes. `make test-kubernetes` builds it first.

`FAIRLEAD_CLUSTER` names the folder of one that runs already (`make cluster-up`), which is then used and left alone;
where several processes test at once, each has its own in a folder beneath.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from deploy.cluster import cluster as clusters
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from deploy.cluster.parts import PARTS


@contextlib.contextmanager
def running_cluster(otherwise: Path) -> Iterator[clusters.Cluster]:
    """All of it, with one real node; in the given folder and only for this long unless one is named."""
    named = os.environ.get("FAIRLEAD_CLUSTER", "")
    folder = Path(named, os.environ.get("PYTEST_XDIST_WORKER", "")).absolute() if named else otherwise
    try:
        yield clusters.up(folder, PARTS[-1])
    finally:
        if not named:
            clusters.down(folder)


def set_nodes(running: clusters.Cluster, *names: str) -> None:
    """Exactly these nodes of eight GPUs that nobody runs."""
    with running.api() as api:
        known = observe_nodes(api)
        remove_nodes(api, [name for name in known if name not in names])
        add_nodes(api, [name for name in names if name not in known], Shape(gpus=8))
