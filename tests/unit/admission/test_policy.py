"""One effective policy: all nine rules, defaults, and how items of lists are merged."""

from typing import Any

import pytest

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import Policy
from fairlead.kinds.policies import POLICY_TYPES

TRAININGS = POLICY_TYPES["trainings"]
ENV = "environmentVariables"


def check(sent: dict[str, Any], defaults: dict[str, Any], rules: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    spec, issues = apply_policy(TRAININGS, sent, Policy(defaults=defaults, rules=rules))
    return spec, [(issue.field, issue.rule) for issue in issues]


def compute(**members: Any) -> dict[str, Any]:
    return {"compute": members}


CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], list[Any]]] = [
    ("min", compute(gpuDevicesRequest=2), {}, compute(gpuDevicesRequest={"min": 3}),
     [("compute.gpuDevicesRequest", "min")]),
    ("min kept", compute(gpuDevicesRequest=3), {}, compute(gpuDevicesRequest={"min": 3}), []),
    ("max of a quantity", compute(cpuMemoryRequest="2Gi"), {}, compute(cpuMemoryRequest={"max": "2G"}),
     [("compute.cpuMemoryRequest", "max")]),
    ("max kept by a quantity", compute(cpuMemoryRequest="2G"), {}, compute(cpuMemoryRequest={"max": "2Gi"}), []),
    ("step counts from min", {"backoffLimit": 4}, {}, {"backoffLimit": {"min": 1, "step": 2}},
     [("backoffLimit", "step")]),
    ("step kept", {"backoffLimit": 5}, {}, {"backoffLimit": {"min": 1, "step": 2}}, []),
    ("step of parts", compute(cpuCoreRequest=0.3), {}, compute(cpuCoreRequest={"step": 0.1}), []),
    ("options", {"imagePullPolicy": "Never"}, {}, {"imagePullPolicy": {"options": [{"value": "Always"}]}},
     [("imagePullPolicy", "options")]),
    ("options of each element", {"nodePools": ["a", "b"]}, {}, {"nodePools": {"options": [{"value": "a"}]}},
     [("nodePools", "options")]),
    ("required", {}, {}, {"image": {"required": True}}, [("image", "required")]),
    ("required is met by a default", {}, {"image": "x"}, {"image": {"required": True}}, []),
    ("null is not given", {"image": None}, {}, {"image": {"required": True}}, [("image", "required")]),
    ("canEdit refuses another value", {"security": {"runAsUid": 501}}, {"security": {"runAsUid": 500}},
     {"security": {"runAsUid": {"canEdit": False}}}, [("security.runAsUid", "canEdit")]),
    ("canEdit takes the same value", {"security": {"runAsUid": 500}}, {"security": {"runAsUid": 500}},
     {"security": {"runAsUid": {"canEdit": False}}}, []),
    ("canEdit takes the same quantity", compute(cpuMemoryRequest="1024Mi"), compute(cpuMemoryRequest="1Gi"),
     compute(cpuMemoryRequest={"canEdit": False}), []),
    ("canEdit refuses another quantity", compute(cpuMemoryRequest="1025Mi"), compute(cpuMemoryRequest="1Gi"),
     compute(cpuMemoryRequest={"canEdit": False}), [("compute.cpuMemoryRequest", "canEdit")]),
    ("options take the same quantity", compute(cpuMemoryRequest="1024Mi"), {},
     compute(cpuMemoryRequest={"options": [{"value": "1Gi"}]}), []),
    ("blocked", {"nodeType": "a"}, {}, {"nodeType": {"blocked": True}}, [("nodeType", "blocked")]),
    ("blocked and not given", {}, {}, {"nodeType": {"blocked": True}}, []),
    ("canAdd refuses a new item", {ENV: [{"name": "A", "value": "1"}]}, {}, {ENV: {"instances": {"canAdd": False}}},
     [(f"{ENV}.A", "canAdd")]),
    ("canAdd takes a change of a known item", {ENV: [{"name": "A", "value": "1"}]},
     {ENV: {"instances": [{"name": "A", "value": "0"}]}}, {ENV: {"instances": {"canAdd": False}}}, []),
    ("locked refuses a change", {ENV: [{"name": "A", "value": "1"}]},
     {ENV: {"instances": [{"name": "A", "value": "0"}]}}, {ENV: {"instances": {"locked": ["A"]}}},
     [(f"{ENV}.A", "locked")]),
    ("locked takes the same", {ENV: [{"name": "A", "value": "0"}]},
     {ENV: {"instances": [{"name": "A", "value": "0"}]}}, {ENV: {"instances": {"locked": ["A"]}}}, []),
    ("locked refuses exclusion", {ENV: [{"name": "A", "exclude": True}]},
     {ENV: {"instances": [{"name": "A", "value": "0"}]}}, {ENV: {"instances": {"locked": ["A"]}}},
     [(f"{ENV}.A", "locked")]),
    ("locked refuses a second item of the name", {ENV: [{"name": "A", "value": "0"}, {"name": "A", "value": "1"}]},
     {ENV: {"instances": [{"name": "A", "value": "0"}]}}, {ENV: {"instances": {"locked": ["A"]}}},
     [(f"{ENV}.A", "locked")]),
    ("rules for an attribute under both its names", {"ports": [{"name": "p", "container": 80, "external": 31000}]}, {},
     {"ports": {"attributes": {"customExternalPort": {"canEdit": False}, "external": {"max": 30000}}}},
     [("ports.p.external", "max"), ("ports.p.external", "canEdit")]),
    ("attribute of an item", {"ports": [{"name": "p", "container": 80}]}, {},
     {"ports": {"attributes": {"container": {"min": 1024}}}}, [("ports.p.container", "min")]),
    ("attribute inside an item's object", {"storage": {"pvc": [{"name": "c", "claimInfo": {"size": "2G"}}]}}, {},
     {"storage": {"pvc": {"attributes": {"claimInfo": {"size": {"max": "1G"}}}}}},
     [("storage.pvc.c.claimInfo.size", "max")]),
    ("every violation at once", {"backoffLimit": 9, "nodeType": "a", **compute(cpuCoreRequest=9)}, {},
     {"backoffLimit": {"max": 1}, "nodeType": {"blocked": True}, **compute(cpuCoreRequest={"max": 1})},
     [("compute.cpuCoreRequest", "max"), ("nodeType", "blocked"), ("backoffLimit", "max")]),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "defaults", "rules", "want"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_rule(sent: dict[str, Any], defaults: dict[str, Any], rules: dict[str, Any], want: list[Any]) -> None:
    assert check(sent, defaults, rules)[1] == want


@pytest.mark.parametrize(
    ("sent", "defaults", "rules", "want"),
    [
        pytest.param({"image": "a"}, {"image": "b", "args": "c"}, {}, {"image": "a", "args": "c"}, id="request wins"),
        pytest.param(compute(cpuCoreRequest=2), {}, compute(cpuCoreLimit={"defaultFrom": {"field": "cpuCoreRequest",
                     "factor": 1.5}}), compute(cpuCoreRequest=2, cpuCoreLimit=3.0), id="default from a number"),
        pytest.param(compute(cpuMemoryRequest="1k"), {}, compute(cpuMemoryLimit={"defaultFrom": {"field":
                     "cpuMemoryRequest", "factor": 2}}), compute(cpuMemoryRequest="1k", cpuMemoryLimit="2000"),
                     id="default from a quantity"),
        pytest.param({ENV: [{"name": "B", "value": "2"}]}, {ENV: {"instances": [{"name": "A", "value": "1"}]}}, {},
                     {ENV: [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, id="items are added"),
        pytest.param({ENV: [{"name": "A", "value": "2"}]}, {ENV: {"instances": [{"name": "A", "value": "1"}]}}, {},
                     {ENV: [{"name": "A", "value": "2"}]}, id="an item of the same key is changed"),
        pytest.param({ENV: [{"name": "A", "exclude": True}]}, {ENV: {"instances": [{"name": "A", "value": "1"}]}}, {},
                     {ENV: []}, id="an item is excluded"),
        pytest.param({ENV: [{"name": "A", "exclude": True}, {"name": "A", "value": "2"}]},
                     {ENV: {"instances": [{"name": "A", "value": "1"}]}}, {}, {ENV: [{"name": "A", "value": "2"}]},
                     id="an item is excluded and given anew"),
        pytest.param({ENV: [{"name": "A", "value": "2"}, {"name": "A", "value": "3"}]},
                     {ENV: {"instances": [{"name": "A", "value": "1"}]}}, {},
                     {ENV: [{"name": "A", "value": "2"}, {"name": "A", "value": "3"}]},
                     id="a second item of the name stays, for the kind to refuse it"),
        pytest.param({ENV: [{"name": "Z", "exclude": True}]}, {}, {ENV: {"instances": {"canAdd": True}}}, {ENV: []},
                     id="exclusion of nothing"),
        pytest.param({"ports": [{"name": "a", "container": 1}]},
                     {"ports": {"attributes": {"serviceType": "NodePort", "container": 9}}}, {},
                     {"ports": [{"name": "a", "container": 1, "serviceType": "NodePort"}]}, id="attributes fill in"),
        pytest.param({"ports": [{"name": "a", "container": 1}]},
                     {"ports": {"instances": [{"name": "a", "container": 2, "toolName": "i"}],
                                "attributes": {"toolName": "x", "toolType": "y"}}}, {},
                     {"ports": [{"name": "a", "container": 1, "toolName": "i", "toolType": "y"}]},
                     id="request, then instance, then attribute"),
        pytest.param({"compute": {"extendedResources": [{"resource": "r", "quantity": "2"}]}},
                     {"compute": {"extendedResources": {"instances": [{"resource": "r", "quantity": "1"}]}}}, {},
                     {"compute": {"extendedResources": [{"resource": "r", "quantity": "2"}]}}, id="key is resource"),
    ],
)  # fmt: skip
def test_effective_spec(
    sent: dict[str, Any], defaults: dict[str, Any], rules: dict[str, Any], want: dict[str, Any]
) -> None:
    assert check(sent, defaults, rules) == (want, [])
