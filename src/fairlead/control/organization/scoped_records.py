"""What goes with a part of the organization when it is removed: everything that only it could use.

Called when a project, a department or a cluster is removed. Claims and data volumes stay, because they are data: an
administrator deletes them.
"""

from collections.abc import Collection as Set

from fairlead.control.context import Context
from fairlead.control.records import RecordChange
from fairlead.model.records.assets import NamedRecord
from fairlead.model.records.notifications import NotificationRule
from fairlead.store.base import Collection, Comparison, Query, VersionedRecord, Where
from fairlead.store.collections import (
    ACCESS_RULES,
    ASSETS,
    CONFIG_MAPS,
    NOTIFICATION_RULES,
    POLICIES,
    SECRETS,
    TEMPLATES,
)

_NAMED: tuple[Collection[NamedRecord], ...] = (ASSETS, CONFIG_MAPS, POLICIES, SECRETS, TEMPLATES)


async def scoped_record_steps(context: Context, scope_keys: Set[str], message: str) -> list[RecordChange]:
    """The steps that delete the records of these scopes."""
    removed: list[tuple[Collection[VersionedRecord], str]] = []
    for scope_key in sorted(scope_keys):
        for collection in _NAMED:
            where = (Where("place", Comparison.EQUAL, scope_key),)
            removed += [
                (collection, one.id) for one in await context.store.find(Query(collection=collection, where=where))
            ]
        if scope_key.startswith("project/"):
            where = (Where("project_id", Comparison.EQUAL, scope_key.removeprefix("project/")),)
            rules: list[NotificationRule] = await context.store.find(Query(collection=NOTIFICATION_RULES, where=where))
            removed += [(NOTIFICATION_RULES, one.id) for one in rules]
    removed += [
        (ACCESS_RULES, one.id) for one in context.directory.access_rules.values() if one.scope.scope_key in scope_keys
    ]
    return [RecordChange(collection, id, None, "Deleted", message) for collection, id in removed]
