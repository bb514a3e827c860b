"""What doctor says of the operators that a cluster has, and of those that it lacks."""

import pytest

from fairlead.engines.kubernetes.doctor import judge_operators, judge_schedulers

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
BOTH = ("KAI tells of preemptions", "Schedulers of pools")


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
