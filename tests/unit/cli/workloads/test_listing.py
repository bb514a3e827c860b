"""The table of workloads: what each has now beside what it requests."""

import io
from typing import Any

import pytest

from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed, parse
from fairlead.cli.terminal.console import Console
from fairlead.cli.workloads.listing import workload_listing
from fairlead.cli.workloads.workload import LIST_FLAGS


def cells(**members: Any) -> dict[str, str]:
    """The row of one workload, by the table's headers."""
    row = {"name": "w", "type": "Training", "projectName": "p", "createdAt": None, "id": "1", **members}
    out = io.StringIO()
    invocation = Invocation(Parsed({}, [], None), CommandEnvironment({}, "/", io.StringIO(), out, io.StringIO()))
    workload_listing().show(Console(invocation), "table", [row], headers=True)
    header, line = out.getvalue().splitlines()
    starts = {title: header.index(title) for title in header.split()}
    ends = [*list(starts.values())[1:], None]
    return {title: line[start:end].strip() for (title, start), end in zip(starts.items(), ends, strict=True)}


def gpus(held: float, requested: float) -> dict[str, Any]:
    return {"allocatedResources": {"gpu": held}, "workloadRequestedResources": {"gpu": {"request": requested}}}


@pytest.mark.parametrize(
    ("members", "want_pods", "want_gpu"),
    [
        pytest.param(
            {"phase": "Pending", "runningPods": 0, "requestedPods": {"number": 2}, **gpus(0, 1.5)},
            "0/2",
            "0/1.5",
            id="pending",
        ),
        pytest.param(
            {"phase": "Running", "runningPods": 2, "requestedPods": {"number": 2, "completions": 6}, **gpus(2, 2)},
            "2/2",
            "2/2",
            id="running",
        ),
        pytest.param(
            {"phase": "Completed", "runningPods": 0, "requestedPods": {"number": 2, "completions": 6}, **gpus(0, 2)},
            "6 done",
            "2",
            id="a completed sweep",
        ),
        pytest.param(
            {"phase": "Failed", "runningPods": 0, "requestedPods": {"number": 2}, **gpus(0, 0)}, "2", "0", id="failed"
        ),
    ],
)
def test_what_it_has_and_what_it_requests(members: dict[str, Any], want_pods: str, want_gpu: str) -> None:
    shown = cells(**members)
    assert (shown["PODS"], shown["GPU"]) == (want_pods, want_gpu)


def test_the_flag_for_all_projects_has_the_name_that_people_try() -> None:
    for word in ("--all-projects", "--all", "-A"):
        assert parse([word], LIST_FLAGS).values == {"all": True}
