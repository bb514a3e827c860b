"""Rules on one workload: for each a case that it finds, and one beside it that it must not."""

from typing import Any

import pytest

from fairlead.foresight.lint import workload_rules
from fairlead.foresight.lint.material import LintFinding, LintMaterial, workload_of
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.kinds import KINDS

Plain = dict[str, Any]


def material(spec: Plain, kind: str = "training", name: str = "bert", *, is_prefix: bool = False) -> LintMaterial:
    read = IntermediateWorkload(kind=KINDS[kind], name=name, is_prefix=is_prefix, spec=spec)
    return LintMaterial(workloads=(workload_of("a.yaml", read),))


def places(found: list[LintFinding]) -> list[tuple[str, str, str]]:
    return [(each.rule, each.subject, each.path) for each in found]


@pytest.mark.parametrize(
    ("compute", "want_path"),
    [
        ({"cpuCoreRequest": 4, "cpuCoreLimit": 2}, "spec.compute.cpuCoreLimit"),
        ({"cpuCoreRequest": 2, "cpuCoreLimit": 2}, ""),
        ({"cpuMemoryRequest": "2Gi", "cpuMemoryLimit": "2G"}, "spec.compute.cpuMemoryLimit"),
        ({"cpuMemoryRequest": "2G", "cpuMemoryLimit": "2Gi"}, ""),
        ({"cpuCoreLimit": 2}, ""),
    ],
)
def test_requests_above_limits(compute: Plain, want_path: str) -> None:
    found = list(workload_rules.find_above_limit(material({"image": "x", "compute": compute})))
    want = [("requests-exceed-limits", "workload bert", want_path)] if want_path else []
    assert places(found) == want


def test_requests_above_limits_of_a_role() -> None:
    spec = {"leader": {"image": "x", "compute": {"cpuCoreRequest": 4, "cpuCoreLimit": 2}}}
    found = list(workload_rules.find_above_limit(material(spec, "distributed-inference")))
    assert [each.path for each in found] == ["spec.leader.compute.cpuCoreLimit"]
    assert "is 2, below cpuCoreRequest, which is 4" in found[0].message


@pytest.mark.parametrize(
    ("spec", "name", "want_path"),
    [
        ({}, "bert", ""),
        ({"compute": {"gpuRequestType": "portion"}}, "bert", "spec.compute.gpuPortionRequest"),
        # Requests above limits have a rule of their own, and so have names that are too long.
        ({"compute": {"cpuCoreRequest": 4, "cpuCoreLimit": 2}}, "bert", ""),
        ({}, "b" * 64, ""),
        ({}, "Bert", "name"),
    ],
)
def test_other_rules_between_members(spec: Plain, name: str, want_path: str) -> None:
    found = list(workload_rules.find_invalid_spec(material({"image": "x", **spec}, name=name)))
    assert [each.path for each in found] == ([want_path] if want_path else [])


@pytest.mark.parametrize(
    ("kind", "length", "is_prefix", "want"),
    [
        ("training", 63, False, False),
        ("training", 64, False, True),
        ("training", 57, True, False),
        ("training", 58, True, True),
        # The pods of a group are hosts: `NAME-0-1`.
        ("distributed-inference", 59, False, False),
        ("distributed-inference", 60, False, True),
    ],
)
def test_names_that_are_too_long_with_their_suffix(kind: str, length: int, is_prefix: bool, want: bool) -> None:
    role = {"image": "x"}
    spec = role if kind == "training" else {"leader": role, "worker": role, "workers": 1}
    found = list(workload_rules.find_too_long_name(material(spec, kind, "b" * length, is_prefix=is_prefix)))
    assert [each.rule for each in found] == ["name-too-long"] * want


def group(args: str, *, startup: str = "LeaderReady", probes: bool = True, gpus: int = 8) -> LintMaterial:
    probe = {"probes": {"readiness": {"handler": {"httpGet": {"port": 8000, "path": "/health"}}}}} if probes else {}
    leader = {"image": "vllm", "args": args, "compute": {"gpuDevicesRequest": gpus}, **probe}
    spec = {"leader": leader, "worker": {"image": "vllm"}, "workers": 1, "startupPolicy": startup}
    return material(spec, "distributed-inference")


@pytest.mark.parametrize(
    "args",
    [
        "serve --tensor-parallel-size 8 --pipeline-parallel-size 2",
        "serve --tp=16",
        "leader --ray_cluster_size=$(LWS_GROUP_SIZE)",
        "serve --nnodes 2",
    ],
)
def test_a_leader_that_is_ready_only_with_its_workers(args: str) -> None:
    (found,) = workload_rules.find_waiting_leader(group(args))
    assert (found.rule, found.path) == ("leader-waits-for-workers", "spec.leader.probes.readiness")
    assert "0 of 1 workers ever start" in found.counter_example


@pytest.mark.parametrize(
    "harmless",
    [
        group("serve --tensor-parallel-size 8"),
        group("serve --nnodes 1"),
        group("serve --tp 16", startup="LeaderCreated"),
        group("serve --tp 16", probes=False),
        group("serve --tp 16", gpus=16),
    ],
    ids=["on its own GPUs", "alone", "workers start with it", "no probe", "enough GPUs"],
)
def test_a_leader_that_is_ready_alone(harmless: LintMaterial) -> None:
    assert harmless.workloads[0].pod_sets
    assert list(workload_rules.find_waiting_leader(harmless)) == []
