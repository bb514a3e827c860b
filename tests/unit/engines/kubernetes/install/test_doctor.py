"""What doctor says of what a cluster has and lacks, of what it may not look at, and of those who were there before."""

import asyncio
from typing import Any

import pytest

from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.identity import ApiIdentity
from fairlead.engines.kubernetes.client.kubeconfig import Access
from fairlead.engines.kubernetes.install.checks import (
    judge_autoscaler,
    judge_namespaces,
    judge_operators,
    judge_programs,
    judge_schedulers,
)
from fairlead.engines.kubernetes.install.doctor import run_check
from fairlead.model.finding import Finding

ALL = ("LeaderWorkerSet", "PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "MPIJob")


def test_everything_is_there() -> None:
    assert {one.state for one in judge_operators(ALL, ())} == {"ok"}


def test_nothing_is_there() -> None:
    found = {one.what: one for one in judge_operators((), None)}
    assert {one.state for one in found.values()} == {"note"}
    assert all(one.advice for one in found.values())
    assert "other than MPI run as pod groups" in found["Kubeflow training operator"].found
    assert "with MPI are refused" in found["Kubeflow MPI operator"].found
    assert "Deployments that Fairlead scales" in found["Knative"].found


@pytest.mark.parametrize(
    ("kinds", "switches", "what", "want"),
    [
        (("PyTorchJob",), None, "Kubeflow training operator", ("ok", "trainings for TFJob, XGBoostJob, JAXJob run as")),
        (("MPIJob",), None, "Kubeflow training operator", ("note", "not installed")),
        (("MPIJob",), None, "Kubeflow MPI operator", ("ok", "with MPI can run")),
        ((), ("kubernetes.podspec-fieldref",), "Knative", ("note", "not enabled: kubernetes.podspec-fieldref")),
    ],
    ids=["PyTorch alone", "MPI is another operator", "MPI alone", "a switch of Knative's"],
)
def test_some_are_there(
    kinds: tuple[str, ...], switches: tuple[str, ...] | None, what: str, want: tuple[str, str]
) -> None:
    [found] = [one for one in judge_operators(kinds, switches) if one.what == what]
    assert (found.state, want[1] in found.found) == (want[0], True), found


FLAG, PARTITION = "--update-pod-eviction-condition", "--partition-label-value"
BOTH = ("KAI reports preemptions", "Schedulers of pools")


@pytest.mark.parametrize(
    ("words", "pools", "want"),
    [
        ([], ["h100"], {BOTH[0]: "note"}),
        ([FLAG], [], {BOTH[0]: "ok"}),
        ([FLAG, "true", "--v", "3"], [], {BOTH[0]: "ok"}),
        ([FLAG, "false"], [], {BOTH[0]: "missing"}),
        ([FLAG, PARTITION, "h100"], ["h100"], dict.fromkeys(BOTH, "ok")),
        (
            ["--v", PARTITION, "a"],
            ["a", "b"],
            dict.fromkeys(BOTH, "missing"),
        ),
    ],
    ids=["not seen", "the flag", "a value", "switched off", "a scheduler for the pool", "none for one of two"],
)
def test_how_kai_is_started(words: list[str], pools: list[str], want: dict[str, str]) -> None:
    found = judge_schedulers(words, pools)
    assert {one.what: one.state for one in found} == want
    assert all(one.advice for one in found if one.state != "ok")
    assert "none for b" in found[-1].found or "b" not in pools


def program(name: str, replicas: int | None = None, **status: int) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def test_programs_of_kai_that_are_not_available_are_named() -> None:
    there = [program("scheduler", 1, availableReplicas=1), program("operator", 0)]
    assert judge_programs(there) == []
    [found] = judge_programs([*there, program("pod-grouper", 1), program("binder", unavailableReplicas=1)])
    assert (found.state, found.found) == ("missing", "no pod is available of binder, pod-grouper")


def examined(error: Exception) -> Finding:
    async def look(_: Api) -> list[Finding]:
        raise error

    [found] = asyncio.run(run_check("Storage", look, Api(Access(host="", port=0, identify=ApiIdentity))))
    assert found.what == "Storage"
    return found


def test_a_missing_right_to_look_is_not_a_fault_of_the_cluster() -> None:
    found = examined(ApiError(403, "Forbidden", "storageclasses is forbidden"))
    assert (found.state, found.found) == ("note", "unknown: storageclasses is forbidden")
    assert examined(ApiError(500, "InternalError", "etcd is away")).state == "missing"
    assert examined(ConnectionResetError("gone")).state == "missing"


@pytest.mark.parametrize(
    ("owners", "own", "want"),
    [
        ({"default": ""}, "", ("ok", "none conflicts with a project")),
        ({"runai-a": "x"}, "x", ("ok", "none conflicts with a project; those of projects belong to this server")),
        ({"runai-a": "x"}, "", ("ok", "the projects belong to the installation of cluster x; any other one waits")),
        (
            {"runai-a": "x"},
            "y",
            ("note", "the projects belong to another Fairlead installation, x; the server of this data folder, y, w"),
        ),
        (
            {"runai-a": "x", "runai-b": "z"},
            "z",
            ("note", "several Fairlead installations have projects here: x, z; this server's is"),
        ),
        ({"runai-a": "", "default": ""}, "y", ("note", "not made by Fairlead: runai-a")),
        ({"runai-a": "", "runai-b": "x"}, "x", ("note", "not made by Fairlead: runai-a")),
    ],
    ids=["nobody's", "ours", "somebody's", "another's, and ours waits", "several", "a name", "a name beside ours"],
)
def test_whose_the_namespaces_are(owners: dict[str, str], own: str, want: tuple[str, str]) -> None:
    found = judge_namespaces(owners, own)
    assert (found.state, found.found[: len(want[1])]) == want, found
    assert bool(found.advice) is (found.state != "ok")


@pytest.mark.parametrize(
    ("found", "has_adjuster", "want"),
    [
        pytest.param("", False, [("ok", "none found")], id="no autoscaler"),
        pytest.param("Karpenter", True, [("ok", "Karpenter; workloads that fit no")], id="Karpenter"),
        pytest.param(
            "Karpenter",
            False,
            [("ok", "Karpenter;"), ("note", "KAI's node scale adjuster is not installed")],
            id="no adjuster",
        ),
    ],
)
def test_autoscalers_of_nodes(found: str, has_adjuster: bool, want: list[tuple[str, str]]) -> None:
    findings = judge_autoscaler(found, has_adjuster=has_adjuster)
    assert [one.state for one in findings] == [state for state, _ in want]
    assert all(one.found.startswith(text) for one, (_, text) in zip(findings, want, strict=True))
