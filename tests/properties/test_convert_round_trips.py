"""Whatever a spec holds, it comes back from another dialect without what was reported as lost, and otherwise equal."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from fairlead.cli.flags import parse
from fairlead.cli.workloads.kinds import commands
from fairlead.cli.workloads.submit_flags import fill_spec
from fairlead.client.kinds import load_kinds
from fairlead.formats.convert.dialects import render
from fairlead.formats.flags.command_line import render_command
from fairlead.formats.intermediate import from_stored
from fairlead.formats.losses import converted
from fairlead.formats.yaml.documents import read_manifests, read_spec
from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.write import render_document
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from tests.properties.specs import specs

#: Without the phase that explains a failure: it takes minutes on objects of this size.
QUICK = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)

#: For what the first two properties nearly imply.
FEWER = settings(QUICK, max_examples=25)

#: Kinds that workload YAML has; the others are REST alone.
WITH_YAML = [kind for kind in KINDS.values() if kind.letter]


def in_order(plain: Any) -> Any:
    """Lists of objects in one order: items are told apart by their names, not by where they stand."""
    if isinstance(plain, dict):
        return {name: in_order(value) for name, value in sorted(plain.items())}
    if isinstance(plain, list) and any(isinstance(item, dict) for item in plain):
        return sorted((in_order(item) for item in plain), key=lambda item: json.dumps(item, sort_keys=True))
    return plain


def from_yaml(text: str) -> dict[str, Any]:
    manifests, issues = read_manifests(text)
    assert issues == []
    reading = read_spec(manifests[0])
    assert reading.issues == []
    return reading.plain


def from_line(line: list[str]) -> dict[str, Any]:
    """What a whole command line says: the program, the kind's words, submit, a name and flags."""
    place = line.index("submit")
    every = [one for entry in load_kinds().values() for one in (entry, *entry.subtypes)]
    entry = next(one for one in every if list(one.command) == line[1:place])
    parsed = parse(line[place + 2 :], commands(entry)[0].flags)
    spec: dict[str, Any] = {}
    fill_spec(spec, entry, parsed)
    return spec


def from_flags(kind: Kind, flags: list[str], words: list[str]) -> dict[str, Any]:
    return from_line(["fairlead", *kind.command, "submit", "name", *flags, *(["--", *words] if words else [])])


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.key)
@given(st.data())
@QUICK
def test_rest_to_yaml_to_rest(kind: Kind, data: st.DataObject) -> None:
    spec = data.draw(specs(kind))
    document, losses = render_document(kind, spec, "name")
    got = from_yaml(render_yaml(document))
    assert in_order(got) == in_order(converted(spec, losses))


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.key)
@given(st.data())
@QUICK
def test_rest_to_flags_to_rest(kind: Kind, data: st.DataObject) -> None:
    spec = data.draw(specs(kind))
    flags, words, losses = render_command(kind, spec)
    assert in_order(from_flags(kind, flags, words)) == in_order(converted(spec, losses))


@pytest.mark.parametrize("kind", WITH_YAML, ids=lambda kind: kind.key)
@given(st.data())
@FEWER
def test_what_was_written_is_written_the_same_again(kind: Kind, data: st.DataObject) -> None:
    """There is one canonical form: a document that was read is written as it stands, and loses nothing more."""
    first, _ = render_document(kind, data.draw(specs(kind)), "name")
    second, losses = render_document(kind, from_yaml(render_yaml(first)), "name")
    assert second == first
    assert [loss for loss in losses if loss.now is UNSET] == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.key)
@given(st.data())
@FEWER
def test_convert_reports_what_did_not_arrive(kind: Kind, data: st.DataObject) -> None:
    """The list that people are shown is the difference between what was sent and what is read back."""
    spec = data.draw(specs(kind))
    workload = from_stored(kind, "name", "", spec, is_active=True)
    for target in ("yaml", "flags") if kind.letter else ("flags",):
        rendered: Any = render(workload, target)
        told = [replace(loss, path=loss.path.removeprefix("spec.")) for loss in rendered.losses]
        got = from_yaml(rendered.text) if target == "yaml" else from_line(list(rendered.plain))
        assert in_order(got) == in_order(converted(spec, told))


def test_a_path_of_digits_stays_a_text() -> None:
    """Numbers in the objects of jobs may be written as texts; not every text of digits is one."""
    kind = next(kind for kind in WITH_YAML if kind.key == "distributed-training")
    document, _ = render_document(kind, {"distributedFramework": "MPI", "sshAuthMountPath": "12"}, "name")
    assert from_yaml(render_yaml(document))["sshAuthMountPath"] == "12"
