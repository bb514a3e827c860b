"""The custom resources of workloads: one for each workload, whichever way it came in, equal in both directions.

A loop of its own next to the reconciler, on the server that holds the lease. It submits what users apply, creates the
object of every other workload, adopts objects that the database does not know, and writes the state of workloads back.
`kubectl delete` ends the workload before the object is deleted. Of two changes of a spec, the last accepted one wins.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from fairlead.control.context import Context
from fairlead.control.serving.urls import UrlSettings, first_url
from fairlead.control.workloads import lifecycle
from fairlead.control.workloads.adoption import adopt
from fairlead.control.workloads.custom_resource_reader import (
    CALLER,
    DIALECT,
    active_value,
    digest_members,
    digests_of,
    drop_resource,
    drop_template,
    edited_members,
    find_created_for,
    is_active,
    is_template,
    owned_by_system,
    read_change,
    read_resource,
    was_active_changed,
)
from fairlead.control.workloads.custom_resource_status import (
    EDIT_REJECTED,
    NOT_ADOPTED,
    TEMPLATE,
    Status,
    is_about_template,
    refusal_message,
    render_refusal,
    render_status,
    render_template_status,
    waits_for_template,
    with_condition,
)
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.update import update_from_resource
from fairlead.engines.base import CustomResource, CustomResources, NewResource
from fairlead.formats.custom_resource import render_content
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict, FairleadError, Invalid, NotFound, Refused
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import TEMPLATES, WORKLOADS

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
#: The number of objects that are reconciled at the same time.
_AT_ONCE = 32
_TRIES = 20
#: Phases of which an event in the cluster would say nothing new.
_SILENT = frozenset({Phase.CREATING, Phase.INITIALIZING})


class _SyncedGeneration(msgspec.Struct, frozen=True):
    """The newest generation of an object that was submitted or written, and the value of `active` in it."""

    generation: int
    is_active: bool


class CustomResourceSync:
    def __init__(self, context: Context, objects: CustomResources) -> None:
        self._context = context
        self._objects = objects
        #: Ids of objects to reconcile, in order, and of those that are being reconciled.
        self._waiting: dict[str, None] = {}
        self._busy: set[str] = set()
        self._wakeup = asyncio.Event()
        #: Ids of objects that wait for a template; and of those that are templates, with namespace and name.
        self._waiting_for_template: set[str] = set()
        self._templates: dict[str, tuple[str, str]] = {}
        #: The last generation in which an object and its workload agreed. A watch may show an older one.
        self._synced: dict[str, _SyncedGeneration] = {}
        #: Workloads whose object this server created, until the watch shows it with its workload's id.
        self._created: set[str] = set()
        #: Workloads whose object the cluster does not accept.
        self._refused: set[str] = set()
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

    def _on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        for collection, id in subjects:
            if collection == WORKLOADS.name:
                self._on_workload_changed(id)
            elif collection == TEMPLATES.name:
                for waiting in self._waiting_for_template:
                    self._mark(waiting)

    def _on_workload_changed(self, id: str) -> None:
        """Whether or not it has an object: it may need one."""
        self._mark(id)

    async def _recheck_all(self) -> None:
        """Reconcile all workloads: objects may have been deleted, or not created, while no server ran."""
        alive = Query(collection=WORKLOADS, where=(Where("deleted_at", Comparison.IS_NULL, True),))
        self._waiting |= dict.fromkeys(workload.id for workload in await self._context.store.find(alive))

    async def _reconcile_safely(self, id: str) -> None:
        try:
            await self._reconcile(id)
        except Exception as error:
            is_expected = isinstance(error, OSError | FairleadError)
            log.warning(
                "cannot reconcile the custom resource of workload %s, retrying: %s", id, error, exc_info=not is_expected
            )
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._mark, id)
        finally:
            self._busy.discard(id)
            self._wakeup.set()

    async def _reconcile(self, id: str) -> None:
        resource = self._objects.get(id)
        workload: Workload | None = await self._context.store.get(WORKLOADS, id)
        if resource is None or resource.is_leaving:
            self._waiting_for_template.discard(id)
            self._templates.pop(id, None)
            self._synced.pop(id, None)
        if resource is None:
            await self._on_object_missing(workload)
        elif workload is None and (other := self._objects.find_other_installation(resource.namespace)):
            await self._report_foreign(resource, other)
        elif resource.is_leaving:
            await self._release(resource, workload)
        elif workload is None:
            await self._take_in(resource)
        elif workload.deleted_at is not None:
            await self._objects.delete(resource)
        else:
            await self._sync(resource, workload)

    async def _report_foreign(self, resource: CustomResource, other: str) -> None:
        """The other server may be gone or alive: only an object without any status gets one."""
        if not resource.status and not resource.is_leaving:
            message = f"Namespace {resource.namespace} belongs to another Fairlead, {other}, which has not answered yet"
            await self._objects.set_status(resource, {"phase": Phase.PENDING.value, "message": message})

    # Workloads without an object

    async def _on_object_missing(self, workload: Workload | None) -> None:
        """End a workload whose object was deleted; create the object of one that never had any."""
        if workload is None or workload.deleted_at is not None:
            return
        kind = KINDS[workload.kind].resource
        if not workload.applied and workload.dialect != DIALECT:
            await self._create(workload)
        elif self._objects.has_synced(kind):
            await self._end(workload)
        else:
            self._unsynced[workload.id] = kind

    async def _create(self, workload: Workload) -> None:
        wanted = self._render_new(workload)
        if wanted is None or workload.id in self._created | self._refused:
            return
        self._created.add(workload.id)
        is_created = False
        try:
            is_created = await self._objects.create(wanted)
            if not is_created:
                log.info("%s %s/%s exists already", wanted.kind, wanted.namespace, wanted.name)
        except Refused as error:
            # It runs without an object: a spec of an older dialect may break rules of the definition.
            self._refused.add(workload.id)
            log.warning("workload %s has no custom resource: %s", workload.id, error)
        finally:
            if not is_created:
                self._created.discard(workload.id)

    def _render_new(self, workload: Workload) -> NewResource | None:
        """The object of a workload; None if the cluster or the namespace cannot have one."""
        kind = KINDS[workload.kind]
        project = self._context.directory.projects.get(workload.project_id)
        if project is None or not self._objects.is_installed(kind.resource):
            return None
        if self._objects.find_other_installation(project.namespace):
            return None
        is_wanted = workload.desired_phase is not DesiredPhase.STOPPED
        content = render_content(kind, msgspec.json.decode(workload.spec), workload.name, is_active=is_wanted)
        owner = {"userId": {"value": workload.created_by}} if "userId" in owned_by_system(workload.kind) else {}
        return NewResource(
            workload_id=workload.id,
            kind=kind.resource,
            namespace=project.namespace,
            name=workload.name,
            labels=content.labels,
            annotations=content.annotations,
            spec={**content.spec, **owner},
        )

    async def _end(self, workload: Workload | None) -> None:
        if workload is not None and workload.deleted_at is None:
            try:
                await lifecycle.delete(self._context, CALLER, workload.kind, workload.id)
            except NotFound:
                return

    # Objects without a workload

    async def _take_in(self, resource: CustomResource) -> None:
        """The database does not know it: a server created or accepted it before, or somebody has just applied it."""
        workload = await find_created_for(self._context, resource)
        if workload is not None and self._objects.get(workload.id) is None:
            await self._bind(resource, workload)
        elif not resource.is_bound and await self._is_left_over(resource):
            await self._objects.delete(resource)
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
        await self._record_status(resource, status)

    async def _adopt(self, resource: CustomResource) -> None:
        """An earlier server accepted it. Whatever hinders that, its pods run on and its status stays."""
        try:
            submission = await read_resource(self._context, CALLER, resource)
            if submission is None:
                return
            workload = await adopt(self._context, CALLER, resource, submission)
        except Invalid as error:
            condition = (NOT_ADOPTED, "Invalid", f"Cannot be adopted: {refusal_message(error)}")
            await self._record_status(
                resource, with_condition(resource, resource.status, condition, self._context.clock())
            )
            return
        if not resource.is_held:
            await self._objects.hold(resource)
        log.warning("adopted workload %s of project %s from the cluster", workload.name, workload.project_name)
        self._synced[resource.id] = _SyncedGeneration(resource.generation, is_active(resource))

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
            await self._record_status(
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
            await self._record_status(resource, render_template_status(resource.generation))
            return
        try:
            workload = await submit(self._context, CALLER, submission)
        except Invalid as error:
            await self._refuse(resource, error)
            return
        self._synced[resource.id] = _SyncedGeneration(resource.generation, is_active(resource))
        await self._record_status(
            resource, render_status(resource, workload, resource.generation, self._context.clock())
        )

    async def _refuse(self, resource: CustomResource, error: Invalid) -> None:
        if not is_about_template(error):
            self._waiting_for_template.discard(resource.id)
        await self._record_status(resource, render_refusal(resource, error, self._context.clock()))

    # Objects with a workload

    async def _sync(self, resource: CustomResource, workload: Workload) -> None:
        """Bring both in line: an edited object changes the workload, and the other way round."""
        agreed = self._synced.get(resource.id)
        if agreed is not None and resource.generation < agreed.generation:
            return  # the watch lags behind; it will be reconciled when the newer generation arrives
        if not workload.applied:
            workload = await self._record_agreement(workload, digests_of(resource))
            self._created.discard(workload.id)
        workload, generation = await self._switch(resource, workload, agreed)
        workload, message = await self._take_edit(resource, workload)
        written = await self._write_members(resource, workload)
        if written == generation + 1:
            # Otherwise somebody else edited it too, and the watch has not shown that yet.
            generation = written
            self._synced[resource.id] = _SyncedGeneration(generation, self._synced[resource.id].is_active)
        now = self._context.clock()
        status = render_status(resource, workload, generation, now)
        if message:
            status = with_condition(resource, status, (EDIT_REJECTED, "CannotBeChanged", message), now)
        await self._record_status(resource, status)

    async def _take_edit(self, resource: CustomResource, workload: Workload) -> tuple[Workload, str]:
        """Change the workload as its object was edited; or a message about an edit that is not allowed.

        An update that is still to be written to the object came later, and wins.
        """
        edited = set(edited_members(workload.applied, digests_of(resource))) - set(workload.resource_changes)
        if not workload.applied or not edited:
            return workload, ""
        try:
            wanted = await read_change(self._context, resource, workload)
            if wanted:
                workload = await update_from_resource(self._context, CALLER, workload.kind, workload.id, wanted)
        except Invalid as error:
            names, details = ", ".join(issue.field for issue in error.issues), error.issues[0].details
            return workload, f"Edit rejected: {names} {details}"
        return await self._record_agreement(workload, digests_of(resource)), ""

    async def _write_members(self, resource: CustomResource, workload: Workload) -> int:
        """Write what the system fills in, and what an update has changed; returns the generation, 0 for no change."""
        members: dict[str, object] = {
            name: {"value": value}
            for name, value in _system_fields_to_write(resource, workload, self._context.url_registry.settings).items()
        }
        if workload.resource_changes:
            content = render_content(
                KINDS[workload.kind], msgspec.json.decode(workload.spec), workload.name, is_active=True
            )
            members |= {name: content.spec.get(name) for name in workload.resource_changes}
        if not members:
            return 0
        generation = await self._objects.patch_spec(resource, members)
        if workload.resource_changes and generation:
            written = {name: value for name, value in members.items() if value is not None}
            kept = {name: digest for name, digest in digests_of(resource).items() if name not in members}
            await self._record_agreement(workload, kept | digest_members(written), workload.resource_changes)
        return generation

    async def _record_agreement(
        self, workload: Workload, digests: dict[str, str], written: Sequence[str] = ()
    ) -> Workload:
        """Record that the object, with these digests, and the workload say the same."""
        for _ in range(_TRIES):
            left = tuple(name for name in workload.resource_changes if name not in written)
            agreed = msgspec.structs.replace(
                workload, version=workload.version + 1, applied=digests, resource_changes=left
            )
            try:
                await self._context.store.commit(Change(writes=(Put(WORKLOADS, agreed),)))
                return agreed
            except Conflict:
                known: Workload | None = await self._context.store.get(WORKLOADS, workload.id)
                if known is None or known.deleted_at is not None:
                    return workload
                workload = known
        raise Conflict(f"Workload {workload.id} was changed by others at the same time")

    async def _switch(
        self, resource: CustomResource, workload: Workload, agreed: _SyncedGeneration | None
    ) -> tuple[Workload, int]:
        """Let both the workload and its object be active, or neither; returns the workload and the generation."""
        generation, is_on = resource.generation, is_active(resource)
        is_wanted = workload.desired_phase is not DesiredPhase.STOPPED
        # Something was written without a response, so it may or may not have been applied.
        is_doubtful = agreed is not None and agreed.generation == generation and agreed.is_active != is_on
        if not workload.is_terminal and (is_on != is_wanted or is_doubtful):
            if _is_edited(resource, agreed, workload):
                act = lifecycle.resume if is_on else lifecycle.suspend
                workload = await act(self._context, CALLER, workload.kind, workload.id)
            else:
                self._synced[resource.id] = _SyncedGeneration(generation, is_wanted)
                members = {"active": active_value(workload.kind, is_wanted)}
                generation = await self._objects.patch_spec(resource, members) or generation
                is_on = is_wanted
        self._synced[resource.id] = _SyncedGeneration(generation, is_on)
        return workload, generation

    async def _record_status(self, resource: CustomResource, status: Status) -> None:
        if any(resource.status.get(name) != value for name, value in status.items()):
            await self._objects.set_status(resource, status)
            if status["phase"] != resource.status.get("phase") and status["phase"] not in _SILENT:
                type = "Warning" if status["phase"] == Phase.FAILED else "Normal"
                await self._objects.add_event(resource, type, status["phase"], status["message"] or status["phase"])


def _system_fields_to_write(resource: CustomResource, workload: Workload, settings: UrlSettings) -> dict[str, str]:
    """The system's members of the spec that have to be changed. `userId` is set at admission and then stays."""
    names = owned_by_system(workload.kind)
    wanted = {"userId": workload.created_by, "ingressUrl": first_url(workload, settings)}
    spec = msgspec.json.decode(resource.text).get("spec", {}) if names else {}
    given = {name: (spec.get(name) or {}).get("value", "") for name in names}
    return {
        name: wanted[name]
        for name in names
        if given[name] != wanted[name] and not (name == "userId" and given["userId"])
    }


def _is_edited(resource: CustomResource, agreed: _SyncedGeneration | None, workload: Workload) -> bool:
    """Whether the object's `active` was edited since both agreed (otherwise the workload was changed)."""
    observed = resource.status.get("observedGeneration")
    if agreed is not None:
        return resource.generation > agreed.generation and is_active(resource) != agreed.is_active
    if observed is not None:
        return bool(observed != resource.generation)
    # A server submitted it and stopped before it wrote the status.
    return was_active_changed(resource, workload.applied)
