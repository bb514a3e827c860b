"""The custom resource of a workload has its whole spec: what is read from it means the same, field by field."""

from pathlib import Path

import msgspec
import pytest

from fairlead.formats.convert.to_yaml import differences
from fairlead.formats.custom_resource import REST_FIELDS, custom_kinds, render_content, with_rest_fields
from fairlead.formats.plain import Plain
from fairlead.formats.rest.requests import read_submission
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.write import render_document
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind

GOLDEN = Path(__file__).parents[2] / "golden"
#: The page of an older version breaks rules of its successor, which only its own dialect forgives.
LENIENT = "older-page.request.json"
CASES = [path for kind in KINDS for path in sorted((GOLDEN / kind).glob("*.request.json")) if path.name != LENIENT]
AUTO_DELETION = "autoDeletionTimeAfterCompletionSeconds"


def read_back(kind: Kind, name: str, spec: Plain) -> Plain:
    """The spec that a server reads from the object which it wrote for this one."""
    content = render_content(kind, spec, name, is_active=True)
    if kind.own_api:
        return content.spec
    metadata = {"name": name, "namespace": "runai-team", "labels": content.labels, "annotations": content.annotations}
    body = {"apiVersion": "run.ai/v2alpha1", "kind": kind.resource, "metadata": metadata, "spec": content.spec}
    [manifest], issues = read_manifests(msgspec.json.encode(body))
    assert issues == []
    workload, issues = read_workload(manifest)
    assert issues == []
    assert workload is not None
    return with_rest_fields(workload.plain, content.annotations)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}")
def test_what_is_written_reads_back(path: Path) -> None:
    kind = KINDS[path.parent.name]
    submission = read_submission(kind, path.read_bytes())
    spec = msgspec.json.decode(msgspec.json.encode(submission.spec))
    back = read_back(kind, "golden", spec)
    # What an object says in other words, such as a default that is written out, is no difference.
    losses = render_document(kind, spec, "golden")[1] if kind.letter else []
    same = {AUTO_DELETION, *(loss.path for loss in losses if not loss.is_gone)}
    assert [one for one in differences(kind, spec, back) if one not in same] == []


def test_fields_of_rest_alone_are_in_the_annotation() -> None:
    content = render_content(KINDS["training"], {"image": "x", "category": "Build"}, "a", is_active=True)
    assert msgspec.json.decode(content.annotations[REST_FIELDS]) == {"category": "Build"}
    assert with_rest_fields({"image": "x"}, content.annotations) == {"image": "x", "category": "Build"}


@pytest.mark.parametrize("text", ["no json", "[1]", '{"a[x]": 1}'])
def test_an_annotation_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an object with a value for each path"):
        with_rest_fields({"image": "x"}, {REST_FIELDS: text})


def test_every_kind_has_a_custom_resource() -> None:
    assert custom_kinds() == list(KINDS.values())
