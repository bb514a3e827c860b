"""The routes of the audit: lines of a period as JSON, and as a file."""

import csv
import io
import uuid

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_integer, query_text, wrong_parameter
from fairlead.api.http.crud import failing
from fairlead.api.http.list_parameters import filter_by, sort_by, sort_order
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Instant, Uuid
from fairlead.control.audit import AUDIT_FIELDS, AUDIT_FILTER_NAMES, find_audit
from fairlead.control.lists import ListRequest
from fairlead.model.clock import Millis, from_iso, iso
from fairlead.model.records.event import AuditLine

_MAX_ENTRIES = 1000
_FILE_TYPES = ("CSV", "JSON")
_BASE = "/api/v1/audit/log"


class AuditEntry(msgspec.Struct, kw_only=True):
    """Who did what, from where, and what came of it."""

    id: Uuid
    timestamp: Instant
    tenant_id: str
    subject: str
    subject_type: str
    action: str
    result: str
    entity_type: str
    entity_id: str
    entity_name: str
    cluster_id: Uuid
    cluster_name: str
    #: The operation, what it changed, and the id of the request.
    metadata: dict[str, str]
    source_ip: str | msgspec.UnsetType = msgspec.UNSET
    http_method: str | msgspec.UnsetType = msgspec.UNSET
    http_status_code: int | msgspec.UnsetType = msgspec.UNSET
    url: str | msgspec.UnsetType = msgspec.UNSET


class AuditPage(msgspec.Struct, kw_only=True):
    audit_logs: list[AuditEntry]
    #: The same list; the contract requires it under this name.
    logs: list[AuditEntry]
    total: int
    next: int | msgspec.UnsetType = msgspec.UNSET


def _instant(call: Call, name: str) -> Millis:
    text = query_text(call, name)
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise wrong_parameter(name, "must be a date and time in ISO 8601, such as 2026-01-31T12:00:00Z") from None


def _request(call: Call) -> ListRequest:
    return ListRequest(
        filter_by=query_text(call, "filterBy"),
        sort_by=query_choice(call, "sortBy", tuple(AUDIT_FIELDS)),
        descending=query_choice(call, "sortOrder", ("asc", "desc"), "asc") == "desc",
        offset=query_integer(call, "offset", 0),
        limit=query_integer(call, "numberOfSamples", 20, 0, _MAX_ENTRIES),
    )


async def _load(call: Call, request: ListRequest) -> tuple[list[AuditEntry], int]:
    start, end = _instant(call, "start"), _instant(call, "end")
    lines, total = await find_audit(call.context, call.caller, start, end, request)
    return [_render(call, line) for line in lines], total


def _render(call: Call, line: AuditLine) -> AuditEntry:
    directory = call.context.directory
    # The contract wants a cluster also for what is of the whole installation.
    cluster = directory.clusters.get(line.cluster_id, directory.cluster)
    metadata = {"operation": line.operation, "requestId": line.request_id, "details": line.details}
    if line.changes:
        metadata["changes"] = msgspec.json.encode(line.changes).decode()
    return AuditEntry(
        id=str(uuid.uuid5(uuid.UUID(directory.cluster.id), f"audit/{line.number}")),
        timestamp=iso(line.at),
        tenant_id=str(cluster.tenant_id),
        subject=line.caller,
        subject_type="User" if line.caller_type == "user" else "App",
        action=line.action or "update",
        result=line.result,
        entity_type=line.subject,
        entity_id=line.subject_id,
        entity_name=line.subject_name,
        cluster_id=cluster.id,
        cluster_name=cluster.name,
        metadata={name: text for name, text in metadata.items() if text},
        # The contract knows addresses of IPv4 only.
        source_ip=line.address if "." in line.address else msgspec.UNSET,
        http_method=line.method or msgspec.UNSET,
        http_status_code=line.status or msgspec.UNSET,
        url=line.url or msgspec.UNSET,
    )


async def _get(call: Call) -> Response:
    request = _request(call)
    entries, total = await _load(call, request)
    after = request.offset + len(entries)
    following = after if after < total and entries else msgspec.UNSET
    return as_json(AuditPage(audit_logs=entries, logs=entries, total=total, next=following))


async def _download(call: Call) -> Response:
    older = query_choice(call, "file_type", _FILE_TYPES, "CSV")
    form = query_choice(call, "fileType", _FILE_TYPES, older)
    given = _request(call)
    if query_text(call, "numberOfSamples"):
        entries, _ = await _load(call, given)
    else:
        entries = await _load_all(call, given)
    body = msgspec.json.encode(entries) if form == "JSON" else _as_csv(entries)
    headers = {"content-disposition": f'attachment; filename="audit.{form.lower()}"'}
    return Response(body, headers=headers, media_type="application/octet-stream")


async def _load_all(call: Call, given: ListRequest) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    total = 1
    while len(entries) < total:
        page = msgspec.structs.replace(given, offset=len(entries), limit=_MAX_ENTRIES)
        more, total = await _load(call, page)
        entries += more
        if not more:
            break
    return entries


def _as_csv(entries: list[AuditEntry]) -> bytes:
    rows = [msgspec.to_builtins(entry) for entry in entries]
    names = [name for name in AuditEntry.__struct_fields__ if name != "metadata"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*names, "operation", "details", "changes", "request_id"])
    for row in rows:
        metadata = row["metadata"]
        details = [metadata.get(name, "") for name in ("operation", "details", "changes", "requestId")]
        writer.writerow([_cell(value) for value in [*(row.get(name, "") for name in names), *details]])
    return text.getvalue().encode()


def _cell(value: object) -> str:
    """Text that a spreadsheet does not take for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


_PERIOD = (
    Parameter(name="start", schema={"type": "string", "format": "date-time"}, description="The first moment."),
    Parameter(name="end", schema={"type": "string", "format": "date-time"}, description="The last moment."),
)
_NUMBER = Parameter(
    name="numberOfSamples", schema={"type": "integer", "default": 20, "minimum": 0, "maximum": _MAX_ENTRIES}
)
_FAILURES = failing(400, 401, 403, 500, 503)
AUDIT_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=_BASE,
        id="getAuditLogs",
        tag="Audit",
        summary="List who did what in a period",
        run=_get,
        parameters=(
            *_PERIOD,
            Parameter(name="offset", schema={"type": "integer", "format": "int32"}),
            _NUMBER,
            sort_order(),
            sort_by(AUDIT_FIELDS),
            filter_by(AUDIT_FILTER_NAMES),
        ),
        answers={200: AuditPage, **_FAILURES},
    ),
    Operation(
        method="GET",
        path=f"{_BASE}/file",
        id="downloadAuditLogs",
        tag="Audit",
        summary="Download who did what in a period, as CSV or JSON",
        run=_download,
        parameters=(
            Parameter(name="file_type", schema={"type": "string", "enum": list(_FILE_TYPES), "default": "CSV"}),
            Parameter(
                name="fileType",
                schema={"type": "string", "enum": list(_FILE_TYPES)},
                description="As file_type; NVIDIA's client spells it like this.",
                is_addition=True,
            ),
            *_PERIOD,
            _NUMBER,
            filter_by(AUDIT_FILTER_NAMES),
        ),
        answers={200: {"type": "string", "format": "binary"}, **_FAILURES},
        content_type="application/octet-stream",
    ),
)
