"""Every property of Trainings and Distributed Inferences, tried with a value that its sentence describes and with
values that it rules out: the rows of `property_rows.py`, and what the contract's schema alone rules out."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.admission.admit import admit
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from tests.contract.api.api_server import ApiServer
from tests.contract.api.property_rows import BASES, ELSEWHERE, GROUPS, PODS, REQUEST, TRAININGS, At, Row
from tests.unit.engines.golden_place import GOLDEN_PLACE

Schema = dict[str, Any]
CONTRACT: Schema = json.loads((Path(__file__).parents[1] / "data/workloads-2.24.contract.json").read_text())
TRAINING, GROUP = "trainings", "distributed-inferences"
KIND = {TRAINING: KINDS["training"], GROUP: KINDS["distributed-inference"]}
CLUSTER = "71f69d83-ba66-4822-adf5-55ce55efd210"
PREFIXES = {TRAINING: ("spec.",), GROUP: ("spec.leader.", "spec.worker.")}
#: Where the contract allows null although the sentence makes the member mandatory.
NOT_NULL = "(mandatory)"


def resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        inner = CONTRACT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        schema = {**inner, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def properties(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    schema = resolved(schema)
    for word in ("allOf", "oneOf", "anyOf"):
        for part in schema.get(word, ()):
            yield from properties(part, path)
    if "items" in schema:
        yield from properties(schema["items"], f"{path}[]")
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, resolved(inner)
        yield from properties(inner, here)


def contract_properties(kind: str) -> dict[str, Schema]:
    content = CONTRACT["paths"][f"/api/v1/workloads/{kind}"]["post"]["requestBody"]["content"]
    return dict(properties(content["application/json"]["schema"]))


def rows(kind: str) -> dict[str, Row]:
    own = {f"spec.{path}": row for path, row in (TRAININGS if kind == TRAINING else GROUPS).items()}
    pods = {f"{prefix}{path}": row for prefix in PREFIXES[kind] for path, row in PODS.items()}
    return REQUEST | own | pods


ROWS = {kind: rows(kind) for kind in KIND}
CASES = [(kind, path) for kind in KIND for path in ROWS[kind]]


def test_every_property_of_the_contract_has_a_row() -> None:
    for kind in KIND:
        assert ROWS[kind].keys() == contract_properties(kind).keys()
    assert len(CASES) == 501


# Requests


def base_request(kind: str) -> Schema:
    pod = {"image": "x"}
    spec = dict(pod) if kind == TRAINING else {"leader": pod, "worker": dict(pod), "workers": 1}
    return {"name": "w", "projectId": "1", "clusterId": CLUSTER, "spec": spec}


def prefix_of(kind: str, path: str) -> str:
    return next((prefix for prefix in PREFIXES[kind] if path.startswith(prefix)), "spec.")


def around(kind: str, path: str) -> tuple[Schema, Schema, str]:
    """A request with the objects and items around a property: (request, the object that it is in, its name)."""
    request = base_request(kind)
    node, walked = request, ""
    *parents, name = path.split(".")
    prefix = prefix_of(kind, path)
    for part in parents:
        walked = f"{walked}.{part}" if walked else part
        inner = copy.deepcopy(BASES.get(walked.removeprefix(prefix), {}))
        if part.endswith("[]"):
            item = node[part[:-2]] = [inner]
            node = item[0]
        else:
            _make_room(node, part, walked.removeprefix(prefix))
            node = node.setdefault(part, inner)
    return request, node, name


def _make_room(node: Schema, part: str, path: str) -> None:
    """An environment variable has one source; the others make room for it."""
    if path.startswith("environmentVariables[].") and part in ("secret", "configMap", "podFieldRef", "userCredential"):
        node.pop("value", None)


def with_value(kind: str, path: str, value: Any, **beside: Any) -> Schema:
    request, node, name = around(kind, path)
    _make_room(node, name, path.removeprefix(prefix_of(kind, path)))
    node.update(beside)
    node[name] = value
    return request


def right_request(kind: str, path: str) -> Schema:
    row = ROWS[kind][path]
    request = with_value(kind, path, CLUSTER if path == "clusterId" else row.value, **row.beside)
    return base_request(kind) if path == "spec" else request


def number(path: str) -> str:
    return path.replace("[]", "[0]")


# What each takes


@pytest.mark.parametrize("kind", KIND)
def test_every_property_takes_what_its_sentence_describes(kind: str) -> None:
    refused = {}
    for path in ROWS[kind]:
        request = right_request(kind, path)
        try:
            submission = read_submission(KIND[kind], json.dumps(request).encode())
            admit(KIND[kind], submission)
        except Exception as error:  # the whole list is wanted, not only the first
            refused[path] = repr(error)
    assert refused == {}


def objects_of(kind: str, request: Schema) -> list[Any]:
    podsets = KIND[kind].podsets(read_submission(KIND[kind], json.dumps(request).encode()).spec)
    volumes = {item["id"]: "claim" for item in request["spec"].get("storage", {}).get("dataVolume", ())}
    place = replace(GOLDEN_PLACE, pools=tuple(request["spec"].get("nodePools", ())), data_volumes=volumes)
    rendered = render_objects(place, podsets)
    return [*rendered.objects, *rendered.pods(place)]


def holds(node: Any, member: str, value: Any) -> bool:
    if isinstance(node, dict):
        return (member in node and node[member] == value) or any(holds(inner, member, value) for inner in node.values())
    return isinstance(node, list | tuple) and any(holds(inner, member, value) for inner in node)


@pytest.mark.parametrize("kind", KIND)
def test_every_effect_on_a_cluster_is_in_its_objects_and_only_then(kind: str) -> None:
    wrong = {}
    for path, row in ROWS[kind].items():
        if row.seen == ELSEWHERE:
            continue
        if not holds(objects_of(kind, right_request(kind, path)), *row.seen):
            wrong[path] = f"{row.seen} is not there"
        elif holds(objects_of(kind, base_request(kind)), *row.seen):
            wrong[path] = f"{row.seen} is there without it"
    assert wrong == {}


# What each refuses


def schema_wrong(schema: Schema) -> Iterator[Any]:
    """Values that the schema of a property rules out."""
    kind = schema.get("type", "object")
    yield {"string": 5, "integer": "5", "number": "5", "boolean": "yes", "array": {}, "object": []}[kind]
    if "enum" in schema:
        yield "nothing-of-these"
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if schema.get("format") == "int32":
        yield 2**31
    if schema.get("minLength") and "enum" not in schema:
        yield ""
    if "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("pattern", ".*") != ".*":
        yield "?!"
    if schema.get("format") == "uuid":
        yield "no-id"
    if not schema.get("nullable") and kind != "object":
        yield None


def wrong_requests(kind: str, path: str) -> Iterator[tuple[Any, Schema, str]]:
    """Each wrong value, the request with it, and the path of the violation."""
    row, schema = ROWS[kind][path], contract_properties(kind)[path]
    for value in schema_wrong(schema):
        if (kind, path) == (TRAINING, "spec.compute.extendedResources[].quantity") and value == 5:
            continue  # A number makes it a request of the older dialect, which takes it.
        yield value, with_value(kind, path, value, **row.beside), number(path)
    for given in row.wrong:
        value = given.value if isinstance(given, At) else given
        here = number(path)
        if isinstance(given, At):
            parent = here.rpartition(".")[0]
            here = f"{parent}.{given.member}" if given.member else parent
        yield value, with_value(kind, path, value, **row.beside), here


@pytest.mark.parametrize("kind", KIND)
def test_every_property_refuses_what_its_sentence_rules_out(api: ApiServer, kind: str) -> None:
    """At submission, with the path of the property, by a real server."""
    mistakes, tried = {}, 0
    for path in ROWS[kind]:
        for value, request, want in wrong_requests(kind, path):
            tried += 1
            if path != "clusterId":
                request["clusterId"] = api.cluster_id
            answer = api.call("POST", f"/api/v1/workloads/{kind}", request)
            if answer.status != 400:
                mistakes[f"{path} = {str(value)[:40]!r}"] = f"{answer.status}"
            elif not _tells(answer.json, want):
                mistakes[f"{path} = {str(value)[:40]!r}"] = answer.json["details"][:200]
    assert mistakes == {}
    assert tried > 400


def _tells(answer: Schema, want: str) -> bool:
    """Whether the violation stands at the property, or at a member below it that its value lacks."""
    if "complianceIssues" in answer:
        fields = [issue["field"] for issue in answer["complianceIssues"]]
    else:
        fields = [part.partition(": ")[0] for part in answer["details"].split("; ")]
    return any(field == want or field.startswith((f"{want}.", f"{want}[")) for field in fields)


@pytest.mark.parametrize("kind", KIND)
def test_null_in_a_choice_is_not_echoed(api: ApiServer, kind: str) -> None:
    """The contract's enums do not list null, so a strict client could not read it; other nulls come back."""
    request = base_request(kind) | {"name": f"nulls-{kind}", "clusterId": api.cluster_id}
    pod = request["spec"] if kind == TRAINING else request["spec"]["leader"]
    pod |= {"imagePullPolicy": None, "args": None, "podAffinity": None, "security": {"seccompProfileType": None}}
    created = api.call("POST", f"/api/v1/workloads/{kind}", request)
    assert created.status == 202, created
    spec = api.get(f"/api/v1/workloads/{kind}/{created.json['workloadId']}")["spec"]
    echoed = spec if kind == TRAINING else spec["leader"]
    assert echoed == {"image": "x", "args": None, "podAffinity": None, "security": {}}
