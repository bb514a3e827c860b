"""Reads REST requests of both API versions, and workloads as the API shows them.

Called by `convert`, also with requests that it has built itself.
"""

import msgspec

from fairlead.formats.intermediate import IntermediateWorkload, Unconvertible, lines_of
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, outside_spec_names
from fairlead.model.errors import Invalid
from fairlead.model.spec.fields import struct_members

_REQUEST = ("name", "useGivenNameAsPrefix", "projectId", "clusterId", "templateId", "spec")
#: What the API shows of a workload besides what was sent.
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
_STATE = "is state of the workload, not part of its description"
_UNKNOWN = "is not a member of a creation request"
#: A placeholder for ids that only a server knows, while a request is checked.
_NOWHERE = "00000000-0000-0000-0000-000000000000"


def read_request(body: Plain, kind: Kind | None = None, file: str = "") -> IntermediateWorkload:
    """Read a creation request of either version, or a workload as the API shows it.

    REST names the kind in the path; without a kind, the first one that has every member is used. `file` is the name of
    the file in messages.
    """
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
        Loss(path=name, reason="is an id that only the server knows", value=request[name])
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


def _kind_of(request: Plain) -> Kind:
    spec = request.get("spec")
    given = {*(spec if isinstance(spec, dict) else ()), *(name for name in request if name not in (*_REQUEST, *_SHOWN))}
    fitting = [kind for kind in KINDS.values() if given <= set(struct_members(kind.spec))]
    return next(iter(fitting or KINDS.values()))


def from_request(kind: str, body: Plain, project: str, project_path: str) -> IntermediateWorkload:
    """Read a creation request that the caller has built, with the project and the place where it was named."""
    workload = read_request(body, KINDS[kind])
    return msgspec.structs.replace(workload, project=project, project_path=project_path)
