"""Objects of a cluster that KAI schedules become a snapshot on which our scheduler decides."""

import io
import json
import zipfile
from typing import Any

import msgspec
import pytest

from fairlead.cli.scheduling.snapshot_files import decode_snapshot
from fairlead.foresight.kai.convert import convert_archive, convert_objects
from fairlead.foresight.kai.objects import KaiObjects
from fairlead.scheduling import SnapshotError, decide

BORN = "2026-10-01T08:00:00Z"


def metadata(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "creationTimestamp": BORN, **more}


def node(name: str = "n1", gpus: int = 4, **labels: str) -> dict[str, Any]:
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": metadata(name, labels={"nvidia.com/gpu.memory": "40960", **labels}),
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def queue(name: str, parent: str = "", quota: float = 4) -> dict[str, Any]:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    shares = {"gpu": {"quota": quota, "limit": -1, "overQuotaWeight": 1}, "cpu": free, "memory": free}
    return {"metadata": metadata(name), "spec": {"parentQueue": parent, "resources": shares}}


def pod(name: str, group: str = "train", gpus: int = 1, **more: Any) -> dict[str, Any]:
    requests: dict[str, Any] = {"cpu": "500m", "memory": "1Gi"}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    annotations = {"pod-group-name": group, **more.pop("annotations", {})}
    spec = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}],
        **more.pop("spec", {}),
    }
    about = metadata(name, "team", annotations=annotations, labels=more.pop("labels", {}), **more.pop("metadata", {}))
    return {"metadata": about, "spec": spec, "status": {"phase": "Pending", **more.pop("status", {})}}


def group(name: str = "train", **spec: Any) -> dict[str, Any]:
    return {"metadata": metadata(name, "team"), "spec": {"queue": "team", "minMember": 1, **spec}}


def objects(**lists: Any) -> dict[str, Any]:
    return {
        "nodes": [node()],
        "queues": [queue("department", quota=-1), queue("team", "department")],
        "podGroups": [group()],
        "pods": [pod("train-0")],
        "priorityClasses": [{"metadata": metadata("build"), "value": 100}],
        "bindRequests": None,
        **lists,
    }


def convert(**lists: Any) -> Any:
    return convert_objects(msgspec.convert(objects(**lists), KaiObjects), 1.0)


def test_a_pending_pod_gets_its_place() -> None:
    snapshot = convert()
    [bind] = decide(snapshot).binds
    assert (bind.task, bind.node, bind.job) == ("team/train-0", "n1", "team/train")
    [job] = snapshot.jobs
    assert (job.queue, job.priority, job.preemptible, job.min_available) == ("team", 50, True, 1)
    [task] = job.tasks
    assert (task.cpu_milli, task.memory_bytes, task.gpu) == (500, 1 << 30, 1)
    assert snapshot.nodes[0].gpu_memory_mib == 40_900


def test_priority_and_preemptibility() -> None:
    for spec, want in (
        ({"priorityClassName": "build"}, (100, False)),
        ({"priorityClassName": "build", "preemptibility": "preemptible"}, (100, True)),
        ({"preemptibility": "non-preemptible"}, (50, False)),
    ):
        [job] = convert(podGroups=[group(**spec)]).jobs
        assert (job.priority, job.preemptible) == want


def test_where_pods_are() -> None:
    pods = [
        pod("a", spec={"nodeName": "n1"}, status={"phase": "Running"}),
        pod("b", spec={"nodeName": "n1"}),
        pod("c", spec={"nodeName": "n1"}, metadata={"deletionTimestamp": BORN}, status={"phase": "Running"}),
        pod("d"),
        pod("e", spec={"schedulingGates": [{"name": "later"}]}),
        pod("f", spec={"nodeName": "n1"}, status={"phase": "Succeeded"}),
    ]
    binding = [{"metadata": metadata("d", "team"), "spec": {"podName": "d", "selectedNode": "n1"}, "status": {}}]
    [job] = convert(pods=pods, bindRequests=binding).jobs
    found = [(task.name, task.status, task.node) for task in job.tasks]
    assert found == [
        ("a", "Running", "n1"),
        ("b", "Bound", "n1"),
        ("c", "Releasing", "n1"),
        ("d", "Binding", "n1"),
        ("e", "Gated", None),
        ("f", "Succeeded", "n1"),
    ]


def test_pods_of_others_take_room_and_reservations_do_not() -> None:
    other = pod("web", "", gpus=2, spec={"nodeName": "n1", "schedulerName": "default-scheduler"})
    reserve = pod("gpu-x", "", spec={"nodeName": "n1"})
    reserve["metadata"]["namespace"] = "kai-resource-reservation"
    snapshot = convert(pods=[pod("train-0", gpus=3), other, reserve])
    foreign = snapshot.nodes[0].foreign
    assert (foreign.gpu, foreign.cpu_milli, foreign.pods) == (2, 500, 1)
    assert not decide(snapshot).binds


def test_parts_of_a_gpu() -> None:
    half = {"gpu-fraction": "0.5"}
    running = pod(
        "a",
        gpus=0,
        annotations=half,
        labels={"runai-gpu-group": "g1"},
        spec={"nodeName": "n1"},
        status={"phase": "Running"},
    )
    snapshot = convert(nodes=[node(gpus=1)], pods=[running, pod("b", gpus=0, annotations=half)])
    [bind] = decide(snapshot).binds
    assert bind.gpu_groups == ("g1",)


def test_subgroups_and_topology() -> None:
    spec: dict[str, Any] = {
        "minMember": None,
        "subGroups": [
            {"name": "all", "minSubGroup": 1},
            {"name": "head", "parent": "all", "minMember": 1},
            {"name": "rest", "parent": "all", "minMember": 2},
        ],
        "topologyConstraint": {"topology": "net", "requiredTopologyLevel": "rack"},
    }
    levels = {"levels": [{"nodeLabel": "rack"}]}
    pods = [pod(f"p{n}", labels={"kai.scheduler/subgroup-name": "rest" if n else "head"}) for n in range(3)]
    snapshot = convert(
        podGroups=[group(**spec)],
        pods=pods,
        nodes=[node(rack="r1")],
        topologies=[{"metadata": metadata("net"), "spec": levels}],
    )
    [job] = snapshot.jobs
    assert [(each.name, each.min_available) for each in job.groups[0].pod_sets] == [("head", 1), ("rest", 2)]
    assert job.topology is not None
    assert job.topology.required == "rack"
    assert len(decide(snapshot).binds) == 3


def archive() -> bytes:
    return json.dumps(
        {"config": {"actions": "allocate, reclaim"}, "schedulerParams": {}, "rawObjects": objects()}
    ).encode()


def test_kais_archive_is_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("snapshot.json", archive())
    snapshot = decode_snapshot(packed.getvalue())
    assert snapshot == convert_archive(archive()) == decode_snapshot(archive())
    assert snapshot.settings.actions == ("allocate", "reclaim")
    assert snapshot.now == 1_790_841_600
    assert len(decide(snapshot).binds) == 1


@pytest.mark.parametrize("data", [b"PK\x03\x04broken", b'{"rawObjects": 3}', b"nothing"], ids=["zip", "form", "text"])
def test_a_file_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        decode_snapshot(data)
