"""Which of the objects that a spec names do not exist, given those that do.

`control` asks `names_used` at every submission, loads what exists, and refuses what `missing_names` finds.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import msgspec

from fairlead.model.errors import ComplianceIssue
from fairlead.model.records.assets import Reference
from fairlead.model.spec.references import NamedReference, references

_SHOWN = 5

#: What exists: per kind of object, from each name to its keys, or None where keys do not matter.
Existing = Mapping[Reference, Mapping[str, frozenset[str] | None]]


def names_used(spec: msgspec.Struct, path: str = "spec") -> list[NamedReference]:
    """Every object that must exist for the spec."""
    return [use for use in references(spec, path) if use.name and not use.may_be_created]


def missing_names(uses: Iterable[NamedReference], existing: Existing) -> list[tuple[NamedReference, ComplianceIssue]]:
    """Each reference to an object that does not exist, with similar names that do."""
    issues = []
    for use in uses:
        known = existing.get(use.reference, {})
        if use.name not in known:
            details = f"there is no {use.reference} '{use.name}' here{_nearby(use.name, known, use.reference)}"
            issues.append((use, ComplianceIssue(use.path, details)))
            continue
        keys = known[use.name]
        if use.key and keys is not None and use.key not in keys:
            details = f"{use.reference} '{use.name}' has no key '{use.key}'{_nearby(use.key, keys, 'key')}"
            issues.append((use, ComplianceIssue(use.key_path or use.path, details)))
    return issues


def _nearby(name: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    if what == Reference.USER_CREDENTIAL:
        near = get_close_matches(name, names, 1, 0.6)
        yours = f"yours are {', '.join(names[:_SHOWN])}" if names else "you have none"
        return f"; did you mean {near[0]}?" if near else f"; only its creator can use a user credential, and {yours}"
    if not names:
        return f"; it has no {what}s" if what == "key" else f"; this project has no {what} yet"
    near = get_close_matches(name, names, 1, 0.6)
    # The secret of a credential is prefixed with its kind, which is easily forgotten.
    near = near or [other for other in names if other.endswith(f"-{name}")][:1]
    if near:
        return f"; did you mean {near[0]}?"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; there are {', '.join(names[:_SHOWN])}{more}"
