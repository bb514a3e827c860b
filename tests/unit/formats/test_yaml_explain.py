"""Explanations and custom resource definitions from the declarations: every documented field, in our own words."""

import json
import re
from typing import Any

import pytest

from fairlead.cli.files.explain import Unknown, explain, render_text
from fairlead.formats.crd import render_crd
from fairlead.formats.explain import render_default
from fairlead.formats.yaml.fields import yaml_fields
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import fields_of
from tests.unit.formats.yaml_rows import EVERY

TRAINING = KINDS["training"]
#: Every field that the documents list, with the kinds that have it there.
LISTED = {row.name: row.kinds for row in EVERY}
RESOURCES = {kind.letter: kind for kind in KINDS.values() if kind.letter}
CASES = [(name, letter) for name, letters in LISTED.items() for letter in letters.replace("J", "")]
SCHEMA: dict[str, Any] = render_crd(TRAINING)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(("name", "letter"), CASES, ids=[f"{letter} {name}" for name, letter in CASES])
def test_every_listed_field_is_explained(name: str, letter: str) -> None:
    kind = RESOURCES[letter]
    explanation = explain(f"{kind.resource.lower()}.spec.{name}")
    assert explanation.entry["description"]
    assert explanation.entry["example"].startswith(f"{name}:")
    assert kind.resource in explanation.entry["kinds"]
    assert name in [listed for listed, _, _ in explain(f"{kind.resource}.spec").entry["fields"]]
    assert f"FIELD: spec.{name}" in render_text(explanation)
    schema = render_crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"][name]["description"]


@pytest.mark.parametrize(
    ("asked", "want_type", "want_rest", "want_flag"),
    [
        pytest.param("training.spec.cpu", "number", ["spec.compute.cpuCoreRequest"], "--cpu-core-request", id="field"),
        pytest.param("trainings.cpu", "number", ["spec.compute.cpuCoreRequest"], "--cpu-core-request", id="no spec"),
        pytest.param("training.spec.pvcs", "items", ["spec.storage.pvc"], "--existing-pvc", id="items"),
        pytest.param(
            "training.spec.pvcs.size", "quantity", ["spec.storage.pvc[].claimInfo.size"], "--new-pvc size", id="member"
        ),
        pytest.param(
            "training.spec.pvcs.items.mine.value.path",
            "string",
            ["spec.storage.pvc[].path"],
            "--existing-pvc",
            id="deep",
        ),
        pytest.param("training.spec.restartPolicy", "string", ["spec.restartPolicy"], "--restart-policy", id="REST"),
        pytest.param("training.spec.podAffinity.key", "string", ["spec.podAffinity.key"], "--required", id="REST path"),
        pytest.param(
            "training.spec.gpu",
            "number",
            ["spec.compute.gpuPortionRequest", "spec.compute.gpuDevicesRequest", "spec.compute.gpuRequestType"],
            "--gpu-devices-request",
            id="one field that is several",
        ),
        pytest.param("training.spec.namePrefix", "string", ["name", "useGivenNameAsPrefix"], "", id="beside the spec"),
        pytest.param("distributed.spec.masterSpec.image", "string", ["spec.masterSpec.image"], "--master-", id="role"),
    ],
)
def test_explanations(asked: str, want_type: str, want_rest: list[str], want_flag: str) -> None:
    explanation = explain(asked)
    assert (explanation.entry["type"], explanation.entry["rest"]) == (want_type, want_rest)
    assert want_flag in "; ".join(explanation.entry.get("flags", ()))


def test_engines_are_part_of_it() -> None:
    text = render_text(explain("training.spec.gpu"))
    for words in ("ENGINES:", "spec.compute.gpuDevicesRequest", "local, host:", "local, container:", "Kubernetes:"):
        assert words in text


@pytest.mark.parametrize(
    ("asked", "want_words"),
    [
        pytest.param("trainingworklod", "Did you mean trainingworkload", id="kind"),
        pytest.param("training.spec.imag", "Did you mean image", id="field"),
        pytest.param("training.spec.pvcs.siez", "Did you mean size", id="member"),
    ],
)
def test_unknown_names(asked: str, want_words: str) -> None:
    with pytest.raises(Unknown, match=want_words):
        explain(asked)


def walk(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    found = {path: schema}
    for name, inner in schema.get("properties", {}).items():
        found.update(walk(inner, f"{path}.{name}"))
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict) and "description" not in schema.get(name, {}):
            found.update(walk(schema[name], f"{path}[]"))
    return found


def test_definition_is_structural_and_stores_no_defaults() -> None:
    for path, schema in walk(SCHEMA).items():
        assert "default" not in schema, path
        untyped = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
        assert "type" in schema or any(schema.get(mark) for mark in untyped), path
    assert "default" not in json.dumps(list(SCHEMA["properties"]["spec"]["properties"])).lower()


def test_definition_has_the_kinds_fields_alone() -> None:
    properties = set(SCHEMA["properties"]["spec"]["properties"])
    own = [field for field in yaml_fields(TRAINING).values() if TRAINING.letter in field.kinds]
    spelt = {name for field in own for name in (field.name, *field.also)}
    assert properties == spelt


def test_defaults_are_in_descriptions() -> None:
    fields = SCHEMA["properties"]["spec"]["properties"]
    assert "Default: 6." in fields["backoffLimit"]["description"]
    assert "Default: true." in fields["active"]["description"]


def test_rules_speak_of_fields_that_are_there() -> None:
    spec = SCHEMA["properties"]["spec"]
    rules = [rule["rule"] for rule in spec["x-kubernetes-validations"]]
    words = {
        word.strip("()!").split(".")[1]
        for rule in rules
        for word in rule.split()
        if word.strip("()!").startswith("has")
    } | {part.split(".")[0].strip(")") for rule in rules for part in rule.split("self.")[1:]}
    assert {word.split(")")[0] for word in words if word.isalpha()} <= set(spec["properties"])
    assert len(rules) >= 7


@pytest.mark.parametrize("name", ["gpu", "cpu", "memory", "gpuLimit"])
def test_amounts_are_numbers_or_texts(name: str) -> None:
    """`gpu: {value: 0.5}` and `"0.5"` are both accepted; a pattern counts for texts only, a minimum for numbers."""
    value = SCHEMA["properties"]["spec"]["properties"][name]["properties"]["value"]
    assert value["x-kubernetes-preserve-unknown-fields"] is True
    assert "type" not in value
    assert re.match(value["pattern"], "0.5")
    assert not re.match(value["pattern"], "-1")
    assert value["minimum"] == 0
    assert "as a number or as text" in value["description"]


@pytest.mark.parametrize("name", ["parallelism", "backoffLimit", "runAsUid"])
def test_whole_numbers_are_numbers_or_texts(name: str) -> None:
    value = SCHEMA["properties"]["spec"]["properties"][name]["properties"]["value"]
    assert value["x-kubernetes-int-or-string"] is True
    assert re.match(value["pattern"], "2")
    assert not re.match(value["pattern"], "two")


def test_the_default_of_auto_deletion_says_what_is_true_for_every_way_in() -> None:
    field = next(one for one in fields_of(KINDS["training"].spec) if one.attribute.startswith("auto_deletion"))
    assert "created with kubectl is never deleted" in render_default(field.about)


@pytest.mark.parametrize("spelled", ["PyTorch", "pytorch", "PYTORCH", "pyTorch"])
def test_a_custom_resource_takes_a_choice_in_any_case(spelled: str) -> None:
    assert f'"{spelled}"' in json.dumps(render_crd(KINDS["distributed-training"]))
