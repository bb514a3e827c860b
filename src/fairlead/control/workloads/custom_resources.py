"""The custom resources of workloads: submits those that users apply, and writes the state of workloads back.

A loop of its own next to the reconciler, on the server that holds the lease. The workload has the id of its object, so
that no object is submitted twice. `kubectl delete` ends the workload before the object is deleted.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.serving.urls import UrlSettings, first_url
from fairlead.control.workloads import lifecycle
from fairlead.control.workloads.custom_resource_reader import (
    DIALECT,
    drop_resource,
    drop_template,
    is_active,
    is_template,
    owned_by_system,
    read_resource,
    rejected_changes,
    was_active_changed,
)
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import CustomResource, CustomResources
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import FairleadError, Invalid, NotFound
from fairlead.model.records.organization import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import TEMPLATES, WORKLOADS

log = logging.getLogger(__name__)

#: The caller for objects that were applied with kubectl; the cluster does not tell us who applied them.
CALLER = Caller("kubernetes", "", is_administrator=True)
_RETRY_SECONDS = 2.0
#: The condition of an object with an edit that is not allowed; statuses of earlier versions have the second name.
_EDIT_REJECTED, _FORMER_EDIT_REJECTED = "EditRejected", "EditNotTaken"
#: The condition of an object whose template is missing or not usable; it is checked again when templates change.
_TEMPLATE_NOT_USABLE = "TemplateNotUsable"
_BASE = "spec.baseWorkload"
#: The phase of an object that is a template.
_TEMPLATE = "Template"
#: The number of objects that are reconciled at the same time.
_AT_ONCE = 32


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
        if self._objects.get(id) is not None:
            self._mark(id)

    async def _recheck_all(self) -> None:
        """Reconcile all workloads with a custom resource: objects may have been deleted while no server ran."""
        alive = Query(collection=WORKLOADS, where=(Where("deleted_at", Comparison.IS_NULL, True),))
        workloads = await self._context.store.find(alive)
        self._waiting |= dict.fromkeys(workload.id for workload in workloads if workload.dialect == DIALECT)

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
        elif workload is None and await self._objects.belongs_to_other_installation(resource):
            return
        elif resource.is_leaving:
            await self._release(resource, workload)
        elif workload is None:
            await self._submit(resource)
        elif workload.deleted_at is not None:
            await self._objects.delete(resource)
        else:
            await self._sync(resource, workload)

    async def _on_object_missing(self, workload: Workload | None) -> None:
        """End a workload without an object, once all objects of its kind have been seen."""
        if workload is None or workload.dialect != DIALECT:
            return
        kind = KINDS[workload.kind].resource
        if self._objects.has_synced(kind):
            await self._end(workload)
        else:
            self._unsynced[workload.id] = kind

    async def _end(self, workload: Workload | None) -> None:
        if workload is not None and workload.deleted_at is None and workload.dialect == DIALECT:
            try:
                await lifecycle.delete(self._context, CALLER, workload.kind, workload.id)
            except NotFound:
                return

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
            await self._record_status(resource, _status(workload, resource.generation))

    async def _submit(self, resource: CustomResource) -> None:
        is_known = resource.status.get("observedGeneration") == resource.generation and resource.status.get("phase")
        if is_template(resource):
            self._templates[resource.id] = (resource.namespace, resource.name)
        elif is_known and not _waits_for_template(resource):
            # It was refused before; only another spec can help.
            return
        elif resource.status.get("phase") == _TEMPLATE:
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
            status = {"phase": _TEMPLATE, "message": "", "observedGeneration": resource.generation, "conditions": None}
            await self._record_status(resource, status)
            return
        try:
            workload = await submit(self._context, CALLER, submission)
        except Invalid as error:
            await self._refuse(resource, error)
            return
        self._synced[resource.id] = _SyncedGeneration(resource.generation, is_active(resource))
        await self._record_status(resource, _status(workload, resource.generation))

    async def _refuse(self, resource: CustomResource, error: Invalid) -> None:
        message = "; ".join(f"{issue.field}: {issue.details}" for issue in error.issues) or error.message
        conditions = None
        if any(issue.field == _BASE for issue in error.issues):
            condition = {"type": _TEMPLATE_NOT_USABLE, "status": "True", "reason": "WillRetry", "message": message}
            conditions = [_since(resource, condition, self._context.clock())]
        else:
            self._waiting_for_template.discard(resource.id)
        status = {"phase": Phase.FAILED.value, "message": message, "observedGeneration": resource.generation}
        await self._record_status(resource, {**status, "conditions": conditions})

    async def _sync(self, resource: CustomResource, workload: Workload) -> None:
        """Sync `active` in both directions: an edited object changes the workload, and the other way round."""
        agreed = self._synced.get(resource.id)
        if agreed is not None and resource.generation < agreed.generation:
            return  # the watch lags behind; it will be reconciled when the newer generation arrives
        workload, generation = await self._switch(resource, workload, agreed)
        owned = _system_fields_to_write(resource, workload, self._context.url_registry.settings)
        if owned:
            written = await self._objects.patch_spec(resource, owned)
            if written == generation + 1:
                # Otherwise somebody else edited it too, and the watch has not shown that yet.
                generation = written
                self._synced[resource.id] = _SyncedGeneration(generation, self._synced[resource.id].is_active)
        message = rejected_changes(resource, workload.applied) if workload.applied else ""
        await self._record_status(
            resource, _with_refusal(resource, _status(workload, generation), message, self._context.clock())
        )

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
                generation = await self._objects.patch_spec(resource, {"active": is_wanted}) or generation
                is_on = is_wanted
        self._synced[resource.id] = _SyncedGeneration(generation, is_on)
        return workload, generation

    async def _record_status(self, resource: CustomResource, status: dict[str, Any]) -> None:
        if any(resource.status.get(name) != value for name, value in status.items()):
            await self._objects.set_status(resource, status)


def _system_fields_to_write(resource: CustomResource, workload: Workload, settings: UrlSettings) -> dict[str, str]:
    """The system's members of the spec that have to be changed. `userId` is set at admission and then stays."""
    wanted = {"userId": workload.created_by, "ingressUrl": first_url(workload, settings)}
    spec = msgspec.json.decode(resource.text).get("spec", {})
    given = {name: (spec.get(name) or {}).get("value", "") for name in wanted}
    if given["userId"]:
        del wanted["userId"]
    names = owned_by_system(workload.kind)
    return {name: value for name, value in wanted.items() if name in names and given[name] != value}


def _is_edited(resource: CustomResource, agreed: _SyncedGeneration | None, workload: Workload) -> bool:
    """Whether the object's `active` was edited since both agreed (otherwise the workload was changed)."""
    observed = resource.status.get("observedGeneration")
    if agreed is not None:
        return resource.generation > agreed.generation and is_active(resource) != agreed.is_active
    if observed is not None:
        return bool(observed != resource.generation)
    # A server submitted it and stopped before it wrote the status.
    return was_active_changed(resource, workload.applied)


def _with_refusal(resource: CustomResource, status: dict[str, Any], message: str, now: Millis) -> dict[str, Any]:
    """The status with the edits that were rejected."""
    if not message:
        return status
    condition = {"type": _EDIT_REJECTED, "status": "True", "reason": "CannotBeChanged", "message": message}
    return {
        **status,
        "message": ". ".join(text for text in (message, status["message"]) if text),
        "conditions": [*status["conditions"], _since(resource, condition, now)],
    }


def _since(resource: CustomResource, condition: dict[str, str], now: Millis) -> dict[str, str]:
    """The condition with the time at which it was first reported."""
    types = (condition["type"], _FORMER_EDIT_REJECTED if condition["type"] == _EDIT_REJECTED else "")
    earlier = [
        one
        for one in resource.status.get("conditions") or ()
        if one.get("type") in types and one.get("message") == condition["message"]
    ]
    return {**condition, "lastTransitionTime": (earlier[0].get("lastTransitionTime") if earlier else None) or iso(now)}


def _waits_for_template(resource: CustomResource) -> bool:
    return any(one.get("type") == _TEMPLATE_NOT_USABLE for one in resource.status.get("conditions") or ())


def _status(workload: Workload, generation: int) -> dict[str, Any]:
    return {
        "phase": workload.phase.value,
        # In one line: `kubectl get` shows only the first.
        "message": " ".join(workload.phase_message.split()),
        "workloadId": workload.id,
        "observedGeneration": generation,
        "project": workload.project_name,
        "runningPods": workload.running_pods,
        "allocatedGpu": str(workload.allocated_gpu),
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": iso(condition.last_transition_time),
            }
            for condition in {condition.type: condition for condition in workload.conditions}.values()
        ],
    }
