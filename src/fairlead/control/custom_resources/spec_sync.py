"""Keeps a workload and its custom resource equal. Called by `loop.py` for an object whose workload is known.

An edited object changes the workload, and the other way round. Of two changes of a spec, the last accepted one wins.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.reader import (
    CALLER,
    active_value,
    digest_members,
    digests_of,
    edited_members,
    is_active,
    owned_by_system,
    read_change,
    was_active_changed,
)
from fairlead.control.serving.urls import UrlSettings, first_url
from fairlead.control.workloads import lifecycle
from fairlead.control.workloads.update import update_from_resource
from fairlead.engines.base import CustomResources
from fairlead.formats.custom_resource import render_content
from fairlead.kinds import KINDS
from fairlead.model.custom_resource import CustomResource
from fairlead.model.errors import Conflict, Forbidden, Invalid
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


class _SyncedGeneration(msgspec.Struct, frozen=True):
    """The newest generation of an object that was submitted or written, and the value of `active` in it."""

    generation: int
    is_active: bool


class SyncedWorkload(NamedTuple):
    """A workload that equals its object, the generation of that object, and why an edit of it was rejected."""

    workload: Workload
    generation: int
    rejection: str


class SpecSync:
    def __init__(self, context: Context, objects: CustomResources) -> None:
        self._context = context
        self._objects = objects
        #: The last generation in which an object and its workload agreed. A watch may show an older one.
        self._synced: dict[str, _SyncedGeneration] = {}

    def note(self, resource: CustomResource) -> None:
        """The workload was made from this generation of the object."""
        self._synced[resource.id] = _SyncedGeneration(resource.generation, is_active(resource))

    def forget(self, id: str) -> None:
        self._synced.pop(id, None)

    def is_outdated(self, resource: CustomResource) -> bool:
        """The watch lags behind; it will show a newer generation."""
        agreed = self._synced.get(resource.id)
        return agreed is not None and resource.generation < agreed.generation

    async def sync(self, resource: CustomResource, workload: Workload) -> SyncedWorkload:
        """Bring both in line."""
        if not workload.applied:
            workload = await self._record(workload, digests_of(resource))
        try:
            workload, generation = await self._switch(resource, workload)
        except Forbidden as error:
            # Nothing is remembered, so it resumes if it is tried again under another policy.
            return SyncedWorkload(workload, resource.generation, f"Edit rejected: spec.active {error}")
        workload, rejection = await self._apply_edit(resource, workload)
        written = await self._write_members(resource, workload)
        if written == generation + 1:
            # Otherwise somebody else edited it too, and the watch has not shown that yet.
            generation = written
            self._synced[resource.id] = _SyncedGeneration(generation, self._synced[resource.id].is_active)
        return SyncedWorkload(workload, generation, rejection)

    async def _apply_edit(self, resource: CustomResource, workload: Workload) -> tuple[Workload, str]:
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
        return await self._record(workload, digests_of(resource)), ""

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
            digests = {name: digest for name, digest in digests_of(resource).items() if name not in members}
            await self._record(workload, digests | digest_members(written), workload.resource_changes)
        return generation

    async def _record(self, workload: Workload, digests: dict[str, str], written: Sequence[str] = ()) -> Workload:
        """Record that the object, with these digests, and the workload say the same."""
        for _ in range(_TRIES):
            unwritten = tuple(name for name in workload.resource_changes if name not in written)
            agreed = msgspec.structs.replace(
                workload, version=workload.version + 1, applied=digests, resource_changes=unwritten
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

    async def _switch(self, resource: CustomResource, workload: Workload) -> tuple[Workload, int]:
        """Let both the workload and its object be active, or neither; returns the workload and the generation."""
        agreed = self._synced.get(resource.id)
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
