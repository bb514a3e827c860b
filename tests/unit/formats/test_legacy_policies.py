"""Policies in the older form: what they become, what is lost, and which mistakes are told with their paths."""

from typing import Any

import pytest

from fairlead.formats.legacy_policies import LEGACY_KINDS, is_legacy, read_legacy_policy
from fairlead.model.errors import Invalid


def document(spec: dict[str, Any], kind: str = "TrainingPolicy", namespace: str = "runai-vision") -> dict[str, Any]:
    metadata = {"name": "old", "namespace": namespace}
    return {"apiVersion": "run.ai/v2alpha1", "kind": kind, "metadata": metadata, "spec": spec}


SCALARS = [
    ("image", {"value": "a", "rules": {"required": True}}, {"image": "a"}, {"image": {"required": True}}),
    (
        "cpu",
        {"value": "0.5", "rules": {"min": "0.1", "max": 8}},
        {"compute": {"cpuCoreRequest": 0.5}},
        {"compute": {"cpuCoreRequest": {"min": 0.1, "max": 8}}},
    ),
    (
        "memory",
        {"rules": {"min": "100M", "max": "10G"}},
        {},
        {"compute": {"cpuMemoryRequest": {"min": "100M", "max": "10G"}}},
    ),
    (
        "runAsUid",
        {"value": 500, "rules": {"canEdit": False}},
        {"security": {"runAsUid": 500}},
        {"security": {"runAsUid": {"canEdit": False}}},
    ),
    (
        "imagePullPolicy",
        {"rules": {"options": [{"value": "Always", "displayed": "always"}]}},
        {},
        {"imagePullPolicy": {"options": [{"value": "Always", "displayed": "always"}]}},
    ),
]


@pytest.mark.parametrize(("name", "given", "want_defaults", "want_rules"), SCALARS, ids=[row[0] for row in SCALARS])
def test_scalars(name: str, given: Any, want_defaults: Any, want_rules: Any) -> None:
    policy = read_legacy_policy(document({name: given}))
    assert (policy.defaults, policy.rules, policy.losses) == (want_defaults, want_rules, ())
    assert (policy.type.key, policy.name, policy.project) == ("training", "old", "vision")


def test_items_become_instances_and_attributes() -> None:
    volumes = {
        "rules": {"canAdd": False},
        "itemRules": {"path": {"options": [{"value": "/data"}]}},
        "items": {
            "DEFAULTS": {"value": {"readOnly": True}},
            "data": {"value": {"path": "/data", "mountPath": "/d"}, "rules": {"canRemove": False, "canEdit": False}},
        },
    }
    policy = read_legacy_policy(document({"volumes": volumes}))
    instance = {"name": "data", "path": "/data", "mountPath": "/d"}
    assert policy.defaults == {"storage": {"hostPath": {"instances": [instance], "attributes": {"readOnly": True}}}}
    rules = {
        "instances": {"canAdd": False, "locked": ["data"]},
        "attributes": {"path": {"options": [{"value": "/data"}]}},
    }
    assert policy.rules == {"storage": {"hostPath": rules}}
    assert policy.losses == ()


LOSSES = [
    ("whole GPUs", {"gpu": {"rules": {"max": "4"}}}, "spec.gpu.rules", {"compute": {"gpuDevicesRequest": {"max": 4}}}),
    (
        "portions",
        {"gpu": {"rules": {"max": "0.5"}}},
        "spec.gpu.rules",
        {"compute": {"gpuPortionRequest": {"max": 0.5}}},
    ),
    (
        "half a lock",
        {"environment": {"items": {"A": {"value": "1", "rules": {"canRemove": False}}}}},
        "spec.environment.items.A.rules",
        {"environmentVariables": {"instances": {"locked": ["A"]}}},
    ),
    ("a rule for a list", {"ports": {"rules": {"required": True}}}, "spec.ports.rules.required", {}),
    ("no field of its own", {"nodePool": {"rules": {"required": True}}}, "spec.nodePool.rules", {}),
]


@pytest.mark.parametrize(
    ("spec", "want_path", "want_rules"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES]
)
def test_what_is_lost_is_listed(spec: Any, want_path: str, want_rules: Any) -> None:
    policy = read_legacy_policy(document(spec))
    assert [loss.path for loss in policy.losses] == [want_path]
    assert policy.rules == want_rules


def test_every_kind_and_the_global_namespace() -> None:
    found = {kind: read_legacy_policy(document({"image": {"value": "x"}}, kind, "runai")) for kind in LEGACY_KINDS}
    assert {kind: policy.type.key for kind, policy in found.items()} == {
        "TrainingPolicy": "training",
        "InteractivePolicy": "workspace",
        "DistributedPolicy": "distributed",
        "InferencePolicy": "inference",
    }
    assert {policy.project for policy in found.values()} == {""}
    assert all(any(loss.path == "metadata.namespace" for loss in policy.losses) for policy in found.values())
    assert found["DistributedPolicy"].defaults == {"worker": {"image": "x"}}


def test_a_policy_presets_only_what_it_gives() -> None:
    """A document of an inference without a scale has the scale 1."""
    ruled = read_legacy_policy(document({"maxScale": {"rules": {"max": 4}}}, "InferencePolicy"))
    assert (ruled.defaults, ruled.rules) == ({}, {"autoscaling": {"maxReplicas": {"max": 4}}})
    preset = read_legacy_policy(document({"maxScale": {"value": 1}}, "InferencePolicy"))
    assert preset.defaults == {"autoscaling": {"maxReplicas": 1}}


MISTAKES = [
    ("unknown field", {"imag": {"value": "x"}}, "spec.imag"),
    ("wrong type", {"backoffLimit": {"value": "many"}}, "spec.backoffLimit"),
    ("a rule that does not fit", {"image": {"rules": {"min": 1}}}, "policy.rules.image.min"),
    ("unknown member", {"image": {"valu": "x"}}, "spec.image.valu"),
    ("no object", {"image": "x"}, "spec.image"),
]


@pytest.mark.parametrize(("spec", "want_path"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_mistakes_are_reported_with_their_paths(spec: Any, want_path: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_legacy_policy(document(spec))
    assert [issue.field for issue in caught.value.issues] == [want_path]


def test_other_documents_are_not_policies() -> None:
    assert not is_legacy({"kind": "TrainingWorkload"})
    assert not is_legacy(None)


def test_an_item_has_the_attributes_of_all_items_before_those_of_the_format() -> None:
    items = {"DEFAULTS": {"value": {"serviceType": "NodePort"}}, "web": {"value": {"container": 80}}}
    policy = read_legacy_policy(document({"ports": {"items": items}}, "InteractivePolicy"))
    web = {"name": "web", "container": 80}
    assert policy.defaults == {"ports": {"instances": [web], "attributes": {"serviceType": "NodePort"}}}
