"""What pods carry for autoscalers of nodes, and that objects of an earlier version stay as they are."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices, RenderContext
from fairlead.engines.kubernetes.render.organization import find_pool_selectors
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.kinds import KINDS
from fairlead.model.records.organization import NodePool
from fairlead.model.spec.fields import build
from tests.unit.engines.golden_place import GOLDEN_PLACE

KEPT = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def place(*selectors: str, is_preemptible: bool = True) -> RenderContext:
    launch = LaunchChoices(pool_selectors=selectors)
    return msgspec.structs.replace(GOLDEN_PLACE, launch=launch, is_preemptible=is_preemptible)


def render(kind: str, context: RenderContext, **spec: Any) -> dict[str, Any]:
    """The first controller."""
    podsets = KINDS[kind].podsets(build(KINDS[kind].spec, {"image": "i", **spec}))
    runner: dict[str, Any] = render_objects(context, podsets).runners[0]
    return runner


def annotations(runner: dict[str, Any]) -> dict[str, str]:
    return dict(runner["spec"]["template"]["metadata"].get("annotations", {}))


def terms(runner: dict[str, Any]) -> list[list[dict[str, Any]]]:
    affinity = runner["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
    found = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return [term["matchExpressions"] for term in found]


def within(selector: str) -> dict[str, Any]:
    key, value = selector.split("=")
    return {"key": key, "operator": "In", "values": [value]}


@pytest.mark.parametrize(
    ("kind", "is_preemptible", "want"),
    [
        pytest.param("training", True, KEPT, id="work that ends and may be preempted"),
        pytest.param("training", False, KEPT, id="work that ends"),
        pytest.param("workspace", False, KEPT, id="a session that may not be preempted"),
        pytest.param("inference-service", False, KEPT, id="a service that may not be preempted"),
        pytest.param("inference-service", True, {}, id="a service that may be moved"),
    ],
)
def test_who_keeps_its_node(kind: str, is_preemptible: bool, want: dict[str, str]) -> None:
    members = {"servingPort": {"container": 80}} if kind == "inference-service" else {}
    runner = render(kind, place(is_preemptible=is_preemptible), **members)
    assert {name: value for name, value in annotations(runner).items() if name in KEPT} == want


def test_the_users_own_annotation_wins() -> None:
    movable = {"name": "karpenter.sh/do-not-disrupt", "value": "false"}
    found = annotations(render("training", place(), annotations=[movable]))
    assert found == KEPT | {"karpenter.sh/do-not-disrupt": "false"}


def test_pods_ask_for_nodes_of_their_pools() -> None:
    assert terms(render("training", place())) == []
    both = terms(render("training", place("gpu=a100", "gpu=h100")))
    assert both == [[within("gpu=a100")], [within("gpu=h100")]]


def test_every_term_of_the_user_holds_in_every_pool() -> None:
    asked = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}, {"matchExpressions": [ZONE | {"values": ["b"]}]}]}
    found = terms(render("training", place("gpu=a100", "gpu=h100"), nodeAffinityRequired=asked))
    pools = [within("gpu=a100"), within("gpu=h100")]
    assert found == [[ZONE | {"values": [zone]}, pool] for zone in ("a", "b") for pool in pools]


def test_an_empty_term_matches_no_node_in_any_pool() -> None:
    asked = {"nodeSelectorTerms": [{}, {"matchExpressions": [ZONE]}]}
    assert terms(render("training", place("gpu=a100"), nodeAffinityRequired=asked)) == [[ZONE, within("gpu=a100")]]


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(LaunchChoices(pool_selectors=()), id="default pool"),
        pytest.param(LaunchChoices(pool_selectors=("gpu=a100", "gpu=h100")), id="pools"),
        pytest.param(NO_LAUNCH_CHOICES, id="earlier version"),
    ],
)
def test_objects_keep_what_they_were_made_with(launch: LaunchChoices) -> None:
    """Otherwise a server of another version, or a pool of another label, would change running work."""
    before = render("training", msgspec.structs.replace(GOLDEN_PLACE, launch=launch))
    metadata = msgspec.convert(before["metadata"], objects.Metadata)
    assert launch_choices_of(metadata).pool_selectors == launch.pool_selectors
    again = msgspec.structs.replace(GOLDEN_PLACE, launch=launch_choices_of(metadata))
    assert render("training", again)["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param((), (), id="any"),
        pytest.param(("a",), ("gpu=a100",), id="one"),
        pytest.param(("b", "a"), ("gpu=h100", "gpu=a100"), id="in their order"),
        pytest.param(("a", "default"), (), id="the default pool has no label"),
        pytest.param(("a", "later"), (), id="a pool that may come later"),
    ],
)
def test_selectors_of_pools(names: tuple[str, ...], want: tuple[str, ...]) -> None:
    def pool(name: str, value: str = "") -> NodePool:
        members: Any = {"label_key": "gpu", "label_value": value} if value else {}
        return NodePool(id=name, version=1, name=name, cluster_id="c", created_at=0, updated_at=0, **members)

    assert find_pool_selectors([pool("default"), pool("a", "a100"), pool("b", "h100")], names) == want


DECIDING = {"priorityClassName": "very-high", "kai.scheduler/node-pool": "other", "runai-gpu-group": "of-others"}


def test_labels_and_annotations_of_users_change_no_decision() -> None:
    given = [{"name": name, "value": value} for name, value in {**DECIDING, "team": "a"}.items()]
    asked = [{"name": "gpu-fraction", "value": "0.5"}, {"name": "pod-group-name", "value": "x"}]
    runner = render("training", place(), labels=given, annotations=asked)
    labels = runner["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], DECIDING.keys() & labels.keys()) == ("a", set())
    assert not {"gpu-fraction", "pod-group-name"} & annotations(runner).keys()


def test_labels_of_a_users_object_change_no_decision() -> None:
    pod = {"containers": [{"name": "main", "image": "i"}]}
    metadata = {"labels": {**DECIDING, "team": "a"}, "annotations": {"fairlead/applied": "x", "note": "n"}}
    body = {"apiVersion": "example.com/v1", "kind": "Group", "metadata": metadata, "spec": {"template": {"spec": pod}}}
    podsets = KINDS["training"].podsets(build(KINDS["training"].spec, {"image": "i"}))
    [runner] = render_objects(place(), podsets, msgspec.json.encode(body)).runners
    assert (runner["metadata"]["labels"]["team"], runner["metadata"]["annotations"]["note"]) == ("a", "n")
    assert not DECIDING.keys() & runner["metadata"]["labels"].keys()
    assert "fairlead/applied" not in runner["metadata"]["annotations"]
