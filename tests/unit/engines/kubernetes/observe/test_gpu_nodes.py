"""Nodes with real GPUs, as NVIDIA's GPU operator labels them: what is recorded of each, and what doctor says of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.install.checks import judge_nodes
from fairlead.engines.kubernetes.observe.nodes import render_node

GOLDEN = sorted((Path(__file__).parents[4] / "golden" / "nodes").glob("*.json"))


def read(path: Path) -> tuple[objects.Node, dict[str, Any]]:
    golden = json.loads(path.read_bytes())
    return msgspec.convert(golden["node"], objects.Node, strict=False), golden["want"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_node(path: Path) -> None:
    node, want = read(path)
    record = render_node(node)
    devices = Counter((device.model, device.memory_mib) for device in record.gpus)
    assert {
        "gpus": [{"count": count, "model": model, "memoryMib": mib} for (model, mib), count in devices.items()],
        "extended": record.extended,
        "findings": [f"{finding.what}: {finding.state}: {finding.found}" for finding in judge_nodes([node])],
    } == want
    assert [device.index for device in record.gpus] == list(range(len(record.gpus)))


def test_what_is_amiss_comes_with_advice() -> None:
    found = judge_nodes([read(path)[0] for path in GOLDEN])
    assert {finding.what for finding in found if finding.state != "ok" and not finding.advice} == set()
    [devices] = [finding for finding in found if finding.what == "GPU devices"]
    assert devices.found == "not all are offered on no-device-plugin (none), one-broken (7 of 8)"


def test_a_cluster_without_gpus_gets_advice() -> None:
    plain = msgspec.convert({"metadata": {"name": "n"}}, objects.Node)
    assert [finding.what for finding in judge_nodes([plain])] == ["Nodes", "GPUs"]
