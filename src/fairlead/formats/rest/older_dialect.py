"""The dialect of an older version of the Trainings API: numbers for ids and quantities, MIG profiles.

`requests.py` calls it if a request is not valid in the present dialect. The older documentation's own example breaks
rules of the present one; what is done instead becomes a remark of the submission, and so a condition of the workload.
"""

from collections.abc import Iterator
from typing import TypeGuard

from fairlead.formats.plain import Plain

_MIG_TYPE = "migProfile"


def is_older(body: Plain) -> bool:
    """Whether a request is in the older dialect: it has a number for the project or a quantity, or a MIG profile."""
    compute = _compute(body)
    return (
        _is_number(body.get("projectId"))
        or compute.get("migProfile") is not None
        or any(_is_number(item.get("quantity")) for item in _extended(compute))
    )


def to_present(body: Plain) -> Plain:
    """The same request with the types of the present dialect. Changes `body`, which only the caller uses."""
    project = body.get("projectId")
    if _is_number(project):
        body["projectId"] = _text(project)
    compute = _compute(body)
    for item in _extended(compute):
        quantity = item.get("quantity")
        if _is_number(quantity):
            item["quantity"] = _text(quantity)
    if compute.get("gpuRequestType") == _MIG_TYPE:
        # It has its own request type there; the profile alone is enough.
        del compute["gpuRequestType"]
    return body


def _compute(body: Plain) -> Plain:
    spec = body.get("spec")
    compute = spec.get("compute") if isinstance(spec, dict) else None
    return compute if isinstance(compute, dict) else {}


def _extended(compute: Plain) -> Iterator[Plain]:
    items = compute.get("extendedResources")
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
