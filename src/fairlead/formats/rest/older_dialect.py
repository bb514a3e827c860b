"""The dialect of an older version of the Trainings API: numbers for ids and quantities, MIG profiles.

`requests.py` calls it if a request is not valid in the present dialect. The older documentation's own example breaks
rules of the present one; what is done instead becomes a remark of the submission, and so a condition of the workload.
"""

from collections.abc import Iterator
from typing import Any

DIALECT = "rest-older"
_MIG_TYPE = "migProfile"


def is_older(body: dict[str, Any]) -> bool:
    """Whether a request is in the older dialect: it has a number for the project or a quantity, or a MIG profile."""
    compute = _compute(body)
    return (
        _is_number(body.get("projectId"))
        or compute.get("migProfile") is not None
        or any(_is_number(item.get("quantity")) for item in _extended(compute))
    )


def to_present(body: dict[str, Any]) -> dict[str, Any]:
    """The same request with the types of the present dialect. Changes `body`, which only the caller uses."""
    if _is_number(body.get("projectId")):
        body["projectId"] = _text(body["projectId"])
    compute = _compute(body)
    for item in _extended(compute):
        if _is_number(item.get("quantity")):
            item["quantity"] = _text(item["quantity"])
    if compute.get("gpuRequestType") == _MIG_TYPE:
        # It has its own request type there; the profile alone is enough.
        del compute["gpuRequestType"]
    return body


def _compute(body: dict[str, Any]) -> dict[str, Any]:
    spec = body.get("spec")
    compute = spec.get("compute") if isinstance(spec, dict) else None
    return compute if isinstance(compute, dict) else {}


def _extended(compute: dict[str, Any]) -> Iterator[dict[str, Any]]:
    items = compute.get("extendedResources")
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
