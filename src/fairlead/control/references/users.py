"""Finds the workloads that use an object, in the specs of workloads that have not ended.

Called before an object is deleted. It reads every open workload of the projects that can see the object: deletions are
rare, so there is no index.
"""

from collections.abc import Sequence

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.kinds import KINDS
from fairlead.kinds.kind import read_stored_spec
from fairlead.model.english import enumerate_names
from fairlead.model.errors import InUse
from fairlead.model.records.assets import NamedRecord, Reference
from fairlead.model.records.named_message import may_name
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.model.spec.references import references
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import WORKLOADS

_SHOWN = 3


async def find_users(context: Context, what: Reference, record: NamedRecord, name: str = "") -> list[Workload]:
    """The workloads that have not ended and name the record."""
    name = name or (record.id if what is Reference.DATA_VOLUME else record.name)
    where = [Where("is_active", Comparison.EQUAL, 1)]
    if record.scope_key.startswith("project/") and what is not Reference.DATA_VOLUME:
        where.append(Where("project_id", Comparison.EQUAL, record.scope_key.removeprefix("project/")))
    elif record.scope_key.startswith("user/"):
        where.append(Where("submitted_by", Comparison.EQUAL, record.scope_key.removeprefix("user/")))
    workloads = await context.store.find(Query(collection=WORKLOADS, where=tuple(where)))
    return [workload for workload in workloads if _uses(workload, what, name)]


def _uses(workload: Workload, what: Reference, name: str) -> bool:
    raw = bytes(workload.spec)
    if name.encode() not in raw:
        return False
    kind = KINDS[workload.kind]
    # Also a claim that would have been created if it had not existed.
    return any(use.reference is what and use.name == name for use in references(read_stored_spec(kind, raw), "spec"))


async def refuse_in_use(context: Context, caller: Caller, what: Reference, record: NamedRecord) -> None:
    """Raise InUse for a record that workloads use; those that the caller may not see are counted."""
    users = await find_users(context, what, record)
    if users:
        visible = access.visible_projects(caller)
        names = [workload.name for workload in users if may_name(workload.project_id, visible)]
        raise in_use(record.name, names, len(users) - len(names), "workload")


def in_use(name: str, users: Sequence[str], hidden: int, noun: str) -> InUse:
    """The refusal to delete something, with some of its users by name, and how many the caller may not see."""
    shown = list(users[:_SHOWN])
    if len(users) > _SHOWN:
        shown.append(f"{len(users) - _SHOWN} more")
    if hidden:
        shown.append(f"{hidden} {noun}{'' if hidden == 1 else 's'} that you may not see")
    return InUse(f"{name} is used by {enumerate_names(shown)}; stop or delete them first")
