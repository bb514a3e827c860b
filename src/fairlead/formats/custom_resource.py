"""A workload's spec as the custom resource of its kind, and back. Pure.

`control` writes an object for every workload that came in another way, and reads objects that it does not know. Kinds
of workload YAML are written in it; other kinds have a definition in our own group, whose spec is the REST spec.
"""

from typing import Any

import msgspec

from fairlead.formats.losses import Loss, leaves, rebuild
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.keywords import API_VERSION, OWN_VERSION
from fairlead.formats.yaml.write import declared, render_document
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind

#: The groups of an installation's custom resources: Run:ai's, or ours if the cluster has Run:ai's definitions.
RUNAI_GROUP, OWN_GROUP = (version.partition("/")[0] for version in (API_VERSION, OWN_VERSION))
#: The annotation with the fields of the REST spec that workload YAML cannot express, by path, as JSON.
REST_FIELDS = "fairlead/rest-fields"
#: The annotation with the id of the workload for which the server created the object.
CREATED_FOR = "fairlead/created-for"
_AUTO_DELETION = "autoDeletionTimeAfterCompletionSeconds"


class ResourceContent(msgspec.Struct, frozen=True):
    """What the server writes into a custom resource."""

    spec: Plain
    labels: dict[str, str]
    annotations: dict[str, str]


def custom_kinds() -> list[Kind]:
    """The kinds that have a custom resource."""
    return [kind for kind in KINDS.values() if kind.letter or kind.own_api]


def api_version(kind: Kind, group: str = RUNAI_GROUP) -> str:
    """Of the kind's custom resource, in an installation with that group."""
    return kind.own_api or (API_VERSION if group == RUNAI_GROUP else OWN_VERSION)


def find_custom_kind(resource: str) -> Kind | None:
    """The kind whose custom resource has this name."""
    return next((kind for kind in custom_kinds() if kind.resource == resource), None)


def render_content(kind: Kind, spec: Plain, name: str, *, is_active: bool) -> ResourceContent:
    """The object of a workload with this spec (as REST has it)."""
    if kind.own_api:
        active = {} if is_active else {"active": False}
        return ResourceContent({**spec, **active}, {}, {})
    spec = _without_excluded(_with_auto_deletion(kind, spec))
    document, losses = render_document(kind, spec, name, active=is_active)
    lost = {loss.path: loss.value for loss in losses if _matters(kind, loss)}
    annotations = {REST_FIELDS: msgspec.json.encode(lost, order="sorted").decode()} if lost else {}
    return ResourceContent(document["spec"], document["metadata"].get("labels", {}), annotations)


def with_rest_fields(plain: Plain, annotations: dict[str, str]) -> Plain:
    """The spec that was read from an object, with the fields of its annotation; raises ValueError if that is wrong."""
    text = annotations.get(REST_FIELDS)
    if not text:
        return plain
    try:
        lost = msgspec.json.decode(text, type=dict[str, Any])
        return rebuild({**leaves(plain), **lost})
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"is not an object with a value for each path of the REST spec: {error}") from error


def changed_members(before: Plain, after: Plain) -> dict[str, object]:
    """The members of an object's spec that differ: their new value, or None if they are to be removed."""
    return {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}


def _matters(kind: Kind, loss: Loss) -> bool:
    """Whether something would be missing without the value: it is neither empty, nor a default, nor replaced."""
    if not loss.is_gone or loss.value in (None, msgspec.UNSET, [], {}) or loss.path.endswith(".exclude"):
        return False
    field = declared(kind, loss.path)
    return field is not None and field.about.default != loss.value and not loss.reason.startswith("is written as")


def _with_auto_deletion(kind: Kind, spec: Plain) -> Plain:
    """Written out, because an object without it is never deleted."""
    field = declared(kind, _AUTO_DELETION)
    if field is None or spec.get(_AUTO_DELETION) is not None or field.about.default is None:
        return spec
    return {**spec, _AUTO_DELETION: field.about.default}


def _without_excluded(value: object) -> Any:
    """Items that are excluded have no effect, and their positions would shift those of the others."""
    if isinstance(value, dict):
        return {name: _without_excluded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_excluded(item) for item in value if not _is_excluded(item)]
    return value


def _is_excluded(item: object) -> bool:
    return isinstance(item, dict) and item.get("exclude") is True
