"""A request laid over a template."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.admission.templates import apply_template
from fairlead.engines.declared import EFFECTS
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import fields_of

A, B = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}


@pytest.mark.parametrize(
    ("sent", "template", "want"),
    [
        pytest.param({}, {"image": "x"}, {"image": "x"}, id="what is left out is the template's"),
        pytest.param({"image": "y"}, {"image": "x"}, {"image": "y"}, id="what is given wins"),
        pytest.param({"image": None}, {"image": "x"}, {"image": None}, id="null is given too"),
        pytest.param(
            {"compute": {"cpuCoreRequest": 2}},
            {"compute": {"cpuCoreRequest": 1, "cpuMemoryRequest": "1G"}},
            {"compute": {"cpuCoreRequest": 2, "cpuMemoryRequest": "1G"}},
            id="objects member by member",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            {"environmentVariables": [A, B]},
            {"environmentVariables": [A, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            id="items by key: replaced, added, kept",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "A", "exclude": True}]},
            {"environmentVariables": [A, B]},
            {"environmentVariables": [B]},
            id="exclude removes",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "Z", "exclude": True}]},
            {"environmentVariables": [A]},
            {"environmentVariables": [A, {"name": "Z", "exclude": True}]},
            id="exclude of what the template lacks is left to the policy",
        ),
        pytest.param(
            {"security": {"capabilities": ["KILL"]}},
            {"security": {"capabilities": ["CHOWN"]}},
            {"security": {"capabilities": ["KILL"]}},
            id="lists without a key are replaced",
        ),
    ],
)
def test_merging(sent: dict[str, Any], template: dict[str, Any], want: dict[str, Any]) -> None:
    assert apply_template(KINDS["training"].spec, sent, template) == want


def keyed_lists(struct: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every list of a training whose items have a name by which they are merged."""
    for field in fields_of(struct):
        path = (*before, field.rest)
        if field.is_list and field.about.key == "name":
            yield path
        elif field.struct is not None and not field.is_list:
            yield from keyed_lists(field.struct, path)


LISTS = list(keyed_lists(KINDS["training"].spec))


def nested(path: tuple[str, ...], items: list[dict[str, Any]]) -> dict[str, Any]:
    *outer, last = path
    spec: dict[str, Any] = {last: items}
    for name in reversed(outer):
        spec = {name: spec}
    return spec


@pytest.mark.parametrize("path", LISTS, ids=".".join)
def test_names_distinguish_items(path: tuple[str, ...]) -> None:
    """In every such list: the request's item takes the place of the template's of the same name, others stay."""
    sent = nested(path, [{"name": "b", "marked": "by the request"}, {"name": "c"}])
    template = nested(path, [{"name": "a"}, {"name": "b", "marked": "by the template"}])
    want = nested(path, [{"name": "a"}, {"name": "b", "marked": "by the request"}, {"name": "c"}])
    assert apply_template(KINDS["training"].spec, sent, template) == want


def test_every_list_with_a_declared_name_is_merged_by_it() -> None:
    declared = {path for path, effect in EFFECTS.items() if effect.host.startswith("identifies the item")}
    assert declared
    assert declared - {f"{'.'.join(path)}[].name" for path in LISTS} == set()


def test_nothing_that_a_request_gives_vanishes() -> None:
    """Two items of one name are refused later; merging must not hide one of them."""
    sent: dict[str, Any] = {"storage": {"emptyDirVolume": [{"name": "n", "path": "/a"}, {"name": "n", "path": "/b"}]}}
    template: dict[str, Any] = {
        "storage": {"emptyDirVolume": [{"name": "n", "path": "/t"}, {"name": "m", "path": "/m"}]}
    }
    merged: Any = apply_template(KINDS["training"].spec, sent, template)
    assert [item["path"] for item in merged["storage"]["emptyDirVolume"]] == ["/a", "/b", "/m"]


def test_an_item_can_be_excluded_and_given_anew() -> None:
    sent: dict[str, Any] = {"labels": [{"name": "n", "exclude": True}, {"name": "n", "value": "mine"}]}
    merged: Any = apply_template(KINDS["training"].spec, sent, {"labels": [{"name": "n", "value": "theirs"}]})
    assert merged["labels"] == [{"name": "n", "value": "mine"}]
