"""Flags for quotas and rules of projects and departments, and the REST members that they become.

`--gpu-quota` and its like are about one node pool, the default one unless `--nodepool` names another; `--quota` is
about any, several times.
"""

import re
from collections.abc import Mapping, Sequence

from fairlead.cli.command import Invocation
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.session import NameNotFound
from fairlead.cli.suggest import suggest
from fairlead.client.json_object import Json

DEFAULT_POOL = "default"
UNLIMITED = "unlimited"
_AMOUNTS = ("gpu", "cpu", "memory", "gpu-limit", "cpu-limit", "memory-limit")
_PARTS = ("pool", *_AMOUNTS, "weight", "rank")
_FORM = "pool=NAME,gpu=4,cpu=16,memory=64Gi,gpu-limit=8,cpu-limit=…,memory-limit=…,weight=2,rank=High"
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

QUOTA_FLAGS = (
    Flag("gpu-quota", "GPUs that it is guaranteed; fractions are allowed, or `unlimited`", placeholder="NUMBER"),
    Flag("cpu-quota", "CPU cores that it is guaranteed, or `unlimited`", placeholder="CORES"),
    Flag("memory-quota", "Memory that it is guaranteed, such as 64Gi, or `unlimited`", placeholder="QUANTITY"),
    Flag("gpu-limit", "GPUs that it may hold at most, or `unlimited`", placeholder="NUMBER"),
    Flag("cpu-limit", "CPU cores that it may hold at most, or `unlimited`", placeholder="CORES"),
    Flag("memory-limit", "Memory that it may hold at most, or `unlimited`", placeholder="QUANTITY"),
    Flag("over-quota-weight", "Its weight when what is spare is divided", "number"),
    Flag("rank", "Its rank among its siblings, from VeryLow to VeryHigh", placeholder="RANK"),
    Flag("nodepool", "The node pool that these are about", placeholder="NAME", default=DEFAULT_POOL),
    Flag("quota", f"All of that in one word, for any node pool: {_FORM}", repeatable=True, placeholder="PARTS"),
)
RULE_FLAGS = (
    Flag("default-node-pools", "Node pools to try in this order when a workload names none", placeholder="A,B"),
    Flag("training-time-limit", "Trainings are stopped when they have run so long; 0 for none", "duration"),
    Flag("training-idle-limit", "Trainings are stopped when their GPUs idle so long; 0 for none", "duration"),
    Flag("workspace-time-limit", "Workspaces are stopped when they have run so long; 0 for none", "duration"),
    Flag("training-node-types", "Node types that trainings may name", placeholder="A,B"),
    Flag("workspace-node-types", "Node types that workspaces may name", placeholder="A,B"),
    Flag("description", "Free text"),
)
_TYPES = "-node-types"
_RULES = {
    "training-time-limit": "trainingJobTimeLimitSeconds",
    "training-idle-limit": "trainingJobMaxIdleDurationSeconds",
    "workspace-time-limit": "interactiveJobTimeLimitSeconds",
}


def read_quotas(invocation: Invocation) -> list[dict[str, str]]:
    """The wishes per node pool, by part."""
    given: dict[str, str] = {}
    for flag, part in (
        ("gpu-quota", "gpu"),
        ("cpu-quota", "cpu"),
        ("memory-quota", "memory"),
        ("gpu-limit", "gpu-limit"),
        ("cpu-limit", "cpu-limit"),
        ("memory-limit", "memory-limit"),
        ("over-quota-weight", "weight"),
        ("rank", "rank"),
    ):
        if invocation.get(flag) is not None:
            given[part] = str(invocation.get(flag))
    wishes = [{"pool": invocation.get("nodepool", DEFAULT_POOL), **given}] if given else []
    return wishes + [_read_parts(text) for text in invocation.get("quota", ())]


def _read_parts(text: str) -> dict[str, str]:
    wish = {"pool": DEFAULT_POOL}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or name not in _PARTS:
            raise UsageError(f"--quota does not know '{part}'; its form is {_FORM}.{suggest(name, _PARTS)}")
        wish[name] = value
    return wish


def apply_quotas(wishes: Sequence[Mapping[str, str]], resources: Sequence[Json], pools: Sequence[Json]) -> list[Json]:
    """The quotas as REST wants them: what there is, with the wishes over it."""
    found = {entry["nodePool"]["name"]: dict(entry) for entry in resources}
    known = {str(pool["name"]): pool for pool in pools}
    for wish in wishes:
        name = wish["pool"]
        if name not in known:
            raise NameNotFound(f"There is no node pool '{name}'.{suggest(name, known)}")
        entry = found.setdefault(name, {"nodePool": {"id": str(known[name]["id"]), "name": name}})
        for part, text in wish.items():
            _apply(entry, part, text)
    return list(found.values())


def _apply(entry: Json, part: str, text: str) -> None:
    if part == "rank":
        entry["priority"] = text
    elif part == "weight":
        for resource in ("gpu", "cpu", "memory"):
            entry[resource] = {**_resource(entry, resource), "overQuotaWeight": _number(part, text)}
    elif part != "pool":
        resource, _, limit = part.partition("-")
        value = _amount(resource, part, text)
        if value is None and part == "gpu":
            # A guaranteed number of GPUs cannot be null in the interface; this is how it says unlimited.
            value = -1
        entry[resource] = {**_resource(entry, resource), "limit" if limit else "deserved": value}


def _resource(entry: Json, resource: str) -> Json:
    found = dict(entry.get(resource) or {})
    if resource == "memory":
        scale = {"MB": 10**6, "GB": 10**9}.get(str(found.get("units")), 2**20) / 2**20
        for name in ("deserved", "limit"):
            if isinstance(found.get(name), int | float):
                found[name] *= scale
        found["units"] = "Mib"
    return found


def _amount(resource: str, part: str, text: str) -> float | None:
    if text.lower() == UNLIMITED:
        return None
    if resource == "memory":
        return _bytes(part, text) / 2**20
    number = _number(part, text)
    return number * 1000 if resource == "cpu" else number


def _number(part: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{part} takes a number or `{UNLIMITED}`, not '{text}'.") from None


def _bytes(part: str, text: str) -> float:
    match = re.fullmatch(r"([0-9.]+)(k|M|G|T|Ki|Mi|Gi|Ti)?B?", text)
    if match is None:
        raise UsageError(f"{part} takes a quantity such as 64Gi or 64G, or `{UNLIMITED}`, not '{text}'.")
    return _number(part, match[1]) * _BYTES[match[2] or ""]


def read_settings(invocation: Invocation, before: Json) -> Json:
    """The members beside quotas that the flags set; rules that are not named stay as they are."""
    members: Json = {}
    if invocation.get("description") is not None:
        members["description"] = invocation.get("description")
    if invocation.get("default-node-pools") is not None:
        members["defaultNodePools"] = _words(invocation.get("default-node-pools"))
    rules = {name: invocation.get(flag) for flag, name in _RULES.items() if invocation.get(flag) is not None}
    if rules:
        kept = before.get("schedulingRules") or {}
        members["schedulingRules"] = {**kept, **{name: int(value) or None for name, value in rules.items()}}
    types = {
        flag.name.removesuffix(_TYPES): _words(invocation.get(flag.name))
        for flag in RULE_FLAGS
        if flag.name.endswith(_TYPES) and invocation.get(flag.name) is not None
    }
    if types:
        members["nodeTypes"] = {**(before.get("nodeTypes") or {}), **types}
    return members


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]
