"""What a pod of a cluster costs the server: its memory in watch and cache."""

import json
import tracemalloc

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from tests.contract.fake_cluster import Cluster

MAX_BYTES = 4096
PODS = 500


class _Nobody:
    """Is told of changes, and keeps nothing."""

    def on_changed(self, workload_id: str) -> None: ...

    def on_object_added(self, workload_id: str) -> None: ...

    def on_controller_deleted(self, workload_id: str) -> None: ...

    def on_nodes_changed(self) -> None: ...

    def on_pod_changed(self, pod: objects.Pod) -> None: ...


def _written(number: int) -> bytes:
    """A pod as an API server writes it, with what is not read."""
    labels = {f"label-{index}": f"value-{index}" for index in range(8)} | {"fairlead/workload-id": f"id-{number}"}
    conditions = [
        {"type": type, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    variables = [{"name": f"NAME_{index}", "value": "x" * 40} for index in range(30)]
    container = {"name": "main", "image": "registry/team/image:1", "env": variables, "command": ["python", "train.py"]}
    status = [
        {"name": "main", "ready": True, "image": "i", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    ]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{number}", "uid": f"job-{number}"}
    body = {
        "metadata": {
            "name": f"train-{number}-abcde",
            "namespace": f"runai-team-{number % 200}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": {"pod-group-name": f"pg-train-{number}-0"},
            "ownerReferences": [owner],
            "managedFields": [{"manager": "m", "fieldsV1": {f"f:{index}": {} for index in range(40)}}],
        },
        "spec": {"nodeName": f"node-{number % 500}", "restartPolicy": "Never", "containers": [container]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions, "containerStatuses": status},
    }
    return json.dumps(body).encode()


def test_memory_of_a_pod_in_watch_and_cache() -> None:
    cache = ClusterCache(Cluster(), _Nobody())
    written = [_written(number) for number in range(PODS)]
    watched: dict[tuple[str, str], objects.Pod] = {}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for body in written:
            known = msgspec.json.decode(body, type=objects.Pod)
            watched[known.metadata.namespace, known.metadata.name] = known
            cache._on_pod(None, known)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(watched) == PODS
    assert (after - before) / PODS <= MAX_BYTES
