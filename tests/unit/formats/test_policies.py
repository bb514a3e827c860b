"""A policy is checked when it is written: rules and defaults must fit their fields; each violation has its path."""

from typing import Any

import pytest

from fairlead.formats.policies import explain_rules, policy_violations
from fairlead.kinds.policies import POLICY_TYPES

TRAININGS = POLICY_TYPES["trainings"]


def violations(defaults: Any = None, rules: Any = None, type: str = "trainings") -> dict[str, str]:
    return {issue.field: issue.details for issue in policy_violations(POLICY_TYPES[type], defaults, rules)}


GOOD: list[tuple[str, Any, Any]] = [
    ("trainings", None, {"image": {"required": True, "canEdit": False, "options": [{"value": "a", "displayed": "A"}]}}),
    ("trainings", None, {"backoffLimit": {"min": 1, "max": 9, "step": 2}}),
    ("trainings", None, {"compute": {"cpuCoreRequest": {"min": 0.5}, "cpuMemoryRequest": {"max": "8Gi"}}}),
    ("trainings", None, {"compute": {"cpuCoreLimit": {"defaultFrom": {"field": "cpuCoreRequest", "factor": 1.5}}}}),
    ("trainings", None, {"environmentVariables": {"instances": {"canAdd": False, "locked": ["A"]}}}),
    (
        "trainings",
        None,
        {"ports": {"attributes": {"container": {"min": 1024}, "customExternalPort": {"canEdit": False}}}},
    ),
    ("trainings", None, {"imagePullSecrets": {"attributes": {"userCredentials": {"required": True}}}}),
    ("trainings", None, {"nodeAffinityRequired": {"canEdit": False}, "nodePools": {"options": [{"value": "a"}]}}),
    ("trainings", {"image": "a", "compute": {"gpuDevicesRequest": 1}}, None),
    ("trainings", {"ports": {"instances": [{"name": "p", "container": 80}], "attributes": {"toolType": "x"}}}, None),
    ("distributed", {"worker": {"numWorkers": 2}}, {"master": {"image": {"required": True}}}),
    ("distributed-inferences", None, {"leader": {"image": {"required": True}}, "replicas": {"max": 4}}),
    ("nim-services", {"replicas": 2}, {"ngcAuthSecret": {"required": True}, "multiNode": {"workers": {"max": 2}}}),
    ("trainings", None, {"image": {"required": True, "sourceOfRule": {"scope": "tenant"}}}),
]


@pytest.mark.parametrize(("type", "defaults", "rules"), GOOD)
def test_policies_that_fit(type: str, defaults: Any, rules: Any) -> None:
    assert violations(defaults, rules, type) == {}


BAD: list[tuple[str, Any, Any, str, str]] = [
    ("trainings", None, {"imagee": {}}, "policy.rules.imagee", "did you mean image?"),
    ("trainings", None, {"image": {"min": 1}}, "policy.rules.image.min", "does not fit image"),
    ("trainings", None, {"tty": {"options": []}}, "policy.rules.tty.options", "does not fit tty"),
    ("trainings", None, {"backoffLimit": {"min": "1"}}, "policy.rules.backoffLimit.min", "an integer"),
    ("trainings", None, {"backoffLimit": {"min": 5, "max": 1}}, "policy.rules.backoffLimit.min", "above max"),
    ("trainings", None, {"backoffLimit": {"step": 0}}, "policy.rules.backoffLimit.step", "above 0"),
    ("trainings", None, {"compute": {"cpuMemoryRequest": {"max": "lots"}}}, "policy.rules.compute.cpuMemoryRequest.max",
     "a quantity"),
    ("trainings", None, {"compute": {"cpuMemoryRequest": {"step": 1}}}, "policy.rules.compute.cpuMemoryRequest.step",
     "does not fit"),
    ("trainings", None, {"image": {"required": "yes"}}, "policy.rules.image.required", "true or false"),
    ("trainings", None, {"image": {"options": []}}, "policy.rules.image.options", "at least one"),
    ("trainings", None, {"imagePullPolicy": {"options": [{"value": "Sometimes"}]}},
     "policy.rules.imagePullPolicy.options[0].value", "allowed are"),
    ("trainings", None, {"compute": {"cpuCoreLimit": {"defaultFrom": {"field": "cpu"}}}},
     "policy.rules.compute.cpuCoreLimit.defaultFrom.field", "not a field of the same section"),
    ("trainings", None, {"labels": {"attributes": {}}}, "policy.rules.labels.attributes", "does not fit labels"),
    ("trainings", None, {"ports": {"instances": {"locked": "p"}}}, "policy.rules.ports.instances.locked", "keys"),
    ("trainings", None, {"ports": {"canAdd": False}}, "policy.rules.ports.canAdd", "does not fit ports"),
    ("trainings", None, {"image": "x"}, "policy.rules.image", "an object is expected"),
    ("trainings", {"image": 3}, None, "policy.defaults.image", "a text is expected"),
    ("trainings", {"backoffLimit": "3"}, None, "policy.defaults.backoffLimit", "an integer"),
    ("trainings", {"ports": [{"name": "p"}]}, None, "policy.defaults.ports", "an object is expected"),
    ("trainings", {"ports": {"instances": [{"container": 80}]}}, None, "policy.defaults.ports.instances[0].name",
     "names the item"),
    ("trainings", None, {"ports": {"attributes": {"customExternalPort": {"min": 1}}}},
     "policy.rules.ports.attributes.customExternalPort.min", "customExternalPort, which is of type boolean"),
    ("trainings", None, {"exposedUrls": {"attributes": {"customUrl": {"options": [{"value": "a"}]}}}},
     "policy.rules.exposedUrls.attributes.customUrl.options", "of type boolean"),
    ("trainings", None, {"imagePullSecrets": {"attributes": {"userCredentials": {"required": 1}}}},
     "policy.rules.imagePullSecrets.attributes.userCredentials.required", "true or false"),
    ("distributed", None, {"image": {"required": True}}, "policy.rules.image", "is not a known role"),
    ("inferences", None, {"completions": {"max": 3}}, "policy.rules.completions", "is not a known field"),
    ("trainings", 3, None, "policy.defaults", "an object is expected"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "defaults", "rules", "path", "details"), BAD)
def test_policies_that_do_not_fit(type: str, defaults: Any, rules: Any, path: str, details: str) -> None:
    got = violations(defaults, rules, type)
    assert list(got) == [path]
    assert details in got[path]


EXPLAINED = [
    ("trainings", "backoffLimit", "is of type integer: required, canEdit, blocked, min, max, defaultFrom, step."),
    ("trainings", "compute", "is a section"),
    ("trainings", "labels", "is a list of items: instances. Rules for instances are canAdd, locked."),
    ("trainings", "ports.container", "is of type integer"),
    ("trainings", "ports.attributes.container", "is of type integer"),
    ("trainings", "exposedUrls.attributes.customUrl", "is of type boolean"),
    ("trainings", "storage.pvc.attributes.claimInfo.size", "is of type quantity"),
    ("distributed", "worker.numWorkers", "is of type integer"),
]


@pytest.mark.parametrize(("type", "path", "text"), EXPLAINED)
def test_the_rules_that_fit_a_field(type: str, path: str, text: str) -> None:
    assert explain_rules(POLICY_TYPES[type], path).startswith(f"{path} {text}")


UNKNOWN = [
    ("trainings", "compute.cpuMemoryLimt", ("cpuMemoryLimt", "; did you mean cpuMemoryLimit?")),
    ("trainings", "image.x", ("x", "")),
    ("distributed", "image", ("image", "; use one of worker, master")),
]


@pytest.mark.parametrize(("type", "path", "want"), UNKNOWN)
def test_a_field_that_does_not_exist(type: str, path: str, want: tuple[str, str]) -> None:
    with pytest.raises(KeyError) as refused:
        explain_rules(POLICY_TYPES[type], path)
    assert refused.value.args == want
