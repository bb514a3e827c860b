"""The schemas made from the declarations say of every property of every kind what the contract says."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import UNSET

from fairlead.formats.rest.openapi import schemas, struct_schema
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import Maybe
from fairlead.model.spec.pod_fields import PodFields
from fairlead.model.spec.security import BasicSecurity
from fairlead.model.spec.storage import BasicStorage

DATA = Path(__file__).parents[3] / "contract/data"


def load_schemas(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / name).read_text())["components"]["schemas"]
    return found


THEIRS = load_schemas("workloads-2.24.contract.json")
NEIGHBOURS = load_schemas("kinds-2.24.contract.json")
KIND = KINDS["training"]
OURS = schemas(KIND)
#: What we have beyond the contract: the older page's MIG profile, and what only workload YAML knows.
BEYOND = {
    "spec.compute.migProfile",
    "spec.security.dropAllCapabilities",
    "spec.preemptionLimit",
    "spec.username",
}
#: What one kind has beyond the contract, since workload YAML has it there.
BEYOND_OF_KIND = {
    "inference-service": (
        "spec.tty",
        "spec.stdin",
        "spec.storage.s3",
        "spec.security.hostIpc",
        "spec.security.hostNetwork",
    )
}
#: Where descriptions of pods stand in requests and objects.
PLACES = ("spec.", "spec.leader.", "spec.worker.", "masterSpec.")


class Pair(NamedTuple):
    """A schema of the contract and ours, and how many properties they have at least."""

    kind: str
    theirs: str
    ours: str
    contract: dict[str, Any]
    least: int = 200


PAIRS = [
    Pair("training", "TrainingCreationRequest", "TrainingCreationRequest", THEIRS),
    Pair("training", "Training1", "Training", THEIRS),
    Pair("workspace", "WorkspaceCreationRequest", "WorkspaceCreationRequest", NEIGHBOURS),
    Pair("workspace", "Workspace1", "Workspace", NEIGHBOURS),
    Pair("distributed-training", "DistributedCreationRequest", "DistributedCreationRequest", NEIGHBOURS, 400),
    Pair("distributed-training", "DistributedWorkload", "Distributed", NEIGHBOURS, 400),
    Pair("inference-service", "InferenceCreationRequest", "InferenceCreationRequest", NEIGHBOURS),
    Pair("inference-service", "Inference1", "Inference", NEIGHBOURS),
    Pair("distributed-inference", "DistributedInferenceCreationRequest", "DistributedInferenceCreationRequest", THEIRS),
    Pair("distributed-inference", "DistributedInference", "DistributedInference", THEIRS),
]


@pytest.fixture(params=PAIRS, ids=lambda pair: pair.ours)
def pair(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.param
    return found


def test_every_kind_of_the_contract_is_compared() -> None:
    requests = {name for name in {**THEIRS, **NEIGHBOURS} if name.endswith("CreationRequest")}
    known = {key for key, kind in KINDS.items() if f"{kind.title}CreationRequest" in requests}
    assert len(known) >= 5
    assert {pair.kind for pair in PAIRS} == known


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


def test_every_property_says_what_the_contract_says(pair: Pair) -> None:
    want, got = properties(pair.theirs, pair.contract), properties(pair.ours, schemas(KINDS[pair.kind]))
    assert {path for path in got if not is_beyond(path, pair.kind)} == set(want)
    if pair.contract is NEIGHBOURS:
        got = {path: shortened(got[path], want.get(path, {})) for path in got}
    different = {path: (want[path], got[path]) for path in want if got[path] != want[path]}
    assert different == {}
    names = [path for path in want if not path.endswith("[]")]
    print(f"{pair.theirs}: {len(names)} properties equal")
    assert len(names) > pair.least


def shortened(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Without the bounds of length that the neighbours' contract leaves to the trainings'."""
    return {key: value for key, value in ours.items() if key in theirs or key not in ("maxItems", "maxLength")}


def is_beyond(path: str, kind: str) -> bool:
    """Whether it is one of ours, in the spec or in that of a role."""
    if path.startswith(BEYOND_OF_KIND.get(kind, ("\0",))):
        return True
    return any(f"spec.{path.partition(place)[2]}" in BEYOND for place in PLACES if path.startswith(place))


def test_the_same_properties_are_required(pair: Pair) -> None:
    ours = schemas(KINDS[pair.kind])
    want = flatten(pair.contract[pair.theirs], pair.contract)["required"]
    assert flatten(ours[pair.ours], ours)["required"] == want


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
