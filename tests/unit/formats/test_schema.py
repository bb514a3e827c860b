"""The schemas made from the declarations say of every property of the Trainings contract what the contract says."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from fairlead.formats.schema import schemas, struct_schema
from fairlead.kinds import KINDS
from fairlead.model.fields import Maybe
from fairlead.model.pod_fields import PodFields
from fairlead.model.security import BasicSecurity
from fairlead.model.storage import BasicStorage

CONTRACT = json.loads((Path(__file__).parents[2] / "contract/data/workloads-2.24.contract.json").read_text())
THEIRS: dict[str, Any] = CONTRACT["components"]["schemas"]
KIND = KINDS["training"]
OURS = schemas(KIND)
#: What we have beyond the contract: the older page's MIG profile, and what only workload YAML knows.
BEYOND = {
    "spec.compute.migProfile",
    "spec.security.dropAllCapabilities",
    "spec.preemptionLimit",
    "spec.username",
}
PAIRS = [("TrainingCreationRequest", "TrainingCreationRequest"), ("Training1", "Training")]


def flatten(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """One schema without references and `allOf`, without words, and without what says nothing."""
    merged: dict[str, Any] = {"properties": {}, "required": []}
    for part in schema.get("allOf", ()):
        inner = flatten(part, components)
        merged["properties"].update(inner.pop("properties"))
        merged["required"] += inner.pop("required")
        merged.update(inner)
    if "$ref" in schema:
        return flatten(components[schema["$ref"].rsplit("/", 1)[1]], components)
    merged["properties"].update({name: flatten(p, components) for name, p in schema.get("properties", {}).items()})
    merged["required"] += schema.get("required", [])
    if "items" in schema:
        merged["items"] = flatten(schema["items"], components)
    for key in ("type", "format", "minLength", "maxLength", "minimum", "maximum", "maxItems", "nullable", "default"):
        if key in schema:
            merged[key] = schema[key]
    if schema.get("pattern", ".*") != ".*":
        merged["pattern"] = schema["pattern"]
    if "enum" in schema:
        merged["enum"] = sorted(schema["enum"])
    merged["required"].sort()
    if merged["properties"]:
        merged["type"] = "object"
    if "enum" in merged:
        merged.pop("minLength", None)  # Every name of an enum is longer than nothing.
    return merged


def walk(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Every property by its path, each with what is said of itself alone."""
    found = {}
    for name, inner in schema["properties"].items():
        here = f"{path}.{name}" if path else name
        found[here] = {key: value for key, value in inner.items() if key not in ("properties", "items")}
        found.update(walk(inner, here))
        if "items" in inner:
            items = inner["items"]
            found[f"{here}[]"] = {key: value for key, value in items.items() if key not in ("properties", "items")}
            found.update(walk(items, f"{here}[]"))
    return found


def properties(name: str, components: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return walk(flatten(components[name], components))


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=["creation request", "object"])
def test_every_property_says_what_the_contract_says(theirs: str, ours: str) -> None:
    want, got = properties(theirs, THEIRS), properties(ours, OURS)
    assert set(got) - BEYOND == set(want)
    different = {path: (want[path], got[path]) for path in want if got[path] != want[path]}
    assert different == {}
    names = [path for path in want if not path.endswith("[]")]
    print(f"{theirs}: {len(names)} properties equal")
    assert len(names) > 200


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=["creation request", "object"])
def test_the_same_properties_are_required(theirs: str, ours: str) -> None:
    assert flatten(OURS[ours], OURS)["required"] == flatten(THEIRS[theirs], THEIRS)["required"]


class RolePod(PodFields, frozen=True, kw_only=True):
    """A pod of one role, put together as a leader's and a worker's is."""

    storage: Maybe[BasicStorage] = UNSET
    security: Maybe[BasicSecurity] = UNSET


def test_pods_of_one_role_are_put_together_from_the_shared_members() -> None:
    found: dict[str, Any] = {}
    found["RolePod"] = struct_schema(RolePod, False, found)
    want, got = properties("DistributedInferenceLeaderWorkerSpec1", THEIRS), properties("RolePod", found)
    assert set(got) - {"compute.migProfile"} == set(want)
    assert {path: (want[path], got[path]) for path in want if got[path] != want[path]} == {}


def test_every_property_is_described() -> None:
    bare = [
        f"{name}.{prop}"
        for name, schema in OURS.items()
        for prop, inner in schema["properties"].items()
        if not inner.get("description")
    ]
    assert bare == []


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(OURS)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(OURS)
