"""Merges a request with a template: the request wins, lists are merged by their key, `exclude` removes an item.

It works on plain data keyed by REST names, and takes the keys of lists from the declarations. Called by `control`
before a submission is admitted.
"""

from typing import Any

from fairlead.model.spec.fields import Field, fields_of

Plain = dict[str, Any]


def apply_template(struct: Any, sent: Plain, template: Plain) -> Plain:
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


def _merged(field: Field, sent: Any, template: Any) -> Any:
    if field.is_list and field.about.key:
        return _items(field.about.key, sent, template)
    if field.struct is not None and not field.is_list:
        return apply_template(field.struct, sent, template)
    return sent


def _items(key: str, sent: list[Any], template: list[Any]) -> list[Any]:
    """The template's items in order, each replaced by the request's item of the same key, or removed if that excludes
    it; then the items that the request adds."""
    given = {item[key]: item for item in sent if item is not None and item.get(key) is not None}
    known = {item[key] for item in template if item is not None and item.get(key) is not None}
    kept = []
    for item in template:
        mine = given.get(item.get(key)) if item is not None else None
        if mine is None:
            kept.append(item)
        elif mine.get("exclude") is not True:
            kept.append(mine)
    return kept + [item for item in sent if item is None or item.get(key) not in known]
