"""The custom resources of workloads: one for each workload, whichever way it came in, equal in both directions.

A loop of its own next to the reconciler, on the server that holds the lease. It submits what users apply, creates the
object of every other workload, adopts objects that the database does not know, and writes the state of workloads back.
`kubectl delete` ends the workload before the object is deleted. Policies that users apply are objects of the same loop.
"""

import asyncio
import logging
from collections.abc import Sequence

from fairlead.control.context import Context
from fairlead.control.custom_resources.adoption import adopt
from fairlead.control.custom_resources.creation import ResourceCreation
from fairlead.control.custom_resources.policies import drop_policy, is_policy, sync_policy
from fairlead.control.custom_resources.reader import (
    CALLER,
    drop_resource,
    drop_template,
    find_created_for,
    is_template,
    read_resource,
)
from fairlead.control.custom_resources.spec_sync import SpecSync
from fairlead.control.custom_resources.status import (
    EDIT_REJECTED,
    NOT_ADOPTED,
    TEMPLATE,
    is_about_template,
    refusal_message,
    render_refusal,
    render_status,
    render_template_status,
    waits_for_template,
    with_condition,
)
from fairlead.control.custom_resources.status_writer import SETTLE_SECONDS, StatusWriter
from fairlead.control.workloads import lifecycle
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import CustomResources
from fairlead.kinds import KINDS
from fairlead.model.custom_resource import CustomResource
from fairlead.model.dialect import Dialect
from fairlead.model.errors import FairleadError, Invalid, NotFound
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import POLICIES, PROJECTS, TEMPLATES, WORKLOADS

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
#: Seconds after which a deletion, or a creation that found another object of its name, is checked again.
_RECHECK_SECONDS = 5.0
#: The number of objects that are reconciled at the same time.
_AT_ONCE = 32
_TRIES = 20


class CustomResourceSync:
    def __init__(
        self,
        context: Context,
        objects: CustomResources,
        settle_seconds: float = SETTLE_SECONDS,
        recheck_seconds: float = _RECHECK_SECONDS,
    ) -> None:
        self._context = context
        self._recheck_seconds = recheck_seconds
        self._objects = objects
        self._statuses = StatusWriter(objects, self._mark_later, settle_seconds)
        self._creation = ResourceCreation(context, objects, recheck_seconds)
        self._spec_sync = SpecSync(context, objects)
        #: Ids of objects to reconcile, in order, and of those that are being reconciled.
        self._waiting: dict[str, None] = {}
        self._busy: set[str] = set()
        #: The next time at which an object is reconciled although nothing has changed. uvloop's handle of a timer that
        #: is due at once does not tell when.
        self._timers: dict[str, tuple[float, asyncio.Handle]] = {}
        self._wakeup = asyncio.Event()
        #: Ids of objects that wait for a template; and of those that are templates, with namespace and name.
        self._waiting_for_template: set[str] = set()
        self._templates: dict[str, tuple[str, str]] = {}
        #: Ids of objects that are policies.
        self._policies: set[str] = set()
        #: Workloads whose object was not seen yet, with the kind of object; the watch of that kind has not synced.
        self._unsynced: dict[str, str] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        unsubscribe = self._context.store.subscribe(self._on_commit)
        self._context.notify_without_event = self._on_workload_changed
        self._objects.listen(self._wakeup.set)
        self._wakeup.set()
        try:
            await self._recheck_all()
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._wakeup.wait()
                    self._wakeup.clear()
                    self._waiting |= dict.fromkeys(sorted(self._objects.take_changed() | self._pop_synced()))
                    while (id := self._next_waiting()) is not None:
                        tasks.create_task(self._reconcile_safely(id))
        finally:
            unsubscribe()

    def _next_waiting(self) -> str | None:
        """The next object to reconcile, unless too many are being reconciled."""
        if len(self._busy) >= _AT_ONCE:
            return None
        id = next((id for id in self._waiting if id not in self._busy), None)
        if id is not None:
            del self._waiting[id]
            self._busy.add(id)
        return id

    def _pop_synced(self) -> set[str]:
        """Workloads whose kind of object has synced since, so that a missing object is gone."""
        sure = {id for id, kind in self._unsynced.items() if self._objects.has_synced(kind)}
        for id in sure:
            del self._unsynced[id]
        return sure

    def _mark(self, id: str) -> None:
        self._waiting[id] = None
        self._wakeup.set()

    def _mark_later(self, id: str, seconds: float) -> None:
        """Reconcile it within that time. One timer for each object: every reconciliation may ask for several."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if id in self._timers:
            planned, timer = self._timers[id]
            if planned <= due:
                return
            timer.cancel()
        self._timers[id] = (due, loop.call_later(seconds, self._on_timer, id))

    def _on_timer(self, id: str) -> None:
        del self._timers[id]
        self._mark(id)

    def _on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        for collection, id in subjects:
            if collection == WORKLOADS.name:
                self._on_workload_changed(id)
            elif collection == TEMPLATES.name:
                for waiting in self._waiting_for_template:
                    self._mark(waiting)
            elif collection in (POLICIES.name, PROJECTS.name):
                for policy in self._policies:
                    self._mark(policy)

    def _on_workload_changed(self, id: str) -> None:
        """Whether or not it has an object: it may need one."""
        self._mark(id)

    async def _recheck_all(self) -> None:
        """Reconcile all workloads: objects may have been deleted, or not created, while no server ran."""
        is_alive = Where("deleted_at", Comparison.IS_NULL, True)
        alive = Query(collection=WORKLOADS, where=(is_alive, *self._context.own_workload_conditions))
        self._waiting |= dict.fromkeys(workload.id for workload in await self._context.store.find(alive))

    async def _reconcile_safely(self, id: str) -> None:
        try:
            await self._reconcile(id)
        except Exception as error:
            is_expected = isinstance(error, OSError | FairleadError)
            log.warning(
                "cannot reconcile the custom resource of workload %s, retrying: %s", id, error, exc_info=not is_expected
            )
            self._mark_later(id, _RETRY_SECONDS)
        finally:
            self._busy.discard(id)
            self._wakeup.set()

    async def _reconcile(self, id: str) -> None:
        resource = self._objects.get(id)
        if resource is not None and is_policy(resource):
            await self._reconcile_policy(resource)
            return
        self._policies.discard(id)
        workload: Workload | None = await self._context.store.get(WORKLOADS, id)
        if workload is not None and not self._context.covers(workload):
            # Another cluster has its object.
            return
        if resource is None or resource.is_leaving:
            self._waiting_for_template.discard(id)
            self._templates.pop(id, None)
            self._spec_sync.forget(id)
        if resource is None:
            self._statuses.forget(id)
            await self._on_object_missing(workload)
        elif workload is None and (other := self._objects.find_other_installation(resource.namespace)):
            await self._report_foreign(resource, other)
        elif resource.is_leaving:
            await self._release(resource, workload or await self._find_unbound(resource))
        elif workload is None:
            await self._reconcile_unknown(resource)
        elif workload.deleted_at is not None:
            await self._delete(resource)
        else:
            await self._sync(resource, workload)

    async def _report_foreign(self, resource: CustomResource, other: str) -> None:
        """The other server may be gone or alive: only an object without any status gets one."""
        if not resource.status and not resource.is_leaving:
            message = (
                f"Namespace {resource.namespace} belongs to another Fairlead installation, {other}, "
                "which has not answered yet; if that is gone for good, `fairlead project describe` shows how to "
                "take the namespace over"
            )
            await self._objects.set_status(resource, {"phase": Phase.PENDING.value, "message": message})

    # Policies

    async def _reconcile_policy(self, resource: CustomResource) -> None:
        """Apply the policy; if its object is being deleted, delete the policy first."""
        if other := self._objects.find_other_installation(resource.namespace):
            await self._report_foreign(resource, other)
        elif not resource.is_leaving:
            self._policies.add(resource.id)
            if not resource.is_held:
                await self._objects.hold(resource)
            await self._statuses.write(resource, await sync_policy(self._context, resource))
        elif resource.is_held:
            self._policies.discard(resource.id)
            await drop_policy(self._context, resource)
            await self._objects.release(resource)

    # Workloads without an object

    async def _on_object_missing(self, workload: Workload | None) -> None:
        """End a workload whose object was deleted; create the object of one that never had any."""
        if workload is None:
            return
        if workload.deleted_at is not None:
            self._creation.forget(workload.id)
            return
        kind = KINDS[workload.kind].resource
        if not workload.applied and workload.dialect is not Dialect.CUSTOM_RESOURCE:
            if not await self._creation.create(workload):
                self._mark_later(workload.id, self._recheck_seconds)
        elif self._objects.has_synced(kind):
            await self._end(workload)
        else:
            self._unsynced[workload.id] = kind

    async def _delete(self, resource: CustomResource) -> None:
        """Ask for its deletion. No event tells if that had no effect, so it is checked later."""
        self._mark_later(resource.id, self._recheck_seconds)
        await self._objects.delete(resource)

    async def _end(self, workload: Workload | None) -> None:
        if workload is not None and workload.deleted_at is None:
            try:
                await lifecycle.delete(self._context, CALLER, workload.kind, workload.id)
            except NotFound:
                return

    # Objects without a workload

    async def _reconcile_unknown(self, resource: CustomResource) -> None:
        """The database does not know it: a server created or accepted it before, or somebody has just applied it."""
        workload = await find_created_for(self._context, resource)
        if workload is not None and self._objects.get(workload.id) is None:
            await self._bind(resource, workload)
        elif not resource.is_bound and await self._is_left_over(resource):
            await self._delete(resource)
        elif resource.is_bound and not is_template(resource):
            await self._adopt(resource)
        else:
            await self._submit(resource)

    async def _is_left_over(self, resource: CustomResource) -> bool:
        """Whether a server created it for a workload that was deleted before the object was seen.

        An object with the same annotation that a user applied, as after `kubectl get -o yaml`, is a new workload.
        """
        if not resource.created_for or not resource.is_written_by_server_only:
            return False
        workload: Workload | None = await self._context.store.get(WORKLOADS, resource.created_for)
        return workload is not None and workload.deleted_at is not None

    async def _bind(self, resource: CustomResource, workload: Workload) -> None:
        """It becomes the object of this workload. That is recorded when the watch shows it, never before.

        Otherwise the object would seem to be deleted until then.
        """
        status = render_status(resource, workload, resource.generation, self._context.clock())
        await self._statuses.write(resource, status)

    async def _adopt(self, resource: CustomResource) -> None:
        """An earlier server accepted it. Whatever hinders that, its pods run on and its status stays."""
        try:
            submission = await read_resource(self._context, CALLER, resource)
            if submission is None:
                return
            workload = await adopt(self._context, CALLER, resource, submission)
        except Invalid as error:
            condition = (NOT_ADOPTED, "Invalid", f"Cannot be adopted: {refusal_message(error)}")
            await self._statuses.write(
                resource, with_condition(resource, resource.status, condition, self._context.clock())
            )
            return
        if not resource.is_held:
            await self._objects.hold(resource)
        log.warning("adopted workload %s of project %s from the cluster", workload.name, workload.project_name)
        self._spec_sync.note(resource)

    async def _find_unbound(self, resource: CustomResource) -> Workload | None:
        """The workload of an object that is being deleted before it could be bound to it."""
        workload = await find_created_for(self._context, resource)
        return workload if workload is not None and self._objects.get(workload.id) is None else None

    async def _release(self, resource: CustomResource, workload: Workload | None) -> None:
        """The object is being deleted: end the workload first, then release the object."""
        await self._end(workload)
        if workload is None or workload.gone:
            if resource.is_held:
                drop = drop_template if workload is None and is_template(resource) else drop_resource
                await drop(self._context, CALLER, resource)
                # A newer object of the same name may be a template too; it is stored again.
                for id, stands in self._templates.items():
                    if stands == (resource.namespace, resource.name):
                        self._mark(id)
                await self._objects.release(resource)
        else:
            await self._statuses.write(
                resource, render_status(resource, workload, resource.generation, self._context.clock())
            )

    async def _submit(self, resource: CustomResource) -> None:
        is_refused = resource.status.get("observedGeneration") == resource.generation and resource.status.get("phase")
        if is_template(resource):
            self._templates[resource.id] = (resource.namespace, resource.name)
        elif is_refused and not waits_for_template(resource):
            # Only another spec can help.
            return
        elif resource.status.get("phase") == TEMPLATE:
            # It was edited from a template to a workload.
            await drop_template(self._context, CALLER, resource)
        # Added before it is read, because a template may be created at any time after that.
        self._waiting_for_template.add(resource.id)
        try:
            submission = await read_resource(self._context, CALLER, resource)
        except Invalid as error:
            await self._refuse(resource, error)
            return
        self._waiting_for_template.discard(resource.id)
        if not resource.is_held:
            await self._objects.hold(resource)
        if submission is None:
            await self._statuses.write(resource, render_template_status(resource.generation))
            return
        try:
            workload = await submit(self._context, CALLER, submission)
        except Invalid as error:
            await self._refuse(resource, error)
            return
        self._spec_sync.note(resource)
        await self._statuses.write(
            resource, render_status(resource, workload, resource.generation, self._context.clock())
        )

    async def _refuse(self, resource: CustomResource, error: Invalid) -> None:
        if not is_about_template(error):
            self._waiting_for_template.discard(resource.id)
        await self._statuses.write(resource, render_refusal(resource, error, self._context.clock()))

    # Objects with a workload

    async def _sync(self, resource: CustomResource, workload: Workload) -> None:
        """Bring both in line: an edited object changes the workload, and the other way round."""
        if self._spec_sync.is_outdated(resource):
            return  # it will be reconciled when the newer generation arrives
        synced = await self._spec_sync.sync(resource, workload)
        self._creation.forget(workload.id)
        now = self._context.clock()
        status = render_status(resource, synced.workload, synced.generation, now)
        if synced.rejection:
            status = with_condition(resource, status, (EDIT_REJECTED, "CannotBeChanged", synced.rejection), now)
        await self._statuses.write(resource, status)
