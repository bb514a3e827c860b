"""Makes the deliveries that rules want: from events, from long waits, and from quotas that are reached.

Called by the notifier. It writes deliveries and sends nothing. Whether a rule concerns a workload or a project is
decided with the rights that its owner has at that moment.
"""

import contextlib
from collections.abc import Sequence

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.notifications.messages import notified_by, render_quota, render_workload
from fairlead.control.people.current_rights import find_caller
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Conflict
from fairlead.model.records.event import Event
from fairlead.model.records.notifications import Delivery, NotificationPosition, NotificationRule
from fairlead.model.records.organization import Project
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import DELIVERIES, EVENTS, NOTIFICATION_POSITIONS, WORKLOADS

_EVENTS, _QUOTAS = "events", "quotas"
_MAX_EVENTS = 500
#: Events are read when they are this old: servers on one database may commit in another order than their revisions.
_AGE: Millis = 1 * SECOND


class DeliveryMaker:
    def __init__(self, context: Context, public_url: str) -> None:
        self._context = context
        self._store = context.store
        self._public_url = public_url

    async def record_deliveries(self, rules: Sequence[NotificationRule], now: Millis) -> None:
        while await self._follow_events(rules, now):
            pass
        for rule in rules:
            if "waiting" in rule.on:
                await self._find_waiting(rule, now)
        await self._compare_quotas([rule for rule in rules if "quota" in rule.on], now)

    # --- From events

    async def _follow_events(self, rules: Sequence[NotificationRule], now: Millis) -> bool:
        """Returns whether there may be more."""
        position = await self._store.get(NOTIFICATION_POSITIONS, _EVENTS)
        last = position.revision if position else 0
        oldest = min(rule.created_at for rule in rules)
        where = (
            Where("revision", Comparison.ABOVE, last),
            Where("at", Comparison.AT_LEAST, oldest),
            Where("at", Comparison.AT_MOST, now - _AGE),
        )
        query = Query(collection=EVENTS, where=where, order=(("revision", False),), limit=_MAX_EVENTS)
        events: list[Event] = await self._store.find(query)
        if not events:
            return False
        deliveries = [one for event in events for one in await self._deliveries_of(event, rules)]
        after = NotificationPosition(
            id=_EVENTS, version=position.version + 1 if position else 1, revision=events[-1].revision
        )
        writes = (Put(NOTIFICATION_POSITIONS, after), *(Put(DELIVERIES, one) for one in deliveries))
        with contextlib.suppress(Conflict):
            # Another server was faster.
            await self._store.commit(Change(writes=writes))
        return len(events) == _MAX_EVENTS

    async def _deliveries_of(self, event: Event, rules: Sequence[NotificationRule]) -> list[Delivery]:
        notified = notified_by(event)
        wanting = [rule for rule in rules if notified in rule.on and rule.created_at <= event.at]
        if not notified or not wanting:
            return []
        workload: Workload | None = await self._store.get(WORKLOADS, event.subject_id)
        if workload is None:
            return []
        if event.phase:
            # By now it may be in another one.
            workload = msgspec.structs.replace(workload, phase=Phase(event.phase))
        return [
            self._about_workload(rule, workload, notified, event.at, f"{event.revision:012}")
            for rule in wanting
            if self._concerns(rule, workload)
        ]

    def _concerns(self, rule: NotificationRule, workload: Workload) -> bool:
        """Whether the rule is about the workload, and its owner may see it now."""
        caller = self._find_owner(rule)
        if caller is None or not access.can_read(caller, "workloads:read", workload.project_id):
            return False
        if rule.project_id:
            return workload.project_id == rule.project_id
        return workload.created_by == rule.owner_name

    def _find_owner(self, rule: NotificationRule) -> Caller | None:
        """The rule's owner with their present rights; None if they may no longer have such a rule."""
        directory = self._context.directory
        owner = directory.users.get(rule.owner_id)
        if owner is None or not owner.enabled:
            return None
        caller = find_caller(directory, owner)
        may_have = not rule.project_id or access.can_read(caller, "projects:update", rule.project_id)
        return caller if may_have else None

    def _about_workload(
        self, rule: NotificationRule, workload: Workload, notified: str, at: Millis, occasion: str
    ) -> Delivery:
        now = self._context.clock()
        return Delivery(
            # Sorts those of one workload by when they happened.
            id=f"{rule.id}.{workload.id}.{occasion}.{notified}",
            version=1,
            rule_id=rule.id,
            owner_id=rule.owner_id,
            project_id=workload.project_id,
            event=notified,
            workload_id=workload.id,
            workload_name=workload.name,
            body=render_workload(rule, workload, notified, at, self._public_url),
            created_at=now,
            next_at=now,
        )

    # --- From the time

    async def _find_waiting(self, rule: NotificationRule, now: Millis) -> None:
        """Make deliveries for workloads that wait longer than the rule allows; one for each wait."""
        own = Where("project_id", Comparison.EQUAL, rule.project_id)
        if not rule.project_id:
            own = Where("submitted_by", Comparison.EQUAL, rule.owner_name)
        where = (
            Where("is_active", Comparison.EQUAL, 1),
            Where("phase", Comparison.EQUAL, Phase.PENDING.value),
            Where("phase_updated_at", Comparison.AT_MOST, now - rule.waiting),
            own,
        )
        for workload in await self._store.find(Query(collection=WORKLOADS, where=where, limit=_MAX_EVENTS)):
            delivery = self._about_workload(rule, workload, "waiting", now, str(workload.phase_updated_at))
            if self._concerns(rule, workload) and await self._store.get(DELIVERIES, delivery.id) is None:
                with contextlib.suppress(Conflict):
                    await self._store.commit(Change(writes=(Put(DELIVERIES, delivery),)))

    # --- From quotas

    async def _compare_quotas(self, rules: Sequence[NotificationRule], now: Millis) -> None:
        """Make deliveries for projects that use their whole quota of GPUs now, and did not at the last check."""
        position = await self._store.get(NOTIFICATION_POSITIONS, _QUOTAS)
        before = position.projects if position else ()
        projects = self._context.directory.projects
        wanted = {rule.project_id: projects[rule.project_id] for rule in rules if rule.project_id in projects}
        used = {id: await self._allocated(id) for id in wanted}
        reached = tuple(
            sorted(id for id, project in wanted.items() if used[id] >= (gpu_quota(project) or float("inf")))
        )
        if reached == before:
            return
        new = set(reached) - set(before)
        deliveries = [
            self._about_quota(rule, wanted[rule.project_id], used[rule.project_id], now)
            for rule in rules
            if rule.project_id in new and self._find_owner(rule) is not None
        ]
        version = position.version + 1 if position else 1
        after = NotificationPosition(id=_QUOTAS, version=version, projects=reached)
        with contextlib.suppress(Conflict):
            await self._store.commit(
                Change(writes=(Put(NOTIFICATION_POSITIONS, after), *(Put(DELIVERIES, one) for one in deliveries)))
            )

    async def _allocated(self, project_id: str) -> float:
        where = (
            Where("project_id", Comparison.EQUAL, project_id),
            Where("is_active", Comparison.EQUAL, 1),
            Where("allocated_gpu", Comparison.ABOVE, 0),
        )
        holders: list[Workload] = await self._store.find(Query(collection=WORKLOADS, where=where))
        return sum(workload.allocated_gpu for workload in holders)

    def _about_quota(self, rule: NotificationRule, project: Project, used: float, now: Millis) -> Delivery:
        return Delivery(
            id=f"{rule.id}.{project.id}.quota.{now}",
            version=1,
            rule_id=rule.id,
            owner_id=rule.owner_id,
            project_id=project.id,
            event="quota",
            workload_id="",
            workload_name="",
            body=render_quota(rule, project.name, used, gpu_quota(project) or 0, now),
            created_at=now,
            next_at=now,
        )


def gpu_quota(project: Project) -> float | None:
    """The GPUs that a project deserves in all its node pools; None if it has no quota or an unlimited one."""
    quotas = [quota.gpu.deserved for quota in project.resources]
    known = [quota for quota in quotas if quota is not None]
    return sum(known) or None if len(known) == len(quotas) else None
