"""REST requests, of either version of the interface, as workloads between dialects; workloads as the interface shows
them too. Called by `convert`, and by whoever has put a request together otherwise.
"""

from typing import Any

import msgspec

from fairlead.formats.intermediate import IntermediateWorkload, Unconvertible, lines_of
from fairlead.formats.losses import Loss
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, outside_spec_names
from fairlead.model.errors import Invalid
from fairlead.model.spec.fields import struct_members

_REQUEST = ("name", "useGivenNameAsPrefix", "projectId", "clusterId", "templateId", "spec")
#: What the interface shows of a workload beside what was sent.
_SHOWN = (
    "workloadId",
    "requestedName",
    "departmentId",
    "createdBy",
    "createdAt",
    "deletedAt",
    "desiredPhase",
    "actualPhase",
)
_STATE = "tells how far a workload has come, not what it is"
_UNKNOWN = "is no member of a creation request"
#: Stands in for ids that only a server knows, while a request is checked.
_NOWHERE = "00000000-0000-0000-0000-000000000000"


def read_request(body: dict[str, Any], kind: Kind | None = None, file: str = "") -> IntermediateWorkload:
    """A creation request of either dialect, or a workload as the interface shows it; REST names its kind in the path,
    so that without one it is the first that knows every member. `file` stands before each mistake."""
    kind = kind or _kind_of(body)
    known = (*_REQUEST, *outside_spec_names(kind))
    request = {name: value for name, value in body.items() if name in known}
    losses = [
        Loss(path=name, reason=_STATE if name in _SHOWN else _UNKNOWN, value=value)
        for name, value in body.items()
        if name not in known
    ]
    filled = {"name": "workload", "projectId": "0", "clusterId": _NOWHERE, **request}
    try:
        submission = read_submission(kind, msgspec.json.encode(filled))
    except Invalid as invalid:
        lines = [f"{issue.field}: {issue.details}" for issue in invalid.issues]
        raise Unconvertible(lines_of(file, lines)) from None
    ids = ("projectId", "clusterId", "templateId")
    losses += [
        Loss(path=name, reason="is an id that only its server knows", value=request[name])
        for name in ids
        if request.get(name) is not None
    ]
    spec = msgspec.json.decode(msgspec.json.encode(submission.spec))
    return IntermediateWorkload(
        kind=kind,
        name=submission.name,
        is_prefix=submission.use_given_name_as_prefix,
        spec=spec,
        losses=losses,
        remarks=list(submission.remarks),
    )


def _kind_of(request: dict[str, Any]) -> Kind:
    spec = request.get("spec")
    given = {*(spec if isinstance(spec, dict) else ()), *(name for name in request if name not in (*_REQUEST, *_SHOWN))}
    fitting = [kind for kind in KINDS.values() if given <= set(struct_members(kind.spec))]
    return next(iter(fitting or KINDS.values()))


def from_request(kind: str, body: dict[str, Any], project: str, project_path: str) -> IntermediateWorkload:
    """A workload that somebody else has put together as a creation request, with the project and where it was named."""
    found = read_request(body, KINDS[kind])
    return msgspec.structs.replace(found, project=project, project_path=project_path)
