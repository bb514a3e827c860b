"""Errors of the server name the flags of the command that was used."""

import pytest

from fairlead.cli.flags import parse
from fairlead.cli.workloads.run import commands
from fairlead.cli.workloads.spec_flags import load_table
from fairlead.cli.workloads.submit_flags import name_flags
from fairlead.client import Issue, ServerError


@pytest.mark.parametrize(
    ("kind", "given", "issue", "want"),
    [
        pytest.param(
            "training",
            {"cpu-memory-request"},
            ("spec.compute.cpuMemoryLimit", "is 1M, below cpuMemoryRequest, which is 2M"),
            ("--cpu-memory-limit", "is 1M, below --cpu-memory-request, which is 2M"),
            id="a sibling in the text",
        ),
        pytest.param(
            "training",
            {"gpu"},
            ("spec.compute.gpuDevicesRequest", "is -1"),
            ("--gpu", "is -1"),
            id="the alias that was used",
        ),
        pytest.param(
            "training",
            parse(["--memory", "4Q"], commands("run")[0].flags).typed(),
            ("spec.compute.cpuMemoryRequest", "'4Q' is not a quantity"),
            ("--memory", "'4Q' is not a quantity"),
            id="the other name that was typed",
        ),
        pytest.param(
            "training",
            (),
            ("name", "a workload named a already exists; choose another name or send useGivenNameAsPrefix"),
            ("name", "a workload named a already exists; choose another name"),
            id="advice for requests",
        ),
        pytest.param("training", {"name"}, ("name", "is 'A_b'"), ("--name", "is 'A_b'"), id="the flag of the name"),
        pytest.param("training", {"name-prefix"}, ("name", "is ''"), ("--name-prefix", "is ''"), id="of its prefix"),
        pytest.param(
            "training",
            {"new-pvc"},
            ("spec.storage.pvc[1].claimInfo.size", "is missing; a new claim must have a size (or set existingPvc)"),
            ("--new-pvc size", "is missing; a new claim must have a size (or set --existing-pvc)"),
            id="a part of an item",
        ),
        pytest.param(
            "training",
            {"existing-pvc"},
            ("spec.storage.pvc[0].path", "is '0'; claimName is not"),
            ("--existing-pvc path", "is '0'; claimname is not"),
            id="another part of the same flag",
        ),
        pytest.param(
            "training",
            {"node-affinity"},
            ("spec.nodeAffinityRequired.nodeSelectorTerms[0].matchExpressions[2].values", "is empty"),
            ("--node-affinity values", "is empty"),
            id="an item that is only a list",
        ),
        pytest.param(
            "training",
            {"env-secret"},
            ("spec.environmentVariables[0].secret.key", "is empty"),
            ("--env-secret", "is empty"),
            id="a pair",
        ),
        pytest.param(
            "training",
            {"after"},
            ("spec.annotations", "fairlead/after: project vision has no workload x"),
            ("--after", "project vision has no workload x"),
            id="an annotation that a flag sets",
        ),
        pytest.param("training", (), ("spec.args", "is odd"), ("the words after --", "is odd"), id="the words"),
        pytest.param("training", (), ("projectId", "is odd"), ("--project", "is odd"), id="outside the spec"),
        pytest.param("training", (), ("name", "is taken"), ("name", "is taken"), id="no flag"),
        pytest.param(
            "distributed-training",
            (),
            ("masterSpec.compute.cpuCoreLimit", "is 1, below cpuCoreRequest, which is 2"),
            ("--master-cpu-core-limit", "is 1, below --master-cpu-core-request, which is 2"),
            id="of a role",
        ),
    ],
)
def test_flags_instead_of_members(kind: str, given: set[str], issue: tuple[str, str], want: tuple[str, str]) -> None:
    error = ServerError(400, "headline", "", (Issue(*issue),))
    [named] = name_flags(error, load_table(kind), given).issues
    assert (named.field, named.details) == want


def test_flags_in_an_answer_without_a_list_of_issues() -> None:
    error = ServerError(400, "headline", "spec.leader.image: is missing; spec.worker.compute.cpuCoreLimit: is 1")
    named = name_flags(error, load_table("distributed-inference"), ())
    assert named.details == "--image: is missing; --worker-cpu-core-limit: is 1"
