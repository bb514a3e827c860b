"""Secrets, config maps and user credentials: create, read, change and delete.

Called by the API. Values of secrets are encrypted at once and leave only to a pod, through `references/resolve.py`.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.lists import ListRequest, Page, load_page
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.control.references.users import refuse_in_use
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound, refuse_malformed
from fairlead.model.records.assets import ConfigMap, NamedRecord, Reference, Secret, project_scope_key, user_scope_key
from fairlead.model.records.people import Caller
from fairlead.model.syntax import Syntax, flaw_of
from fairlead.store.base import Collection, Comparison, Where
from fairlead.store.collections import CONFIG_MAPS, SECRETS

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z")
_LONGEST = 253
#: The maximum size of one object, as in Kubernetes.
MAX_BYTES = 1 << 20


class ObjectInput(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of a secret, a config map or a user credential."""

    name: str = ""
    project_id: str = ""
    description: str = ""
    type: str = "generic"
    data: Mapping[str, str] = {}


class ObjectKind(msgspec.Struct, frozen=True, kw_only=True):
    """How secrets, config maps and user credentials differ."""

    #: Its resource in access rules and in the audit.
    resource: str
    reference: Reference
    collection: Collection[NamedRecord]
    is_secret: bool = True
    #: Whether it belongs to its creator instead of a project.
    is_own: bool = False

    @property
    def title(self) -> str:
        return self.reference.value


SECRET = ObjectKind(resource="secrets", reference=Reference.SECRET, collection=SECRETS)
CONFIG_MAP = ObjectKind(resource="config-maps", reference=Reference.CONFIG_MAP, collection=CONFIG_MAPS, is_secret=False)
USER_CREDENTIAL = ObjectKind(
    resource="user-credentials", reference=Reference.USER_CREDENTIAL, collection=SECRETS, is_own=True
)


def object_issues(name: str, data: Mapping[str, str], path: str = "data") -> list[ComplianceIssue]:
    """The issues of a name and its data. They never repeat a value."""
    issues = []
    if not name or len(name) > _LONGEST or not _NAME.match(name):
        rule = "lower-case letters, digits, hyphens and dots; start and end with a letter or digit"
        issues.append(ComplianceIssue("name", f"is '{name[:80]}'; up to {_LONGEST} of these are allowed: {rule}"))
    issues += [
        ComplianceIssue(path, f"has the key '{key[:80]}'; use letters, digits, '-', '_' and '.', not '..' first")
        for key in data
        if len(key) > _LONGEST or flaw_of(Syntax.OBJECT_KEY, key)
    ]
    if sum(len(key) + len(value.encode("utf-8", "replace")) for key, value in data.items()) > MAX_BYTES:
        issues.append(ComplianceIssue(path, f"holds more than {MAX_BYTES} bytes, the maximum of one object"))
    if any("\x00" in value for value in data.values()):
        issues.append(
            ComplianceIssue(path, "has a value with a NUL character, which environment variables cannot hold")
        )
    return issues


async def create(
    context: Context, caller: Caller, kind: ObjectKind, input: ObjectInput, request_id: str = ""
) -> NamedRecord:
    scope_key = _scope_key(context, caller, kind, input)
    issues = object_issues(input.name, input.data)
    refuse_malformed(issues)
    record = _record(context, caller, kind, input, scope_key)
    message = f"{kind.title.capitalize()} {input.name} was created by {caller.name}"
    step = RecordChange(kind.collection, record.id, record, "Created", message)
    try:
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    except Conflict as error:
        if not error.columns:
            raise
        raise Conflict(f"A {kind.title} named {input.name} already exists", error.columns) from None
    await recheck_waiting_workloads(context)
    return record


def _scope_key(context: Context, caller: Caller, kind: ObjectKind, input: ObjectInput) -> str:
    if kind.is_own:
        access.check(caller, f"{kind.resource}:create")
        return user_scope_key(caller.name)
    return project_scope_key(scopes.load_project(context, caller, f"{kind.resource}:create", input.project_id).id)


def _record(context: Context, caller: Caller, kind: ObjectKind, input: ObjectInput, scope_key: str) -> NamedRecord:
    now = context.clock()
    id = context.new_id()
    head: dict[str, Any] = {
        "id": id,
        "version": 1,
        "name": input.name,
        "scope_key": scope_key,
        "description": input.description,
        "created_at": now,
        "created_by": caller.name,
        "updated_at": now,
        "updated_by": caller.name,
    }
    if not kind.is_secret:
        return ConfigMap(**head, data=dict(input.data))
    sealed = context.vault.seal(input.data, id)
    return Secret(**head, type=input.type, keys=tuple(sorted(input.data)), sealed=sealed)


async def update(
    context: Context, caller: Caller, kind: ObjectKind, id: str, input: ObjectInput, request_id: str = ""
) -> NamedRecord:
    """Replace its values; its name and scope stay. Environment variables of running pods do not change."""

    async def attempt() -> NamedRecord:
        before = await load(context, caller, kind, id, "update")
        issues = object_issues(before.name, input.data)
        refuse_malformed(issues)
        members: dict[str, Any] = {
            "version": before.version + 1,
            "updated_at": context.clock(),
            "updated_by": caller.name,
            "description": input.description or before.description,
        }
        if kind.is_secret:
            members |= {"keys": tuple(sorted(input.data)), "sealed": context.vault.seal(input.data, id)}
        else:
            members["data"] = dict(input.data)
        after: NamedRecord = msgspec.structs.replace(before, **members)
        message = f"{kind.title.capitalize()} {before.name} was changed by {caller.name}"
        step = RecordChange(kind.collection, id, after, "Updated", message)
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)


async def load(context: Context, caller: Caller, kind: ObjectKind, id: str, verb: str = "read") -> NamedRecord:
    record: NamedRecord | None = await context.store.get(kind.collection, id)
    if record is None or record.scope_key.startswith("user/") is not kind.is_own:
        raise NotFound(f"There is no {kind.title} with the id {id[:60]!r}")
    reading = f"{kind.resource}:read"
    scopes.check_visible(context, caller, reading, record.scope_key, f"{kind.title} with the id {id[:60]!r}")
    if verb != "read" and not kind.is_own:
        access.check_at(caller, f"{kind.resource}:{verb}", record.scope_key)
    return record


async def find(
    context: Context, caller: Caller, kind: ObjectKind, request: ListRequest, project_id: str = ""
) -> Page[NamedRecord]:
    access.check(caller, f"{kind.resource}:read", project_id)
    if kind.is_own:
        scope = Where("place", Comparison.EQUAL, user_scope_key(caller.name))
    elif project_id:
        scope = Where("place", Comparison.ONE_OF, scopes.scope_keys_of_project(context, project_id))
    else:
        seen = scopes.visible_scope_keys(context, caller, f"{kind.resource}:read")
        if seen is None:
            scope = Where("place", Comparison.STARTS, "")
        else:
            scope = Where("place", Comparison.ONE_OF, [place for place in seen if not place.startswith("user/")])
    others = () if kind.is_own else (Where("place", Comparison.LACKS, "user/"),)
    return await load_page(context, kind.collection, (scope, *others), request)


async def delete(context: Context, caller: Caller, kind: ObjectKind, id: str, request_id: str = "") -> None:
    """Delete it, unless a workload that has not ended names it."""
    record = await load(context, caller, kind, id, "delete")
    if isinstance(record, Secret) and record.asset_id:
        raise Invalid(f"The secret {record.name} belongs to a credential; delete the credential {record.asset_id}")
    await refuse_in_use(context, caller, kind.reference, record)
    message = f"{kind.title.capitalize()} {record.name} was deleted by {caller.name}"
    step = RecordChange(kind.collection, id, None, "Deleted", message)
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)
