"""The node types that a project allows hold for workloads that name none."""

from typing import Any

import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.snapshot import render_jobs
from fairlead.kinds import KINDS
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import build
from fairlead.scheduling.model.snapshot import Requirement
from tests import builders

TYPED = Requirement(key="run.ai/type", operator="In", values=("a100", "h100"))
OTHER = Requirement(key="zone", operator="Exists")


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, ((TYPED,),), id="none of its own"),
        pytest.param({"nodeType": "a100"}, (), id="its own"),
        pytest.param(
            {
                "nodeAffinityRequired": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                }
            },
            ((OTHER, TYPED),),
            id="beside its affinity",
        ),
        pytest.param(
            {
                "nodeAffinityRequired": {
                    "nodeSelectorTerms": [{}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                }
            },
            ((OTHER, TYPED),),
            id="beside an empty term, which matches no node",
        ),
    ],
)
def test_where_a_workload_of_such_a_project_may_run(spec: dict[str, Any], want: Any) -> None:
    kind = KINDS["training"]
    workload = builders.workload(node_types=("a100", "h100"), phase=Phase.PENDING)
    entry = WorkloadEntry(workload=workload, podsets=kind.podsets(build(kind.spec, {"image": "x", **spec})), pods=())
    [job] = render_jobs(entry, "", 0)
    assert job.tasks[0].node_affinity == want
