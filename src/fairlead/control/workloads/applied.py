"""Workloads that were applied to a cluster as objects: submits them, and writes their state back to the objects.

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
from fairlead.control.workloads.applied_reader import (
    DIALECT,
    drop_applied,
    drop_template,
    is_active,
    is_template,
    owned_by_system,
    read_applied,
    rejected_changes,
    was_active_changed,
)
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import AppliedObject, AppliedObjects
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


class AppliedWorkloads:
    def __init__(self, context: Context, objects: AppliedObjects) -> None:
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
        """Reconcile all applied workloads: objects may have been deleted while no server ran."""
        alive = Query(collection=WORKLOADS, where=(Where("deleted_at", Comparison.IS_NULL, True),))
        workloads = await self._context.store.find(alive)
        self._waiting |= dict.fromkeys(workload.id for workload in workloads if workload.dialect == DIALECT)

    async def _reconcile_safely(self, id: str) -> None:
        try:
            await self._reconcile(id)
        except Exception as error:
            is_expected = isinstance(error, OSError | FairleadError)
            log.warning("cannot reconcile applied workload %s, retrying: %s", id, error, exc_info=not is_expected)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._mark, id)
        finally:
            self._busy.discard(id)
            self._wakeup.set()

    async def _reconcile(self, id: str) -> None:
        applied = self._objects.get(id)
        workload: Workload | None = await self._context.store.get(WORKLOADS, id)
        if applied is None or applied.is_leaving:
            self._waiting_for_template.discard(id)
            self._templates.pop(id, None)
            self._synced.pop(id, None)
        if applied is None:
            await self._on_object_missing(workload)
        elif workload is None and await self._objects.belongs_to_other_installation(applied):
            return
        elif applied.is_leaving:
            await self._release(applied, workload)
        elif workload is None:
            await self._submit(applied)
        elif workload.deleted_at is not None:
            await self._objects.delete(applied)
        else:
            await self._sync(applied, workload)

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

    async def _release(self, applied: AppliedObject, workload: Workload | None) -> None:
        """The object is being deleted: end the workload first, then release the object."""
        await self._end(workload)
        if workload is None or workload.gone:
            if applied.is_held:
                drop = drop_template if workload is None and is_template(applied) else drop_applied
                await drop(self._context, CALLER, applied)
                # A newer object of the same name may be a template too; it is stored again.
                for id, stands in self._templates.items():
                    if stands == (applied.namespace, applied.name):
                        self._mark(id)
                await self._objects.release(applied)
        else:
            await self._record_status(applied, _status(workload, applied.generation))

    async def _submit(self, applied: AppliedObject) -> None:
        is_known = applied.status.get("observedGeneration") == applied.generation and applied.status.get("phase")
        if is_template(applied):
            self._templates[applied.id] = (applied.namespace, applied.name)
        elif is_known and not _waits_for_template(applied):
            # It was refused before; only another spec can help.
            return
        elif applied.status.get("phase") == _TEMPLATE:
            # It was edited from a template to a workload.
            await drop_template(self._context, CALLER, applied)
        # Added before it is read, because a template may be created at any time after that.
        self._waiting_for_template.add(applied.id)
        try:
            submission = await read_applied(self._context, CALLER, applied)
        except Invalid as error:
            await self._refuse(applied, error)
            return
        self._waiting_for_template.discard(applied.id)
        if not applied.is_held:
            await self._objects.hold(applied)
        if submission is None:
            status = {"phase": _TEMPLATE, "message": "", "observedGeneration": applied.generation, "conditions": None}
            await self._record_status(applied, status)
            return
        try:
            workload = await submit(self._context, CALLER, submission)
        except Invalid as error:
            await self._refuse(applied, error)
            return
        self._synced[applied.id] = _SyncedGeneration(applied.generation, is_active(applied))
        await self._record_status(applied, _status(workload, applied.generation))

    async def _refuse(self, applied: AppliedObject, error: Invalid) -> None:
        message = "; ".join(f"{issue.field}: {issue.details}" for issue in error.issues) or error.message
        conditions = None
        if any(issue.field == _BASE for issue in error.issues):
            condition = {"type": _TEMPLATE_NOT_USABLE, "status": "True", "reason": "WillRetry", "message": message}
            conditions = [_since(applied, condition, self._context.clock())]
        else:
            self._waiting_for_template.discard(applied.id)
        status = {"phase": Phase.FAILED.value, "message": message, "observedGeneration": applied.generation}
        await self._record_status(applied, {**status, "conditions": conditions})

    async def _sync(self, applied: AppliedObject, workload: Workload) -> None:
        """Sync `active` in both directions: an edited object changes the workload, and the other way round."""
        agreed = self._synced.get(applied.id)
        if agreed is not None and applied.generation < agreed.generation:
            return  # the watch lags behind; it will be reconciled when the newer generation arrives
        workload, generation = await self._switch(applied, workload, agreed)
        owned = _system_fields_to_write(applied, workload, self._context.url_registry.settings)
        if owned:
            written = await self._objects.patch_spec(applied, owned)
            if written == generation + 1:
                # Otherwise somebody else edited it too, and the watch has not shown that yet.
                generation = written
                self._synced[applied.id] = _SyncedGeneration(generation, self._synced[applied.id].is_active)
        message = rejected_changes(applied, workload.applied) if workload.applied else ""
        await self._record_status(
            applied, _with_refusal(applied, _status(workload, generation), message, self._context.clock())
        )

    async def _switch(
        self, applied: AppliedObject, workload: Workload, agreed: _SyncedGeneration | None
    ) -> tuple[Workload, int]:
        """Let both the workload and its object be active, or neither; returns the workload and the generation."""
        generation, is_on = applied.generation, is_active(applied)
        is_wanted = workload.desired_phase is not DesiredPhase.STOPPED
        # Something was written without a response, so it may or may not have been applied.
        is_doubtful = agreed is not None and agreed.generation == generation and agreed.is_active != is_on
        if not workload.is_terminal and (is_on != is_wanted or is_doubtful):
            if _is_edited(applied, agreed, workload):
                act = lifecycle.resume if is_on else lifecycle.suspend
                workload = await act(self._context, CALLER, workload.kind, workload.id)
            else:
                self._synced[applied.id] = _SyncedGeneration(generation, is_wanted)
                generation = await self._objects.patch_spec(applied, {"active": is_wanted}) or generation
                is_on = is_wanted
        self._synced[applied.id] = _SyncedGeneration(generation, is_on)
        return workload, generation

    async def _record_status(self, applied: AppliedObject, status: dict[str, Any]) -> None:
        if any(applied.status.get(name) != value for name, value in status.items()):
            await self._objects.set_status(applied, status)


def _system_fields_to_write(applied: AppliedObject, workload: Workload, settings: UrlSettings) -> dict[str, str]:
    """The system's members of the spec that have to be changed. `userId` is set at admission and then stays."""
    wanted = {"userId": workload.created_by, "ingressUrl": first_url(workload, settings)}
    spec = msgspec.json.decode(applied.text).get("spec", {})
    given = {name: (spec.get(name) or {}).get("value", "") for name in wanted}
    if given["userId"]:
        del wanted["userId"]
    names = owned_by_system(workload.kind)
    return {name: value for name, value in wanted.items() if name in names and given[name] != value}


def _is_edited(applied: AppliedObject, agreed: _SyncedGeneration | None, workload: Workload) -> bool:
    """Whether the object's `active` was edited since both agreed (otherwise the workload was changed)."""
    observed = applied.status.get("observedGeneration")
    if agreed is not None:
        return applied.generation > agreed.generation and is_active(applied) != agreed.is_active
    if observed is not None:
        return bool(observed != applied.generation)
    # A server submitted it and stopped before it wrote the status.
    return was_active_changed(applied, workload.applied)


def _with_refusal(applied: AppliedObject, status: dict[str, Any], message: str, now: Millis) -> dict[str, Any]:
    """The status with the edits that were rejected."""
    if not message:
        return status
    condition = {"type": _EDIT_REJECTED, "status": "True", "reason": "CannotBeChanged", "message": message}
    return {
        **status,
        "message": ". ".join(text for text in (message, status["message"]) if text),
        "conditions": [*status["conditions"], _since(applied, condition, now)],
    }


def _since(applied: AppliedObject, condition: dict[str, str], now: Millis) -> dict[str, str]:
    """The condition with the time at which it was first reported."""
    types = (condition["type"], _FORMER_EDIT_REJECTED if condition["type"] == _EDIT_REJECTED else "")
    earlier = [
        one
        for one in applied.status.get("conditions") or ()
        if one.get("type") in types and one.get("message") == condition["message"]
    ]
    return {**condition, "lastTransitionTime": (earlier[0].get("lastTransitionTime") if earlier else None) or iso(now)}


def _waits_for_template(applied: AppliedObject) -> bool:
    return any(one.get("type") == _TEMPLATE_NOT_USABLE for one in applied.status.get("conditions") or ())


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
