"""The environment and the piped input of a caller, which a workload on the caller's own machine takes over.

A client stores them first and names them in its submission. They are sealed like secrets, belong to one workload, and
are deleted with it.
"""

import base64
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairlead.control.context import Context
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import ComplianceIssue, Invalid, Refused, TooMuch, refuse_malformed
from fairlead.model.records.caller_environment import CallerEnvironment
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import CALLER_ENVIRONMENTS

#: The most bytes that the variables, and the input, of one call may hold; together they fit into a request.
MAX_VARIABLES = 256 * 1024
MAX_INPUT = 512 * 1024
#: The most that one caller may have stored without a workload.
_MAX_UNUSED = 100
#: How long one without a workload is kept.
_UNUSED: Millis = 3600 * SECOND
#: What a member of the query is called that names one.
QUERY_NAME = "callerEnvironment"


class OpenedEnvironment(NamedTuple):
    variables: dict[str, str]
    #: Base64.
    input: str


NO_ENVIRONMENT = OpenedEnvironment({}, "")


async def create(context: Context, caller: Caller, variables: Mapping[str, str], input: str) -> CallerEnvironment:
    """Store variables, and an input in base64, for a submission that follows."""
    content = _decode(input)
    refuse_malformed(_issues(variables, content))
    unused = (Where("created_by", Comparison.EQUAL, caller.name), Where("workload_id", Comparison.EQUAL, ""))
    if await context.store.count(Query(collection=CALLER_ENVIRONMENTS, where=unused)) >= _MAX_UNUSED:
        raise TooMuch(f"You have {_MAX_UNUSED} environments without a workload, the maximum", 60)
    id = context.new_id()
    sealed = context.vault.seal({"variables": msgspec.json.encode(variables).decode(), "input": input}, id)
    record = CallerEnvironment(
        id=id,
        version=1,
        created_by=caller.name,
        created_at=context.clock(),
        names=tuple(sorted(variables)),
        input_bytes=len(content),
        sealed=sealed,
    )
    await context.store.commit(Change(writes=(Put(CALLER_ENVIRONMENTS, record),)))
    return record


def _decode(input: str) -> bytes:
    try:
        return base64.b64decode(input, validate=True)
    except ValueError:
        raise Invalid(issues=(ComplianceIssue("input", "is not valid base64"),)) from None


def _issues(variables: Mapping[str, str], content: bytes) -> list[ComplianceIssue]:
    issues = []
    if any(not name or "=" in name or "\x00" in name + value for name, value in variables.items()):
        issues.append(ComplianceIssue("variables", "has a name or value that no environment variable can have"))
    size = sum(len(name.encode()) + len(value.encode()) for name, value in variables.items())
    for field, number, allowed in (("variables", size, MAX_VARIABLES), ("input", len(content), MAX_INPUT)):
        if number > allowed:
            issues.append(ComplianceIssue(field, f"holds {number:,} bytes; {allowed:,} are allowed"))
    return issues


async def claim(context: Context, caller: Caller, id: str, cluster_id: str) -> CallerEnvironment | None:
    """The record that a submission names; raises Invalid if it cannot be used. None for an empty id."""
    if not id:
        return None
    if context.engine_of(cluster_id).is_cluster:
        details = "is for workloads on the caller's own machine; pods of a cluster run elsewhere"
        raise Invalid(issues=(ComplianceIssue(QUERY_NAME, details),))
    record: CallerEnvironment | None = await context.store.get(CALLER_ENVIRONMENTS, id)
    if record is None or record.created_by != caller.name or record.workload_id:
        raise Invalid(issues=(ComplianceIssue(QUERY_NAME, f"there is no unused environment {id[:60]}"),))
    return record


def claimed(record: CallerEnvironment, workload: Workload) -> Put:
    """The write that gives it to a workload; fails if another submission was faster."""
    return Put(
        CALLER_ENVIRONMENTS, msgspec.structs.replace(record, version=record.version + 1, workload_id=workload.id)
    )


async def open_environment(context: Context, workload: Workload) -> OpenedEnvironment:
    """The values for a pod's start; raises Refused if they are gone."""
    record: CallerEnvironment | None = await context.store.get(CALLER_ENVIRONMENTS, workload.caller_environment)
    if record is None:
        raise Refused("the environment of its caller was deleted")
    values = context.vault.open(record.sealed, record.id)
    variables: dict[str, str] = msgspec.json.decode(values["variables"], type=dict[str, str])
    return OpenedEnvironment(variables, values["input"])


async def delete_unused(context: Context, now: Millis) -> None:
    """Delete those with which nothing was submitted for an hour."""
    where = (
        Where("workload_id", Comparison.EQUAL, ""),
        Where("created_at", Comparison.AT_MOST, now - _UNUSED),
    )
    unused = await context.store.find(Query(collection=CALLER_ENVIRONMENTS, where=where))
    if unused:
        writes = tuple(Delete(CALLER_ENVIRONMENTS, record.id) for record in unused)
        await context.store.commit(Change(writes=writes))
