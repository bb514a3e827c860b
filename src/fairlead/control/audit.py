"""The audit: who did what from where, with which result.

Use cases write a line in the transaction of their change, with `audit_line`. Refusals, sign-ins and sessions change no
record: the API hands them to `AuditWriter`, which writes them together, shortly afterwards.
"""

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import NamedTuple

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField, as_conditions, parse_filters
from fairlead.control.lists import ListRequest
from fairlead.model.clock import Millis
from fairlead.model.errors import FairleadError
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.event import AuditLine
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Query, Where
from fairlead.store.collections import AUDIT, WORKLOADS

log = logging.getLogger("fairlead.audit")
#: Seconds for which lines are collected, and how many are kept while the store cannot be written.
_PAUSE = 0.5
_ACTIONS = ("create", "update", "delete")
_MAX_WAITING_LINES = 10_000


class AuditSubject(NamedTuple):
    """What a change was about. Without a cluster it is of the whole installation."""

    collection: str
    id: str
    name: str
    cluster_id: str = ""


class RequestFacts(msgspec.Struct, frozen=True):
    """The request that is being answered."""

    address: str = ""
    method: str = ""
    url: str = ""


_NO_REQUEST = RequestFacts()
#: Set by the API around every operation.
current_request: ContextVar[RequestFacts] = ContextVar("current_request", default=_NO_REQUEST)

AUDIT_FIELDS: dict[str, FilterField[AuditLine]] = {
    "timestamp": FilterField("time", "at"),
    "subject": FilterField(column="caller"),
    "subject_type": FilterField(column="caller_type", stored_words={"user": "User", "app": "App"}),
    "source_ip": FilterField(column="address"),
    "action": FilterField(column="action"),
    "http_method": FilterField(column="method"),
    "result": FilterField(column="result"),
    "url": FilterField(column="url"),
    "entity_type": FilterField(column="subject"),
    "entity_name": FilterField(column="subject_name"),
    "entity_id": FilterField(column="subject_id"),
    "cluster_id": FilterField(column="cluster_id"),
}
#: The names by which the audit is filtered; lines know the id of their cluster, whose name can change.
AUDIT_FILTER_NAMES = (*AUDIT_FIELDS, "cluster_name")


def subject_of(workload: Workload) -> AuditSubject:
    return AuditSubject(WORKLOADS.name, workload.id, workload.name, workload.cluster_id)


def audit_line(
    at: Millis,
    caller: Caller,
    operation: str,
    subject: AuditSubject,
    request_id: str = "",
    details: str = "",
) -> AuditLine:
    """A line about a change that succeeds together with it."""
    request = current_request.get()
    return AuditLine(
        at=at,
        caller=caller.name,
        caller_type=caller.type,
        operation=operation,
        action=operation if operation in _ACTIONS else "update",
        subject=subject.collection,
        subject_id=subject.id,
        subject_name=subject.name,
        cluster_id=subject.cluster_id,
        request_id=request_id,
        details=details,
        address=request.address,
        method=request.method,
        url=request.url,
    )


#: Members that say nothing about a change, or that nobody may read.
_UNTOLD = frozenset(
    (
        "id",
        "version",
        "created_at",
        "created_by",
        "updated_at",
        "updated_by",
        "sealed",
        "connection",
        "secret_hash",
        "reset_hash",
        "login_sessions",
        "sign_ins",
        "generation",
        "data",
        "manifest",
    )
)
_VARIABLES = "environmentVariables"
#: `https://user:password@host`, as in the URL of a Git repository.
_ACCOUNT_IN_URL = re.compile(r"://[^/?#\s]*@")


def changes_between(before: object, after: object) -> dict[str, tuple[object, object]]:
    """The members of a record that differ, with both values; all of a new or deleted record. Without secrets."""
    old, new = (_members(record) for record in (before, after))
    return differences(old, new)


def _members(record: object) -> dict[str, object]:
    """The members that the audit tells; those of a spec one by one."""
    if record is None:
        return {}
    members: dict[str, object] = msgspec.json.decode(msgspec.json.encode(record))
    spec = members.pop("spec", None)
    if isinstance(spec, dict):
        members |= {f"spec.{name}": value for name, value in spec.items()}
    return {name: value for name, value in members.items() if name not in _UNTOLD}


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """The members that differ, before and after."""
    return {
        name: (without_values(name, old.get(name)), without_values(name, new.get(name)))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }


def without_values(name: str, value: object) -> object:
    """Variables by name only, URLs without accounts: people put secrets there, and the audit is kept and exported."""
    if isinstance(value, dict):
        is_variables = name.rpartition(".")[2] == _VARIABLES
        return {
            member: without_values(_VARIABLES if is_variables else member, inner) for member, inner in value.items()
        }
    if name.rpartition(".")[2] == _VARIABLES and isinstance(value, list):
        return [item.get("name") if isinstance(item, dict) else item for item in value]
    if isinstance(value, list):
        return [without_values("", item) for item in value]
    return _ACCOUNT_IN_URL.sub("://***@", value) if isinstance(value, str) else value


class AuditWriter:
    """Writes lines that belong to no other change. One per server."""

    def __init__(self, context: Context, pause: float = _PAUSE) -> None:
        self._context = context
        self._pause = pause
        self._lines: list[AuditLine] = []
        self._task: asyncio.Task[None] | None = None
        #: Set while the server stops: nothing is collected any longer.
        self._stopping = asyncio.Event()

    def add(self, line: AuditLine) -> None:
        if len(self._lines) >= _MAX_WAITING_LINES:
            log.error("The audit log cannot be written; an entry is lost: %s", line)
            return
        self._lines.append(line)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._lines and not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._pause)
            await self.flush()

    async def flush(self) -> None:
        """Write what is collected; it stays if the store cannot be written."""
        lines, self._lines = self._lines, []
        try:
            await self._context.store.commit(Change(audit=tuple(lines)))
        except FairleadError as error:
            log.warning("The audit log cannot be written yet, retrying: %s", error)
            self._lines = lines + self._lines

    async def stop(self) -> None:
        """Write what is left. A commit that is in progress is not cancelled, because its lines would be lost."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        self._stopping.clear()
        if self._lines:
            await self.flush()


async def find_audit(
    context: Context, caller: Caller, start: Millis, end: Millis, request: ListRequest
) -> tuple[list[AuditLine], int]:
    """A page of the lines of a period, newest last, and how many there are."""
    access.check_at(caller, "audit:read", INSTALLATION_SCOPE_KEY)
    directory = context.directory
    # What concerns the whole installation is shown with its first cluster.
    names = {"": directory.cluster.name, **{id: cluster.name for id, cluster in directory.clusters.items()}}
    by_name: FilterField[AuditLine] = FilterField(column="cluster_id", stored_words=names)
    conditions = as_conditions(parse_filters(request.filter_by, {**AUDIT_FIELDS, "cluster_name": by_name}))
    if conditions is None:
        return [], 0
    where = (Where("at", Comparison.AT_LEAST, start), Where("at", Comparison.AT_MOST, end), *conditions)
    sort = AUDIT_FIELDS[request.sort_by].column if request.sort_by else "at"
    query = Query(
        collection=AUDIT,
        where=where,
        # Lines of one moment in the order in which they were written.
        order=((sort, request.descending), ("number", request.descending)),
        offset=request.offset,
        limit=request.limit,
    )
    return await context.store.find(query), await context.store.count(Query(collection=AUDIT, where=where))
