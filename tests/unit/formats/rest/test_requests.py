"""Creation requests: what is read, and that everything wrong is told at once."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from fairlead.admission.admit import admit
from fairlead.formats.check import find_violations
from fairlead.formats.rest.requests import CreationRequest, read_changes, read_submission, render_workload
from fairlead.kinds import KINDS
from fairlead.model.errors import Invalid
from fairlead.model.records.workload import Workload
from fairlead.model.spec.assets import GitAsset, PvcAsset, S3Asset
from fairlead.model.spec.fields import Field, fields_of

GOLDEN = Path(__file__).parents[3] / "golden/training"
KIND = KINDS["training"]
CLUSTER = "71f69d83-ba66-4822-adf5-55ce55efd210"
EVERY: dict[str, Any] = json.loads((GOLDEN / "every-field.request.json").read_text())


def body(spec: Any = None, **members: Any) -> bytes:
    request = {"name": "t", "projectId": "1", "clusterId": CLUSTER, "spec": spec or {"image": "x"}, **members}
    return json.dumps({name: value for name, value in request.items() if value is not UNSET}).encode()


def issues(sent: bytes) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        read_submission(KIND, sent)
    return {issue.field: issue.details for issue in caught.value.issues}


def test_reads_a_request() -> None:
    got = read_submission(KIND, body({"image": "x", "backoffLimit": None}, useGivenNameAsPrefix=True, templateId=None))
    assert (got.kind, got.name, got.project_id, got.cluster_id) == ("training", "t", "1", CLUSTER)
    assert (got.use_given_name_as_prefix, got.template_id, got.dialect, got.remarks) == (True, None, "rest", ())
    assert msgspec.to_builtins(got.spec) == {"image": "x", "backoffLimit": None}


@pytest.mark.parametrize("spec", [b"", b',"spec":null'], ids=["left out", "null"])
def test_spec_may_be_left_out(spec: bytes) -> None:
    sent = b'{"name":"t","projectId":"1","clusterId":"' + CLUSTER.encode() + b'"' + spec + b"}"
    assert read_submission(KIND, sent).spec == KIND.spec()


def test_template_id_is_kept() -> None:
    assert read_submission(KIND, body(templateId=CLUSTER)).template_id == CLUSTER


def test_what_was_sent_comes_back_as_sent() -> None:
    spec = read_submission(KIND, json.dumps(EVERY).encode()).spec
    assert json.loads(msgspec.json.encode(spec)) == EVERY["spec"]


def test_a_number_keeps_its_form() -> None:
    sent = read_submission(KIND, body({"image": "x", "compute": {"cpuCoreRequest": 2, "cpuCoreLimit": 2.5}}))
    assert msgspec.json.encode(sent.spec) == b'{"image":"x","compute":{"cpuCoreRequest":2,"cpuCoreLimit":2.5}}'


def test_golden_request_has_every_property() -> None:
    beyond = {
        "spec.compute.migProfile",
        "spec.security.dropAllCapabilities",
        "spec.preemptionLimit",
        "spec.username",
    }
    assert _paths(CreationRequest[KIND.spec], "") - beyond == _sent_paths(EVERY, "")  # type: ignore[name-defined]  # made at run time


def _paths(struct: Any, path: str) -> set[str]:
    found = set()
    for field in fields_of(struct):
        here = f"{path}.{field.rest}".lstrip(".")
        found.add(here)
        if field.struct is not None:
            found |= _paths(field.struct, f"{here}[]" if field.is_list else here)
    return found


def _sent_paths(plain: Any, path: str) -> set[str]:
    found = set()
    if isinstance(plain, list):
        for item in plain:
            found |= _sent_paths(item, f"{path}[]")
    elif isinstance(plain, dict):
        for name, value in plain.items():
            here = f"{path}.{name}".lstrip(".")
            found |= {here} | _sent_paths(value, here)
    return found


ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**40,
    2**70,
    1.5,
    "",
    "x",
    "x\n",
    "X" * 20_000,
    "a.b",
    [],
    [None],
    [1],
    {},
    {"x": 1},
]


def _places(plain: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    pairs = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for name, value in pairs:
        found += _places(value, (*at, name))
    return found


@pytest.mark.parametrize("place", _places(EVERY), ids=lambda place: ".".join(map(str, place)))
def test_the_walk_and_the_typed_decode_agree(place: tuple[Any, ...]) -> None:
    """Whatever stands in the place of a value: the walk finds a flaw exactly where msgspec refuses."""
    decoder = msgspec.json.Decoder(CreationRequest[KIND.spec])  # type: ignore[name-defined]  # made at run time
    for odd in ODD:
        changed = copy.deepcopy(EVERY)
        target = changed
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = odd
        sent = json.dumps(changed).encode()
        try:
            decoder.decode(sent)
            refused = False
        except msgspec.DecodeError:
            refused = True
        flaws = find_violations(CreationRequest[KIND.spec], json.loads(sent), "")  # type: ignore[name-defined]  # made at run time
        assert bool(flaws) == refused, (place, odd, flaws)


@pytest.mark.parametrize("key", [key for key in KINDS if key != KIND.key])
@pytest.mark.parametrize("member", ["completions", "parallelism"])
def test_members_of_a_training_alone(key: str, member: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_submission(KINDS[key], body({member: 2}))
    assert f"spec.{member}" in [issue.field for issue in caught.value.issues]


@pytest.mark.parametrize("mode", ["644", "0999", "rw-r", "00644"])
def test_modes_of_files_are_four_octal_digits(mode: str) -> None:
    volume = {"configMap": "c", "mountPath": "/c", "defaultMode": mode}
    found = issues(body({"image": "x", "storage": {"configMapVolume": [volume]}}))
    assert list(found) == ["spec.storage.configMapVolume[0].defaultMode"]


def test_everything_wrong_is_reported_at_once() -> None:
    got = issues(
        body(
            {
                "image": 1,
                "imagee": "x",
                "command": "sh '",
                "restartPolicy": "never",
                "backoffLimit": 2**70,
                "completions": 2,
                "parallelism": 3,
                "compute": {"cpuCoreRequest": -0.5, "cpuMemoryRequest": "1..G", "gpuPortionRequest": 0.5},
                "environmentVariables": [{"name": "A"}, None, 3, {"name": ""}],
            },
            name="T",
            projectId=UNSET,
            projectID="1",
            clusterId="nowhere",
        )
    )
    assert set(got) == {
        "name",
        "projectId",
        "projectID",
        "clusterId",
        "spec.image",
        "spec.imagee",
        "spec.command",
        "spec.restartPolicy",
        "spec.backoffLimit",
        "spec.parallelism",
        "spec.compute.cpuCoreRequest",
        "spec.compute.cpuMemoryRequest",
        "spec.compute.gpuPortionRequest",
        "spec.environmentVariables[0]",
        "spec.environmentVariables[2]",
        "spec.environmentVariables[3].name",
        "spec.environmentVariables[3]",
    }
    assert "did you mean projectId?" in got["projectID"]
    assert "did you mean image?" in got["spec.imagee"]
    assert "did you mean Never?" in got["spec.restartPolicy"]
    assert "at least 0" in got["spec.compute.cpuCoreRequest"]


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        pytest.param(b"", "not valid JSON", id="empty"),
        pytest.param(b"{", "not valid JSON", id="cut off"),
        pytest.param(b"{'a': 1}", "not valid JSON", id="single quotes"),
        pytest.param(b"\xff\xfe{}", "not valid JSON", id="no text"),
        pytest.param(b'{"name": "\xff"}', "not UTF-8", id="no UTF-8 inside a text"),
        pytest.param(b'{"name": "\\ud800"}', "not valid JSON", id="half a character"),
        pytest.param(b"null", "one JSON object", id="null"),
        pytest.param(b"[]", "one JSON object", id="list"),
        pytest.param(b"[" * 100_000, "too deeply", id="deep list"),
        pytest.param(b'{"spec":' * 100_000, "too deeply", id="deep object"),
        pytest.param(b'{"name": NaN}', "not valid JSON", id="NaN"),
        pytest.param(b'{"name": 1e999}', "out of range", id="endless number"),
    ],
)
def test_bodies_that_are_not_requests(sent: bytes, want: str) -> None:
    got = issues(sent)
    assert list(got) == [""]
    assert want in got[""]


def test_zero_characters_are_refused() -> None:
    assert "zero character" in issues(body({"image": "x", "args": "a\0b"}))["spec.args"]


def test_a_million_mistakes_are_answered_with_some_of_them() -> None:
    assert len(issues(body({f"x{number}": 1 for number in range(50_000)}))) <= 250


def test_renders_the_object() -> None:
    workload = Workload(
        id="06d16c5d-4728-42fa-b573-3b11820d999f",
        version=1,
        kind=KIND.key,
        name="t-abcde",
        requested_name="t",
        project_id="1",
        project_name="p",
        department_id="2",
        department_name="d",
        cluster_id=CLUSTER,
        created_by="test@lab.com",
        created_at=1_641_008_992_531,
        spec=msgspec.Raw(b'{"image":"x","args":null}'),
    )
    assert json.loads(render_workload(KIND, workload)) == {
        "name": "t-abcde",
        "requestedName": "t",
        "workloadId": "06d16c5d-4728-42fa-b573-3b11820d999f",
        "projectId": "1",
        "departmentId": "2",
        "clusterId": CLUSTER,
        "createdBy": "test@lab.com",
        "createdAt": "2022-01-01T03:49:52.531Z",
        "deletedAt": None,
        "desiredPhase": "Running",
        "actualPhase": "Creating",
        "spec": {"image": "x", "args": None},
    }


def test_a_spec_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        read_submission(
            KIND, json.dumps({"name": "t", "projectId": "1", "clusterId": CLUSTER, "spec": "image"}).encode()
        )
    assert ("spec", "is a text; an object is expected") in [(i.field, i.details) for i in refused.value.issues]


def test_every_pattern_has_a_readable_rule() -> None:
    """A message tells the rule with an example; a pattern is never shown."""
    fields = {id(field): field for kind in KINDS.values() for field in fields_below(kind.spec)}
    fields |= {id(field): field for struct in (GitAsset, S3Asset, PvcAsset) for field in fields_below(struct)}
    with_pattern = [field for field in fields.values() if getattr(field.item or field.shape, "pattern", None)]
    assert len(with_pattern) > 20
    assert [field.rest for field in with_pattern if not field.pattern_rule] == []


def fields_below(struct: type) -> Iterator[Field]:
    for field in fields_of(struct):
        yield field
        if field.struct is not None:
            yield from fields_below(field.struct)


@pytest.mark.parametrize(
    ("spec", "path", "want"),
    [
        ({"compute": {"cpuMemoryRequest": "lots"}}, "spec.compute.cpuMemoryRequest", "'lots' is not a quantity"),
        ({"compute": {"cpuMemoryRequest": "lots"}}, "spec.compute.cpuMemoryRequest", "such as 2, 500M or 10Gi"),
        ({"compute": {"cpuMemoryRequest": "16GB"}}, "spec.compute.cpuMemoryRequest", "did you mean 16G?"),
        ({"imagePullSecrets": [{"name": "A_b"}]}, "spec.imagePullSecrets[0].name", "such as my-data"),
        (
            {"storage": {"secretVolume": [{"secret": "s", "mountPath": "/s", "defaultMode": "0999"}]}},
            "spec.storage.secretVolume[0].defaultMode",
            "such as 0644",
        ),
    ],
)
def test_a_broken_pattern_is_explained(spec: dict[str, Any], path: str, want: str) -> None:
    told = issues(body({"image": "x"} | spec))
    assert list(told) == [path]
    assert want in told[path]
    assert "[" not in told[path]


def test_a_size_in_recommended_units_is_stored_as_a_quantity() -> None:
    claim = {"path": "/a", "claimInfo": {"size": "10MIB"}}
    spec: Any = read_submission(KIND, body({"image": "x", "storage": {"pvc": [claim]}})).spec
    assert spec.storage.pvc[0].claim_info.size == "10Mi"


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"image": 5}, ["spec.image"]),
        ({"storage": {"pvc": [{"path": "/a", "claimInfo": 5}]}}, ["spec.storage.pvc[0].claimInfo"]),
        ({"storage": {"pvc": [{"path": "/a", "existingPvc": "no"}]}}, ["spec.storage.pvc[0].existingPvc"]),
        ({"compute": {"gpuRequestType": 5, "gpuPortionRequest": 0.5}}, ["spec.compute.gpuRequestType"]),
        ({"environmentVariables": [{"name": "A", "secret": "s"}]}, ["spec.environmentVariables[0].secret"]),
        ({"completions": "4", "parallelism": 3}, ["spec.completions"]),
        ({"tty": True, "stdin": "yes"}, ["spec.stdin"]),
        ({"tty": True, "stdin": False, "args": 5}, ["spec.args", "spec.tty"]),
        (
            {"tolerations": [{"key": "k", "operator": "equal", "effect": "Any", "value": "v"}]},
            ["spec.tolerations[0].operator"],
        ),
    ],
)
def test_a_wrong_type_is_one_violation(spec: dict[str, Any], want: list[str]) -> None:
    assert list(issues(body({"image": "x"} | spec))) == want


def places(struct: Any, around: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    """Every member of a spec that is an object or a list, with the members around it."""
    for member in fields_of(struct):
        if member.struct is not None or member.is_list:
            yield (*around, member)
        if member.struct is not None:
            yield from places(member.struct, (*around, member))


def with_junk(spec: Any, place: tuple[Field, ...], junk: object) -> Any:
    node = spec
    for member in place[:-1]:
        inner: Any = node.setdefault(member.rest, [{}] if member.is_list else {})
        node = inner[0] if member.is_list else inner
    node[place[-1].rest] = junk
    return spec


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_value_of_a_list_or_object_is_too_strange(kind: Any) -> None:
    """Whatever stands there is read or refused: nulls, items of another type, and items that are too long."""
    tried = 0
    for place in places(kind.rest_spec or kind.spec):
        junk: object
        for junk in (None, [None], [5], [[]], ["x" * 20_000], [{}], {}, {"": None}, 5, "x"):
            sent = body(with_junk({"image": "x"}, place, copy.deepcopy(junk)))
            with contextlib.suppress(Invalid):
                admit(kind, read_submission(kind, sent))
            tried += 1
    assert tried > 300


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"spec": {"workers": 2}}, {"spec.workers": "cannot be changed; only spec.replicas can"}),
        ({"name": "x"}, {"name": "cannot be changed; only spec.replicas can"}),
        ({"spec": {"replicas": -1}}, {"spec.replicas": "is -1; it must be at least 0"}),
        ({"spec": []}, {"spec": "is a list; an object is expected"}),
    ],
    ids=["another member", "beside the spec", "out of bounds", "no object"],
)
def test_what_cannot_be_changed(changes: dict[str, Any], want: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        read_changes(KINDS["distributed-inference"], json.dumps(changes).encode())
    assert {issue.field: issue.details for issue in caught.value.issues} == want
