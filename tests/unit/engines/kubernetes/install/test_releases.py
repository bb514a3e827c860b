"""Versions of what Fairlead needs in a cluster: what the doctor says, and that the docs say the same."""

import re
from pathlib import Path

import pytest

from fairlead.engines.kubernetes.install.releases import (
    PREREQUISITES,
    Prerequisite,
    judge_release,
    render_version,
)

ROOT = Path(__file__).parents[5]
KAI, LWS = PREREQUISITES


@pytest.mark.parametrize(
    ("images", "want"),
    [
        (["ghcr.io/nvidia/kai-scheduler/binder:v0.12.0"], [("ok", "0.12.0, which is tested")]),
        (["mirror.example:5000/kai-scheduler/scheduler:v0.12.9@sha256:1f"], [("ok", "0.12.9, which is tested")]),
        (
            ["x/kai-scheduler/a:v0.11.2", "x/kai-scheduler/b:v0.12.0"],
            [("missing", "0.11.2, 0.12.0 is older than 0.12.0")],
        ),
        (["x/kai-scheduler/a:v0.14.1"], [("note", "Fairlead was not tested with 0.14.1")]),
        (["x/kai-scheduler/a:latest", "x/kai-scheduler/a@sha256:1f", "proxy:v1.2.3"], []),
    ],
    ids=["tested", "a later patch", "too old", "newer", "unknown"],
)
def test_versions_of_kai(images: list[str], want: list[tuple[str, str]]) -> None:
    assert [(one.state, one.found) for one in judge_release(KAI, images)] == want


def test_versions_of_leader_worker_set() -> None:
    assert [one.state for one in judge_release(LWS, ["registry.k8s.io/lws/lws:v0.7.0"])] == ["ok"]
    assert [one.state for one in judge_release(LWS, ["registry.k8s.io/lws/lws:v0.9.0"])] == ["ok"]
    assert [one.state for one in judge_release(LWS, ["registry.k8s.io/lws/lws:v0.8.0"])] == ["note"]
    assert [one.state for one in judge_release(LWS, ["registry.k8s.io/lws/lws:v0.10.0"])] == ["note"]


@pytest.mark.parametrize(
    ("wanted", "module"),
    [(KAI, "github.com/NVIDIA/KAI-scheduler"), (LWS, "sigs.k8s.io/lws")],
    ids=[one.name for one in PREREQUISITES],
)
def test_the_docs_and_the_development_cluster_have_the_tested_versions(wanted: Prerequisite, module: str) -> None:
    tested = [render_version(one) for one in wanted.tested]
    required = [path.read_text() for path in (ROOT / "deploy" / "cluster" / "go").glob("*/go.mod")]
    built = {version for text in required for version in re.findall(rf"^.*{re.escape(module)} v([\d.]+)", text, re.M)}
    assert built == set(tested)
    row = next(
        line for line in (ROOT / "docs" / "kubernetes.md").read_text().splitlines() if f"| {wanted.name} |" in line
    )
    assert row.split("|")[2:4] == [f" {render_version(wanted.oldest)} ", f" {', '.join(tested)} "]
