"""Which objects of the server a spec names, and what is wrong with that, given what exists. Pure.

`control` asks `names_used` at every submission, loads what exists of it, and refuses with `missing_names`; in use is
what `names_used` finds in the specs of workloads that have not ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from fairlead.model.errors import ComplianceIssue
from fairlead.model.spec.fields import is_given, value_or
from fairlead.model.spec.pod_fields import pods_of

#: What a spec can name, and the word for it in messages.
SECRET, CONFIG_MAP, CLAIM = "secret", "config map", "claim"
DATA_VOLUME, USER_CREDENTIAL, STORAGE_CLASS = "data volume", "user credential", "storage class"
_SHOWN = 5


class Use(msgspec.Struct, frozen=True):
    """One place in a spec that names an object."""

    what: str
    name: str
    path: str
    #: The key in it that is asked for; empty where the whole object is.
    key: str = ""


#: What exists: per kind of object, from each name to its keys, or None where keys do not matter.
Existing = Mapping[str, Mapping[str, frozenset[str] | None]]


def names_used(spec: Any, path: str = "spec") -> list[Use]:
    """Every object that the spec names and does not make itself."""
    found: list[Use] = []
    for pod, here in pods_of(spec, path):
        found += [*_variables(pod, here), *_pull_secrets(pod, here)]
        storage = getattr(pod, "storage", None)
        if is_given(storage):
            found += _storage(storage, f"{here}.storage")
    return [use for use in found if use.name]


def _items(owner: Any, member: str, path: str) -> Iterator[tuple[Any, str]]:
    """The items of a list that count, with their paths."""
    for number, item in enumerate(value_or(getattr(owner, member, None), ())):
        if item is not None and value_or(item.exclude, False) is not True:
            yield item, f"{path}[{number}]"


def _variables(spec: Any, path: str) -> Iterator[Use]:
    for item, here in _items(spec, "environment_variables", f"{path}.environmentVariables"):
        if isinstance(item.value, str):
            continue
        for member, rest, what in (
            (item.secret, "secret", SECRET),
            (item.config_map, "configMap", CONFIG_MAP),
            (item.user_credential, "userCredential", USER_CREDENTIAL),
        ):
            if is_given(member):
                yield Use(what, value_or(member.name, ""), f"{here}.{rest}", value_or(member.key, ""))
                break


def _pull_secrets(spec: Any, path: str) -> Iterator[Use]:
    for item, here in _items(spec, "image_pull_secrets", f"{path}.imagePullSecrets"):
        what = USER_CREDENTIAL if value_or(item.user_credential, False) else SECRET
        yield Use(what, value_or(item.name, ""), f"{here}.name")


def _storage(storage: Any, path: str) -> Iterator[Use]:
    for item, here in _items(storage, "pvc", f"{path}.pvc"):
        if value_or(item.existing_pvc, False):
            yield Use(CLAIM, value_or(item.claim_name, ""), f"{here}.claimName")
        elif is_given(item.claim_info):
            yield Use(STORAGE_CLASS, value_or(item.claim_info.storage_class, ""), f"{here}.claimInfo.storageClass")
    for item, here in _items(storage, "config_map_volume", f"{path}.configMapVolume"):
        yield Use(CONFIG_MAP, value_or(item.config_map, ""), f"{here}.configMap")
    for item, here in _items(storage, "secret_volume", f"{path}.secretVolume"):
        yield Use(SECRET, value_or(item.secret, ""), f"{here}.secret")
    for item, here in _items(storage, "data_volume", f"{path}.dataVolume"):
        yield Use(DATA_VOLUME, value_or(item.id, "").lower(), f"{here}.id")
    for item, here in _items(storage, "git", f"{path}.git"):
        if is_given(item.secret_ref):
            yield Use(SECRET, value_or(item.secret_ref.name, ""), f"{here}.secretRef.name")
        yield Use(SECRET, value_or(item.password_secret, ""), f"{here}.passwordSecret")
    for item, here in _items(storage, "s3", f"{path}.s3"):
        yield Use(SECRET, value_or(item.access_key_secret, ""), f"{here}.accessKeySecret")


def missing_names(uses: Iterable[Use], existing: Existing) -> list[tuple[Use, ComplianceIssue]]:
    """Each use of something that does not exist, with what exists nearby."""
    found = []
    for use in uses:
        known = existing.get(use.what, {})
        if use.name not in known:
            details = f"there is no {use.what} '{use.name}' here{_nearby(use.name, known, use.what)}"
            found.append((use, ComplianceIssue(use.path, details)))
            continue
        keys = known[use.name]
        if use.key and keys is not None and use.key not in keys:
            details = f"{use.what} '{use.name}' has no key '{use.key}'{_nearby(use.key, keys, 'key')}"
            found.append((use, ComplianceIssue(use.path, details)))
    return found


def _nearby(name: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    if not names:
        return f"; it has no {what} at all" if what == "key" else f"; this project has no {what} yet"
    near = get_close_matches(name, names, 1, 0.6)
    # What a credential makes is prefixed with its kind, which is easily forgotten.
    near = near or [other for other in names if other.endswith(f"-{name}")][:1]
    if near:
        return f"; did you mean {near[0]}?"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; there are {', '.join(names[:_SHOWN])}{more}"
