"""Flags of `what-if` as changes, in the JSON form that the server and a file take."""

import re

from fairlead.cli.command import Invocation
from fairlead.cli.flags import Flag, UsageError
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest

_SHARE = "OWNER[.RESOURCE][@POOL]=AMOUNT"
CHANGE_FLAGS = (
    Flag("quota", f"Quota of a project or department: {_SHARE}, as in team-b.gpu=12", repeatable=True, placeholder="…"),
    Flag("limit", f"Limit of a project or department: {_SHARE}", repeatable=True, placeholder="…"),
    Flag("weight", "Over-quota weight of a project or department, as in vision=3", repeatable=True, placeholder="…"),
    Flag("add-node", "Add nodes like an existing one, as in 2x=dgx-1", repeatable=True, placeholder="[COUNTx=]NODE"),
    Flag("remove-node", "Remove a node", repeatable=True, placeholder="NODE"),
    Flag("drain", "Cordon a node and stop its pods", repeatable=True, placeholder="NODE"),
    Flag("cordon", "Cordon a node: place nothing new on it", repeatable=True, placeholder="NODE"),
    Flag("uncordon", "Use a cordoned node again", repeatable=True, placeholder="NODE"),
    Flag("remove-workload", "Suspend or end a workload", repeatable=True, placeholder="[PROJECT/]NAME"),
    Flag("priority", "Priority of a workload, as in bert=high", repeatable=True, placeholder="NAME=PRIORITY"),
)
_NODE_ACTIONS = {"remove-node": "remove", "drain": "drain", "cordon": "cordon", "uncordon": "uncordon"}
_RESOURCES = ("gpu", "cpu", "memory")
#: As in `fairlead.model.priority`; the server knows them too.
_PRIORITIES = {
    "very-low": 25,
    "low": 40,
    "medium-low": 65,
    "medium": 80,
    "medium-high": 90,
    "high": 125,
    "very-high": 150,
}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def read_changes(invocation: Invocation) -> list[Json]:
    """The changes of all flags, in the order of their declaration."""
    changes: list[Json] = []
    for field in ("quota", "limit", "weight"):
        changes += [_share(field, text) for text in invocation.get(field, ())]
    changes += [_add_nodes(text) for text in invocation.get("add-node", ())]
    for flag, action in _NODE_ACTIONS.items():
        changes += [{"change": "node", "node": name, "action": action} for name in invocation.get(flag, ())]
    changes += [{"change": "removeWorkload", "workload": name} for name in invocation.get("remove-workload", ())]
    changes += [_priority(text) for text in invocation.get("priority", ())]
    return changes


def _share(field: str, text: str) -> Json:
    owner, equals, amount = text.rpartition("=")
    if not equals or not owner or not amount:
        raise UsageError(f"--{field} '{text}' is not {_SHARE}.")
    owner, _, pool = owner.partition("@")
    name, dot, resource = owner.rpartition(".")
    if not dot or resource not in _RESOURCES:
        name, resource = owner, "gpu"
    change: Json = {"change": "share", "queue": name, "field": field, "resource": resource}
    change["value"] = _amount(field, resource if field != "weight" else "gpu", amount)
    return change | ({"nodePool": pool} if pool else {})


def _amount(field: str, resource: str, text: str) -> float:
    if text == "unlimited" and field != "weight":
        return -1.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]i?|Ki)?", text)
    if match is None or (match[2] and resource != "memory"):
        if field == "weight":
            raise UsageError(f"--weight: '{text}' is not a weight; write a number that is not negative.")
        raise UsageError(f"--{field}: '{text}' is not an amount of {resource}; write a number or `unlimited`.")
    factor = {"gpu": 1, "cpu": 1000, "memory": _BYTES[match[2] or ""]}[resource]
    return float(match[1]) * factor


def _add_nodes(text: str) -> Json:
    match = re.fullmatch(r"(?:(\d+)x=)?(.+)", text)
    if match is None or match[1] == "0":
        raise UsageError(f"--add-node '{text}' is not [COUNTx=]NODE, as in 2x=dgx-1.")
    return {"change": "addNodes", "like": match[2], "count": int(match[1] or 1)}


def _priority(text: str) -> Json:
    name, equals, value = text.rpartition("=")
    if not equals:
        raise UsageError(f"--priority '{text}' is not NAME=PRIORITY, as in bert=high.")
    if value not in _PRIORITIES and not value.isdecimal():
        raise UsageError(f"There is no priority '{value}'.{suggest(value, _PRIORITIES)}")
    return {"change": "priority", "workload": name, "value": _PRIORITIES.get(value) or int(value)}
