"""Merges a request with a template: the request wins, lists are merged by their key, `exclude` removes an item.

It works on plain data keyed by REST names, and takes the keys of lists from the declarations. Called by `control`
before a submission is admitted.
"""

from collections.abc import Sequence

from fairlead.model.spec.fields import Field, Struct, fields_of

Plain = dict[str, object]


def apply_template(struct: Struct, sent: Plain, template: Plain) -> Plain:
    """The merged spec. A member that the request gives, even null, wins over the template's."""
    result: Plain = {}
    for field in fields_of(struct):
        name = field.rest
        if name not in sent:
            if name in template:
                result[name] = template[name]
        elif name not in template or sent[name] is None or template[name] is None:
            result[name] = sent[name]
        else:
            result[name] = _merged(field, sent[name], template[name])
    return result


def _merged(field: Field, sent: object, template: object) -> object:
    if field.about.key and isinstance(sent, list | tuple) and isinstance(template, list | tuple):
        return _items(field.about.key, sent, template)
    if field.struct is not None and isinstance(sent, dict) and isinstance(template, dict):
        return apply_template(field.struct, sent, template)
    return sent


def _items(key: str, sent: Sequence[Plain | None], template: Sequence[Plain | None]) -> list[Plain | None]:
    """The template's items in order, each replaced by the request's items of the same key, or removed if these exclude
    it; then the items that the request adds. Nothing that the request gives is lost: rules refuse a key used twice."""
    given: dict[object, list[Plain]] = {}
    for item in sent:
        if item is not None and item.get(key) is not None:
            given.setdefault(item[key], []).append(item)
    known = {item[key] for item in template if item is not None and item.get(key) is not None}
    own_items: list[Plain | None] = []
    for item in template:
        mine = given.pop(item[key], None) if item is not None and item.get(key) in given else None
        if mine is None:
            own_items.append(item)
        else:
            own_items += [one for one in mine if one.get("exclude") is not True]
    return own_items + [item for item in sent if item is None or item.get(key) not in known]
