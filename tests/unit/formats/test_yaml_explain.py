"""Explanations and custom resource definitions from the declarations: every documented field, in our own words."""

import json
from typing import Any

import pytest

from fairlead.formats.crd import render_crd
from fairlead.formats.explain import Unknown, explain, render_text
from fairlead.formats.yaml_fields import yaml_fields
from fairlead.kinds import KINDS

TRAINING = KINDS["training"]
#: Every field that the TrainingWorkload explain page lists.
LISTED = [
    "active",
    "allowPrivilegeEscalation",
    "annotations",
    "arguments",
    "autoDeletionTimeAfterCompletionSeconds",
    "backoffLimit",
    "baseWorkload",
    "capabilities",
    "command",
    "completions",
    "cpu",
    "cpuLimit",
    "createHomeDir",
    "environment",
    "exposedUrls",
    "extendedResources",
    "gitSync",
    "gpu",
    "gpuLimit",
    "gpuMemory",
    "hostIpc",
    "hostNetwork",
    "image",
    "imagePullPolicy",
    "ingressUrl",
    "labels",
    "largeShm",
    "memory",
    "memoryLimit",
    "migProfile",
    "mountPropagation",
    "mpi",
    "name",
    "namePrefix",
    "nfs",
    "nodePool",
    "nodePools",
    "nodeType",
    "parallelism",
    "podAffinity",
    "podAffinitySchedulingRule",
    "podAffinityTopology",
    "ports",
    "preemptionLimit",
    "processes",
    "pvcs",
    "runAsGid",
    "runAsNonRoot",
    "runAsUid",
    "runAsUser",
    "s3",
    "seccompProfileType",
    "serviceType",
    "slotsPerWorker",
    "stdin",
    "supplementalGroups",
    "terminateAfterPreemption",
    "tolerations",
    "tty",
    "usage",
    "userId",
    "username",
    "volumes",
    "workingDir",
]
SCHEMA: dict[str, Any] = render_crd(TRAINING)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_field_is_explained(name: str) -> None:
    found = explain(f"trainingworkload.spec.{name}")
    assert found.description
    assert found.example.startswith(f"{name}:")
    assert name in [listed for listed, _, _ in explain("TrainingWorkload.spec").fields]
    assert f"FIELD: spec.{name}" in render_text(found)
    assert SCHEMA["properties"]["spec"]["properties"][name]["description"]


@pytest.mark.parametrize(
    ("asked", "want_type", "want_rest", "want_flag"),
    [
        pytest.param("training.spec.cpu", "number", "spec.compute.cpuCoreRequest", "--cpu-core-request", id="field"),
        pytest.param("trainings.cpu", "number", "spec.compute.cpuCoreRequest", "--cpu-core-request", id="without spec"),
        pytest.param("training.spec.pvcs", "items", "spec.storage.pvc", "--existing-pvc", id="items"),
        pytest.param(
            "training.spec.pvcs.size", "quantity", "spec.storage.pvc[].claimInfo.size", "--new-pvc size", id="member"
        ),
        pytest.param(
            "training.spec.pvcs.items.value.path", "string", "spec.storage.pvc[].path", "--existing-pvc", id="deep"
        ),
        pytest.param("training.spec.restartPolicy", "string", "spec.restartPolicy", "--restart-policy", id="REST only"),
        pytest.param("training.spec.podAffinity.key", "string", "spec.podAffinity.key", "--required", id="REST path"),
    ],
)
def test_explanations(asked: str, want_type: str, want_rest: str, want_flag: str) -> None:
    found = explain(asked)
    assert (found.type, found.rest) == (want_type, want_rest)
    assert want_flag in "; ".join(found.flags)


@pytest.mark.parametrize(
    ("asked", "want_words"),
    [
        pytest.param("trainingworklod", "did you mean trainingworkload?", id="kind"),
        pytest.param("training.spec.imag", "did you mean image?", id="field"),
        pytest.param("training.spec.pvcs.siez", "did you mean size?", id="member"),
    ],
)
def test_unknown_names(asked: str, want_words: str) -> None:
    with pytest.raises(Unknown, match=want_words.replace("?", r"\?")):
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
        assert "type" in schema or schema.get("x-kubernetes-int-or-string"), path
    assert "default" not in json.dumps(list(SCHEMA["properties"]["spec"]["properties"])).lower()


def test_definition_has_the_kinds_fields_alone() -> None:
    properties = set(SCHEMA["properties"]["spec"]["properties"])
    own = [field for field in yaml_fields(TRAINING).values() if TRAINING.letter in field.kinds]
    spelt = {name for field in own for name in (field.name, *field.also)}
    assert properties == spelt


def test_defaults_stand_in_descriptions() -> None:
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
    assert len(rules) >= 9
