"""Flags for the quotas and rules of projects and departments, and the REST members that they set.

`--gpu-quota` and similar flags set the quota in one node pool: the default one, or the one that `--nodepool` names.
`--quota` sets the quota in any node pool and can be repeated.
"""

import re
from collections.abc import Mapping, Sequence

from fairlead.cli.command import Invocation
from fairlead.cli.flags import Flag, UsageError
from fairlead.client import NameNotFound
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest

DEFAULT_POOL = "default"
UNLIMITED = "unlimited"
_AMOUNTS = ("gpu", "cpu", "memory", "gpu-limit", "cpu-limit", "memory-limit")
_PARTS = ("pool", *_AMOUNTS, "weight", "rank")
_FORM = "pool=NAME,gpu=4,cpu=16,memory=64Gi,gpu-limit=8,cpu-limit=…,memory-limit=…,weight=2,rank=High"
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

QUOTA_FLAGS = (
    Flag("gpu-quota", "Guaranteed GPUs, fractions allowed, or `unlimited`", placeholder="NUMBER"),
    Flag("cpu-quota", "Guaranteed CPU cores, or `unlimited`", placeholder="CORES"),
    Flag("memory-quota", "Guaranteed memory, such as 64Gi, or `unlimited`", placeholder="QUANTITY"),
    Flag("gpu-limit", "Maximum number of GPUs, or `unlimited`", placeholder="NUMBER"),
    Flag("cpu-limit", "Maximum number of CPU cores, or `unlimited`", placeholder="CORES"),
    Flag("memory-limit", "Maximum memory, or `unlimited`", placeholder="QUANTITY"),
    Flag("over-quota-weight", "Weight for its share of unused resources", "number"),
    Flag("rank", "Rank among its siblings, from VeryLow to VeryHigh", placeholder="RANK"),
    Flag("nodepool", "Node pool that the quota flags apply to", placeholder="NAME", default=DEFAULT_POOL),
    Flag("quota", f"The same for any node pool: {_FORM}", repeatable=True, placeholder="PARTS"),
)
RULE_FLAGS = (
    Flag("default-node-pools", "Node pools to try in this order if a workload names none", placeholder="A,B"),
    Flag("training-time-limit", "Stop trainings after this running time; 0 for no limit", "duration"),
    Flag("training-idle-limit", "Stop trainings after their GPUs idle this long; 0 for no limit", "duration"),
    Flag("workspace-time-limit", "Stop workspaces after this running time; 0 for no limit", "duration"),
    Flag(
        "workspace-idle-limit",
        "Stop workspaces that cannot be preempted after their GPUs idle this long; 0 for no limit",
        "duration",
    ),
    Flag(
        "preemptible-workspace-idle-limit",
        "Stop preemptible workspaces after their GPUs idle this long; 0 for no limit",
        "duration",
    ),
    Flag("training-node-types", "Node types that trainings can use", placeholder="A,B"),
    Flag("workspace-node-types", "Node types that workspaces can use", placeholder="A,B"),
    Flag("description", "Description"),
)
_TYPES = "-node-types"
_RULES = {
    "training-time-limit": "trainingJobTimeLimitSeconds",
    "training-idle-limit": "trainingJobMaxIdleDurationSeconds",
    "workspace-time-limit": "interactiveJobTimeLimitSeconds",
    "workspace-idle-limit": "interactiveJobMaxIdleDurationSeconds",
    "preemptible-workspace-idle-limit": "interactiveJobPreemptIdleDurationSeconds",
}


def read_quotas(invocation: Invocation) -> list[dict[str, str]]:
    """The given quotas per node pool, by part."""
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
    requests = [{"pool": invocation.get("nodepool", DEFAULT_POOL), **given}] if given else []
    return requests + [_read_parts(text) for text in invocation.get("quota", ())]


def _read_parts(text: str) -> dict[str, str]:
    request = {"pool": DEFAULT_POOL}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or name not in _PARTS:
            raise UsageError(f"--quota has no part '{part}'; write {_FORM}.{suggest(name, _PARTS)}")
        request[name] = value
    return request


def apply_quotas(requests: Sequence[Mapping[str, str]], resources: Sequence[Json], pools: Sequence[Json]) -> list[Json]:
    """The quotas as REST takes them: the present ones, with the given ones over them."""
    quotas = {entry["nodePool"]["name"]: dict(entry) for entry in resources}
    known = {str(pool["name"]): pool for pool in pools}
    for request in requests:
        name = request["pool"]
        if name not in known:
            raise NameNotFound(f"There is no node pool '{name}'.{suggest(name, known)}")
        entry = quotas.setdefault(name, {"nodePool": {"id": str(known[name]["id"]), "name": name}})
        for part, text in request.items():
            _apply(entry, part, text)
    return list(quotas.values())


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
            # A GPU quota cannot be null in the API; -1 means unlimited there.
            value = -1
        entry[resource] = {**_resource(entry, resource), "limit" if limit else "deserved": value}


def _resource(entry: Json, resource: str) -> Json:
    quota = dict(entry.get(resource) or {})
    if resource == "memory":
        scale = {"MB": 10**6, "GB": 10**9}.get(str(quota.get("units")), 2**20) / 2**20
        for name in ("deserved", "limit"):
            if isinstance(quota.get(name), int | float):
                quota[name] *= scale
        quota["units"] = "Mib"
    return quota


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
        raise UsageError(f"{part} must be a number or `{UNLIMITED}`, not '{text}'.") from None


def _bytes(part: str, text: str) -> float:
    match = re.fullmatch(r"([0-9.]+)(k|M|G|T|Ki|Mi|Gi|Ti)?B?", text)
    if match is None:
        raise UsageError(f"{part} must be a quantity such as 64Gi or 64G, or `{UNLIMITED}`, not '{text}'.")
    return _number(part, match[1]) * _BYTES[match[2] or ""]


def read_settings(invocation: Invocation, before: Json) -> Json:
    """The members besides quotas that the flags set; other rules stay unchanged."""
    members: Json = {}
    if invocation.get("description") is not None:
        members["description"] = invocation.get("description")
    if invocation.get("default-node-pools") is not None:
        members["defaultNodePools"] = _words(invocation.get("default-node-pools"))
    rules = {name: invocation.get(flag) for flag, name in _RULES.items() if invocation.get(flag) is not None}
    if rules:
        present_rules = before.get("schedulingRules") or {}
        members["schedulingRules"] = {**present_rules, **{name: int(value) or None for name, value in rules.items()}}
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
