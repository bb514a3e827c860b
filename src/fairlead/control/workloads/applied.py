"""Workloads that people applied to a cluster as objects: submitted like any other, and their state written back.

A loop of its own beside the reconciler, on the server that holds the lease. The workload has the object's id, so that
nothing is submitted twice and no link can be lost. `kubectl delete` ends the workload before the object goes.
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

#: Who submits what was applied with kubectl, as far as we can know.
CALLER = Caller("kubernetes", "", is_administrator=True)
_RETRY_SECONDS = 2.0
#: The condition of an object that was edited where it may not be.
_EDIT_REJECTED = "EditNotTaken"
#: The condition of an object that is refused for the templates that there are, and looked at again with others.
_TEMPLATE_NOT_USABLE = "TemplateNotUsable"
_BASE = "spec.baseWorkload"
#: The phase of an object that is kept as a template.
_TEMPLATE = "Template"
#: Objects that are looked at side by side; the others wait their turn.
_AT_ONCE = 32


class _SyncedGeneration(msgspec.Struct, frozen=True):
    """The newest generation of an object that was taken or written, and what its `active` is."""

    generation: int
    is_active: bool


class AppliedWorkloads:
    def __init__(self, context: Context, objects: AppliedObjects) -> None:
        self._context = context
        self._objects = objects
        #: Those to be looked at, the first come first, and those that are being looked at.
        self._waiting: dict[str, None] = {}
        self._busy: set[str] = set()
        self._wakeup = asyncio.Event()
        #: Those that wait for a template, and where the templates stand that were taken.
        self._waiting_for_template: set[str] = set()
        self._templates: dict[str, tuple[str, str]] = {}
        #: How far objects and their workloads agree. What a watch shows may be older, its status too.
        self._synced: dict[str, _SyncedGeneration] = {}
        #: Workloads without an object of whose kind not all are seen yet, with that kind.
        self._unsynced: dict[str, str] = {}

    async def run(self) -> None:
        """Until cancelled."""
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
        """The next that nobody looks at, if there is room for one more."""
        if len(self._busy) >= _AT_ONCE:
            return None
        id = next((id for id in self._waiting if id not in self._busy), None)
        if id is not None:
            del self._waiting[id]
            self._busy.add(id)
        return id

    def _pop_synced(self) -> set[str]:
        """Those of whom it can be told by now whether their objects are gone."""
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
        """Workloads whose objects went while no server ran: ended as if that had just happened."""
        alive = Query(collection=WORKLOADS, where=(Where("deleted_at", Comparison.IS_NULL, True),))
        found = await self._context.store.find(alive)
        self._waiting |= dict.fromkeys(workload.id for workload in found if workload.dialect == DIALECT)

    async def _reconcile_safely(self, id: str) -> None:
        try:
            await self._reconcile(id)
        except Exception as error:
            is_expected = isinstance(error, OSError | FairleadError)
            log.warning("the applied workload %s is looked at again: %s", id, error, exc_info=not is_expected)
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
        """Its object is not seen: it is gone, unless objects of its kind may be there unseen."""
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
        """Its object is to go: first the workload, then the object."""
        await self._end(workload)
        if workload is None or workload.gone:
            if applied.is_held:
                drop = drop_template if workload is None and is_template(applied) else drop_applied
                await drop(self._context, CALLER, applied)
                # What was dropped may have been that of a newer object of this name, which is then kept again.
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
            # It was refused as it is; another spec may be better.
            return
        elif applied.status.get("phase") == _TEMPLATE:
            # Edited to be a workload.
            await drop_template(self._context, CALLER, applied)
        # Before it is read: a template may come at any time from then on.
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
            told = {"phase": _TEMPLATE, "message": "", "observedGeneration": applied.generation, "conditions": None}
            await self._record_status(applied, told)
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
            condition = {"type": _TEMPLATE_NOT_USABLE, "status": "True", "reason": "LooksAgain", "message": message}
            conditions = [_since(applied, condition, self._context.clock())]
        else:
            self._waiting_for_template.discard(applied.id)
        status = {"phase": Phase.FAILED.value, "message": message, "observedGeneration": applied.generation}
        await self._record_status(applied, {**status, "conditions": conditions})

    async def _sync(self, applied: AppliedObject, workload: Workload) -> None:
        """`active` both ways: an edited object changes the workload, a workload that was changed edits the object."""
        agreed = self._synced.get(applied.id)
        if agreed is not None and applied.generation < agreed.generation:
            return  # the watch is behind, and what it has yet to bring is looked at then
        workload, generation = await self._switch(applied, workload, agreed)
        owned = _system_fields_to_write(applied, workload, self._context.url_registry.settings)
        if owned:
            written = await self._objects.patch_spec(applied, owned)
            if written == generation + 1:
                # Otherwise somebody edited it too, and that is still to be seen.
                generation = written
                self._synced[applied.id] = _SyncedGeneration(generation, self._synced[applied.id].is_active)
        words = rejected_changes(applied, workload.applied) if workload.applied else ""
        await self._record_status(
            applied, _with_refusal(applied, _status(workload, generation), words, self._context.clock())
        )

    async def _switch(
        self, applied: AppliedObject, workload: Workload, agreed: _SyncedGeneration | None
    ) -> tuple[Workload, int]:
        """The workload and its object's generation when both are to run, or both are not."""
        generation, is_on = applied.generation, is_active(applied)
        is_wanted = workload.desired_phase is not DesiredPhase.STOPPED
        # Something was written, and the answer did not come: it may still come to light.
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
    """What the system's members of the spec should be and are not. Who applied it is known from its admission alone."""
    wanted = {"userId": workload.created_by, "ingressUrl": first_url(workload, settings)}
    spec = msgspec.json.decode(applied.text).get("spec", {})
    given = {name: (spec.get(name) or {}).get("value", "") for name in wanted}
    if given["userId"]:
        del wanted["userId"]
    names = owned_by_system(workload.kind)
    return {name: value for name, value in wanted.items() if name in names and given[name] != value}


def _is_edited(applied: AppliedObject, agreed: _SyncedGeneration | None, workload: Workload) -> bool:
    """Whether the object's `active` was changed since both agreed, and not what is wanted of the workload."""
    observed = applied.status.get("observedGeneration")
    if agreed is not None:
        return applied.generation > agreed.generation and is_active(applied) != agreed.is_active
    if observed is not None:
        return bool(observed != applied.generation)
    # A server that ended before it said so has submitted it.
    return was_active_changed(applied, workload.applied)


def _with_refusal(applied: AppliedObject, status: dict[str, Any], words: str, now: Millis) -> dict[str, Any]:
    """The status with what was edited and is not taken."""
    if not words:
        return status
    condition = {"type": _EDIT_REJECTED, "status": "True", "reason": "CannotBeChanged", "message": words}
    return {
        **status,
        "message": ". ".join(text for text in (words, status["message"]) if text),
        "conditions": [*status["conditions"], _since(applied, condition, now)],
    }


def _since(applied: AppliedObject, condition: dict[str, str], now: Millis) -> dict[str, str]:
    """The condition with its time, which is that of the first time it was said."""
    said = [
        one
        for one in applied.status.get("conditions") or ()
        if (one.get("type"), one.get("message")) == (condition["type"], condition["message"])
    ]
    return {**condition, "lastTransitionTime": (said[0].get("lastTransitionTime") if said else None) or iso(now)}


def _waits_for_template(applied: AppliedObject) -> bool:
    return any(one.get("type") == _TEMPLATE_NOT_USABLE for one in applied.status.get("conditions") or ())


def _status(workload: Workload, generation: int) -> dict[str, Any]:
    return {
        "phase": workload.phase.value,
        # In one line: `kubectl get` cuts off what follows the first.
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
