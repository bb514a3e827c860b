"""What a project inherits, what is wrong with a quota, and under which terms a workload is taken in: tables."""

from typing import Any, NamedTuple

import msgspec
import pytest

from fairlead.admission.admit import Admitted
from fairlead.admission.project_rules import (
    allowed_node_types,
    apply_project_rules,
    effective_node_pools,
    effective_rules,
    has_project_rules,
    idle_limit,
    rule_issues,
    time_limit,
)
from fairlead.control.organization.inputs import OwnerInput, PoolQuotaInput, QuotaInput, apply_resource_inputs
from fairlead.control.organization.owners import name_issues
from fairlead.kinds import KINDS
from fairlead.kinds.kind import read_stored_spec
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.organization import RANKS, Department, NodePool, PoolQuota, Project, Quota

TIME, IDLE = "trainingJobTimeLimitSeconds", "trainingJobMaxIdleDurationSeconds"
KIND = next(iter(KINDS.values()))


def department(**members: Any) -> Department:
    given: dict[str, Any] = {"id": "1", "version": 1, "name": "research", "cluster_id": "c", "created_at": 0}
    return Department(**(given | {"updated_at": 0, "created_by": "x", "updated_by": "x"} | members))


def project(**members: Any) -> Project:
    given: dict[str, Any] = {"id": "2", "version": 1, "name": "vision", "cluster_id": "c", "created_at": 0}
    given |= {"updated_at": 0, "created_by": "x", "updated_by": "x", "department_id": "1", "department_name": "r"}
    return Project(**(given | members))


def pool(id: str, name: str) -> NodePool:
    return NodePool(id=id, version=1, name=name, cluster_id="c", created_at=0, updated_at=0)


POOLS = {"1": pool("1", "default"), "2": pool("2", "gold")}


@pytest.mark.parametrize(
    ("own", "above", "want"),
    [
        pytest.param({}, {}, {}, id="none"),
        pytest.param({}, {TIME: 60}, {TIME: 60}, id="inherited"),
        pytest.param({TIME: 30}, {TIME: 60}, {TIME: 30}, id="narrowed"),
        pytest.param({TIME: 90}, {TIME: 60}, {TIME: 60}, id="a department that became stricter"),
        pytest.param({TIME: None}, {TIME: 60}, {TIME: 60}, id="not lifted"),
        pytest.param({IDLE: 5}, {TIME: 60}, {TIME: 60, IDLE: 5}, id="joined"),
    ],
)
def test_effective_rules(own: dict[str, int | None], above: dict[str, int | None], want: dict[str, int]) -> None:
    assert effective_rules(project(scheduling_rules=own), department(scheduling_rules=above)) == want


@pytest.mark.parametrize(
    ("own", "above", "want"),
    [
        pytest.param({TIME: 60}, {TIME: 60}, [], id="as strict"),
        pytest.param({TIME: 61}, {TIME: 60}, [f"rules.{TIME}"], id="looser"),
        pytest.param({TIME: 60, IDLE: 60}, {}, [f"rules.{IDLE}"], id="idle as long as the whole time"),
        pytest.param({IDLE: 60}, {TIME: 50}, [f"rules.{IDLE}"], id="idle against the department's time"),
        pytest.param({IDLE: 60}, {}, [], id="idle alone"),
    ],
)
def test_rule_issues(own: dict[str, int | None], above: dict[str, int | None], want: list[str]) -> None:
    assert [issue.field for issue in rule_issues(own, above, "rules")] == want


def test_pools_and_node_types_are_inherited() -> None:
    above = department(default_node_pools=("gold",), node_types={"training": ["a100"], "names": {"a100": "A100"}})
    assert effective_node_pools(project(), above) == ("gold",)
    assert effective_node_pools(project(default_node_pools=("default",)), above) == ("default",)
    assert allowed_node_types(project(), above, "Train") == ("a100",)
    assert allowed_node_types(project(), above, "Build") == ()
    assert allowed_node_types(project(), above, "Deploy") == ("a100",)


@pytest.mark.parametrize(
    ("category", "preemptible", "want_time", "want_idle"),
    [
        ("Train", True, 10, (IDLE, 5)),
        ("Build", True, 20, ("interactiveJobPreemptIdleDurationSeconds", 7)),
        ("Build", False, 20, ("interactiveJobMaxIdleDurationSeconds", 6)),
        ("Deploy", False, None, None),
    ],
)
def test_limits_by_category(category: str, preemptible: bool, want_time: int | None, want_idle: Any) -> None:
    rules = {
        TIME: 10,
        IDLE: 5,
        "interactiveJobTimeLimitSeconds": 20,
        "interactiveJobMaxIdleDurationSeconds": 6,
        "interactiveJobPreemptIdleDurationSeconds": 7,
    }
    assert time_limit(rules, category) == want_time
    assert idle_limit(rules, category, preemptible=preemptible) == want_idle


ADMITTED = Admitted(priority_class="low", priority=25, preemptible=True, category="Train", node_pools=(), framework="")


def spec(**members: Any) -> Any:
    return read_stored_spec(KIND, msgspec.json.encode({"image": "python:3"} | members))


@pytest.mark.parametrize(
    ("compute", "measures_gpus", "want_limit", "want_words"),
    [
        pytest.param({"gpuDevicesRequest": 2}, True, 5000, [], id="whole GPUs"),
        pytest.param({"gpuDevicesRequest": 2}, False, None, ["utilization is not"], id="not measured"),
        pytest.param(
            {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5},
            True,
            None,
            ["utilization of parts of GPUs is not"],
            id="a part of a GPU",
        ),
        pytest.param({}, True, None, [], id="no GPU"),
    ],
)
def test_limits_on_idle_gpus(
    compute: dict[str, Any], measures_gpus: bool, want_limit: int | None, want_words: list[str]
) -> None:
    team = project(scheduling_rules={IDLE: 5})
    found = apply_project_rules(team, None, KIND, spec(compute=compute), ADMITTED, measures_gpus=measures_gpus)
    assert found.idle_limit == want_limit
    messages = [condition.message for condition in found.conditions]
    assert len(messages) == len(want_words)
    assert all(words in message for words, message in zip(want_words, messages, strict=True))


def test_terms_of_a_project() -> None:
    team = project(default_node_pools=("gold",), scheduling_rules={TIME: 60, IDLE: 5})
    admitted = ADMITTED
    gpus = apply_project_rules(team, None, KIND, spec(compute={"gpuDevicesRequest": 1}), admitted)
    assert (gpus.node_pools, gpus.time_limit) == (("gold",), 60_000)
    assert [condition.reason for condition in gpus.conditions] == [IDLE]
    assert not apply_project_rules(team, None, KIND, spec(), admitted).conditions, "idle GPUs need GPUs"
    assert gpus.idle_limit is None
    in_default = msgspec.structs.replace(admitted, node_pools=("default",))
    assert apply_project_rules(team, None, KIND, spec(), in_default).node_pools == ("default",)
    assert has_project_rules(team, None)
    assert has_project_rules(project(), department(node_types={"training": ["a100"]}))
    assert not has_project_rules(project(), department())


def test_a_node_type_must_be_allowed() -> None:
    team = project(node_types={"training": ["a100"]})
    admitted = ADMITTED
    apply_project_rules(team, None, KIND, spec(nodeType="a100"), admitted)
    with pytest.raises(Invalid) as caught:
        apply_project_rules(team, None, KIND, spec(nodeType="t4"), admitted)
    assert [issue.field for issue in caught.value.issues] == ["spec.nodeType"]


@pytest.mark.parametrize(
    ("kind", "members", "want"),
    [
        ("distributed-inference", {"leader": {"nodeType": "t4"}}, ["spec.leader.nodeType"]),
        (
            "distributed-inference",
            {"leader": {"nodeType": "t4"}, "worker": {"nodeType": "v100"}},
            ["spec.leader.nodeType", "spec.worker.nodeType"],
        ),
        (
            "distributed-training",
            {"nodeType": "t4", "masterSpec": {"nodeType": "t4"}},
            ["spec.nodeType", "masterSpec.nodeType"],
        ),
    ],
)
def test_node_types_of_roles_must_be_allowed(kind: str, members: dict[str, Any], want: list[str]) -> None:
    team = project(node_types={"training": ["a100"]})
    given = read_stored_spec(KINDS[kind], msgspec.json.encode(members))
    with pytest.raises(Invalid) as caught:
        apply_project_rules(team, None, KINDS[kind], given, ADMITTED)
    assert [issue.field for issue in caught.value.issues] == want


def test_a_workload_without_a_node_type_is_confined_to_those_of_its_project() -> None:
    team = project(node_types={"training": ["a100", "h100"], "workspace": ["t4"]})
    assert apply_project_rules(team, None, KIND, spec(), ADMITTED).node_types == ("a100", "h100")
    workspace = apply_project_rules(team, None, KINDS["workspace"], spec(), ADMITTED)
    assert workspace.node_types == ("t4",)
    assert apply_project_rules(project(), None, KIND, spec(), ADMITTED).node_types == ()


class Wish(NamedTuple):
    name: str
    input: PoolQuotaInput
    want: Quota | None = None
    want_issues: tuple[str, ...] = ()


WISHES = [
    Wish("nothing said", PoolQuotaInput(path="r"), Quota(deserved=0, limit=None, over_quota_weight=2)),
    Wish("unlimited GPUs are -1", PoolQuotaInput(path="r", gpu=QuotaInput(deserved=-1)), Quota(deserved=None)),
    Wish("a fraction", PoolQuotaInput(path="r", gpu=QuotaInput(deserved=1.5, limit=2)), Quota(deserved=1.5, limit=2)),
    Wish("weight zero", PoolQuotaInput(path="r", gpu=QuotaInput(over_quota_weight=0)), Quota(over_quota_weight=0)),
    Wish("null weight is the usual", PoolQuotaInput(path="r", gpu=QuotaInput(over_quota_weight=None)), Quota()),
    Wish("limit below quota", PoolQuotaInput(path="r", gpu=QuotaInput(deserved=2, limit=1)), None, ("r.gpu.limit",)),
    Wish("negative", PoolQuotaInput(path="r", gpu=QuotaInput(deserved=-3)), None, ("r.gpu.deserved",)),
    Wish("unknown rank", PoolQuotaInput(path="r", priority="Top"), None, ("r.priority",)),
    Wish("unknown pool", PoolQuotaInput(path="r", node_pool_id="9"), None, ("r.nodePool.id",)),
    Wish(
        "another pool's name",
        PoolQuotaInput(path="r", node_pool_id="1", node_pool_name="gold"),
        None,
        ("r.nodePool.name",),
    ),
]


@pytest.mark.parametrize("case", WISHES, ids=lambda case: case.name)
def test_wishes_for_a_pool(case: Wish) -> None:
    issues: list[ComplianceIssue] = []
    settled = apply_resource_inputs(OwnerInput(resources=(case.input,)), None, POOLS, tuple(RANKS), issues)
    assert tuple(issue.field for issue in issues) == case.want_issues
    if case.want is not None:
        assert settled[0].gpu == case.want


def test_a_merge_keeps_what_is_not_named() -> None:
    kept = PoolQuota(node_pool_id="2", node_pool_name="gold", gpu=Quota(deserved=3), priority="High")
    before = project(resources=(kept,))
    input = (PoolQuotaInput(path="r", node_pool_id="2", cpu=None),)
    merged = apply_resource_inputs(OwnerInput(resources=input, is_merge=True), before, POOLS, tuple(RANKS), [])
    assert [quota.gpu.deserved for quota in merged] == [0, 3]
    assert merged[1].priority == "High"
    replaced = apply_resource_inputs(OwnerInput(resources=input), before, POOLS, tuple(RANKS), [])
    assert [quota.gpu.deserved for quota in replaced] == [0, 0]
    assert replaced[1].priority == "MediumLow"


@pytest.mark.parametrize(
    ("name", "want"),
    [("vision", 0), ("a", 0), ("a1-b", 0), ("", 1), ("1a", 1), ("a-", 1), ("a_b", 1), ("A", 1), ("a" * 64, 1)],
)
def test_names(name: str, want: int) -> None:
    assert len(name_issues(name)) == want
