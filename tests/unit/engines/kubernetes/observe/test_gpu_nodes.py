"""Nodes with real GPUs, as NVIDIA's GPU operator labels them: what is recorded of each, and what doctor says of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.install.checks import judge_nodes
from fairlead.engines.kubernetes.install.device_checks import judge_devices
from fairlead.engines.kubernetes.observe.devices import find_gpus
from fairlead.engines.kubernetes.observe.nodes import RenderedNodes, render_node
from fairlead.model.records.organization import GpuDevice

GOLDEN = sorted((Path(__file__).parents[4] / "golden" / "nodes").glob("*.json"))


def read(path: Path) -> tuple[objects.Node, dict[str, Any]]:
    golden = json.loads(path.read_bytes())
    return msgspec.convert(golden["node"], objects.Node, strict=False), golden["want"]


def read_slices(path: Path) -> tuple[list[objects.ResourceSlice], list[str]]:
    """What a driver of dynamic resource allocation offers on the node, and the classes of the cluster."""
    golden = json.loads(path.read_bytes())
    return msgspec.convert(golden.get("slices", []), list[objects.ResourceSlice]), golden.get("classes", [])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_node(path: Path) -> None:
    node, want = read(path)
    slices, classes = read_slices(path)
    record = render_node(node, find_gpus(slices).get(node.metadata.name, ()))
    findings = [*judge_nodes([node]), *judge_devices([node], slices, classes)]
    devices = Counter((device.model, device.memory_mib) for device in record.gpus)
    assert {
        "gpus": [{"count": count, "model": model, "memoryMib": mib} for (model, mib), count in devices.items()],
        "extended": record.extended,
        "findings": [f"{finding.what}: {finding.state}: {finding.found}" for finding in findings],
    } == want
    assert [device.index for device in record.gpus] == list(range(len(record.gpus)))


def test_what_is_amiss_comes_with_advice() -> None:
    found = judge_nodes([read(path)[0] for path in GOLDEN])
    assert {finding.what for finding in found if finding.state != "ok" and not finding.advice} == set()
    [devices] = [finding for finding in found if finding.what == "GPU devices"]
    assert devices.found == "not all are offered on no-device-plugin (none), one-broken (7 of 8)"


def test_devices_without_a_class_cannot_be_claimed() -> None:
    slices, _ = read_slices(next(path for path in GOLDEN if path.stem == "dra-driver"))
    [finding] = judge_devices([], slices, ["nic.example.com"])
    assert (finding.state, finding.found) == ("missing", "2 on 1 node, but no DeviceClass for them")


def test_a_gpu_that_is_offered_twice_is_pointed_out() -> None:
    slices, classes = read_slices(next(path for path in GOLDEN if path.stem == "dra-driver"))
    plain = {"metadata": {"name": "dra-driver"}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}
    node = msgspec.convert(plain, objects.Node)
    assert [one.found for one in judge_devices([node], slices, classes)][1:] == ["dra-driver"]


def test_a_cluster_without_gpus_gets_advice() -> None:
    plain = msgspec.convert({"metadata": {"name": "n"}}, objects.Node)
    assert [finding.what for finding in judge_nodes([plain])] == ["Nodes", "GPUs"]


def test_a_node_is_rendered_again_only_if_it_or_its_claimable_gpus_changed() -> None:
    nodes = [
        objects.Node(
            metadata=objects.Metadata(name=name, uid=name), status=objects.NodeStatus(allocatable={"cpu": "1"})
        )
        for name in ("a", "b", "c", "gone")
    ]
    rendered = RenderedNodes()
    first = rendered.render(nodes, {})
    more = objects.Node(metadata=nodes[1].metadata, status=objects.NodeStatus(allocatable={"cpu": "2"}))
    offered = (GpuDevice(index=0, model="H100", memory_mib=80_000),)
    second = rendered.render([nodes[0], more, nodes[2]], {"c": offered})
    assert second[0] is first[0]
    assert [node.cpu_milli for node in second] == [1000, 2000, 1000]
    assert second[2].gpus == offered
