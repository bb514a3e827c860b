"""The tables of forms: every field of a request is there, with its words, and labels read as English."""

import pytest

from fairlead.formats.forms import Table, label_of, render_form
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import fields_of


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("gpuDevicesRequest", "GPU devices request"),
        ("exposedUrls", "Exposed URLs"),
        ("s3", "S3"),
        ("runAsUid", "Run as UID"),
        ("numWorkers", "Number of workers"),
        ("httpGet", "HTTP get"),
    ],
)
def test_labels_read_as_english(name: str, want: str) -> None:
    assert label_of(name) == want


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_form_has_every_field_of_a_request(kind: Kind) -> None:
    form = render_form(kind)
    want = [field.rest for field in fields_of(kind.spec) if field.about.surface == "contract"]
    assert [field["name"] for field in form["fields"]] == want
    assert all(field["text"] for field in form["fields"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_form_has_common_fields(kind: Kind) -> None:
    assert {"image", "command", "gpuDevicesRequest"} <= set(_common(render_form(kind)["fields"]))


def _common(fields: list[Table]) -> list[str]:
    below = [name for field in fields for name in _common(field.get("members", []))]
    return [field["name"] for field in fields if field.get("isCommon")] + below


def test_choices_and_bounds_are_those_of_the_declaration() -> None:
    fields = {field["name"]: field for field in render_form(KINDS["training"])["fields"]}
    assert fields["imagePullPolicy"]["choices"] == ["Always", "IfNotPresent", "Never"]
    compute = {member["name"]: member for member in fields["compute"]["members"]}
    assert compute["cpuMemoryRequest"]["type"] == "quantity"
    assert compute["gpuDevicesRequest"]["type"] == "integer"
    assert fields["environmentVariables"]["type"] == "objects"
