"""Workloads that people applied to the cluster as objects: watched, held by a finalizer, their status written.

The engine has one. `control/workloads/applied.py` decides through the seam what becomes of them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.engines.base import AppliedObject, AppliedObjects
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, retry_forever
from fairlead.engines.kubernetes.client.resources import DEFINITION, NAMESPACE, Manifest, Resource
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.watch import ObjectWatch
from fairlead.engines.kubernetes.client.writer import MANAGER, ListedObjects, ObjectWriter
from fairlead.engines.kubernetes.render.context import Owner
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL
from fairlead.model.errors import Unavailable

log = logging.getLogger(__name__)

FINALIZER = "run.ai/fairlead"
#: The label of our definitions.
_OURS = "app.kubernetes.io/managed-by=fairlead"
_QUERY = {"fieldManager": MANAGER}
#: A list of steps, of which the first tests whether it is the right object.
_STEPS = "application/json-patch+json"


class _Generation(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()


class WorkloadObjects(AppliedObjects):
    def __init__(self, api: Api, cluster_id: Callable[[], str]) -> None:
        self._api = api
        self._cluster_id = cluster_id
        self._found: dict[str, tuple[Resource, objects.CustomObject]] = {}
        self._changed: set[str] = set()
        self._notify: Callable[[], None] = _nothing
        self._tasks = BackgroundTasks()
        #: Kinds that were not installed when we started, by the names of their definitions.
        self._missing: dict[str, Resource] = {}
        #: Kinds whose objects are all known.
        self._known: set[str] = set()

    async def start(self, resources: Sequence[Resource], missing: Sequence[Resource] = ()) -> None:
        """Watch these kinds, and each missing kind when it is installed."""
        watches: list[ObjectWatch[Any]] = [self._watch(resource) for resource in resources]
        watches.append(ObjectWatch(self._api, NAMESPACE.path(), objects.Namespace, self._note_namespace, CLUSTER_LABEL))
        await asyncio.gather(*(watch.list() for watch in watches))
        for watch in watches:
            self._tasks.spawn(watch.run())
        self._known |= {resource.kind for resource in resources}
        self._missing = {f"{resource.plural}.{resource.api.partition('/')[0]}": resource for resource in missing}
        if not missing:
            return
        definitions = ObjectWatch(self._api, DEFINITION.path(), objects.Definition, self._note_definition, _OURS)
        try:
            await definitions.list()
            for name, resource in self._missing.items():
                # That a kind is not served proves nothing: an API server that starts does not serve all kinds yet.
                if not await self._is_installed(name):
                    self._known.add(resource.kind)
        except ApiError as error:
            if error.status != 403:
                raise
            log.warning(
                "Kinds that are installed later are noticed at the next start, because a permission is missing: %s",
                error,
            )
            return
        self._tasks.spawn(definitions.run())

    async def _is_installed(self, definition: str) -> bool:
        """Whoever installed it: objects exist for definitions without our label too."""
        found = await self._api.get(DEFINITION.path(), fieldSelector=f"metadata.name={definition}")
        return bool(msgspec.json.decode(found, type=ListedObjects).items)

    def _watch(self, resource: Resource) -> ObjectWatch[objects.CustomObject]:
        return ObjectWatch(self._api, resource.path(), objects.CustomObject, self._keeper(resource))

    async def _watch_late(self, resource: Resource) -> None:
        watch = self._watch(resource)
        await retry_forever(watch.list, f"Cannot list {resource.plural} yet")
        self._note_known(resource)
        await watch.run()

    def _note_known(self, resource: Resource) -> None:
        self._known.add(resource.kind)
        self._notify()

    def _note_definition(self, before: objects.Definition | None, after: objects.Definition | None) -> None:
        if after is None:
            if before is not None and before.metadata.name in self._missing:
                self._note_known(self._missing[before.metadata.name])
        elif objects.condition(after.status.conditions or (), "Established") is not None:
            resource = self._missing.pop(after.metadata.name, None)
            if resource is not None:
                self._tasks.spawn(self._watch_late(resource))

    def _note_namespace(self, before: objects.Namespace | None, after: objects.Namespace | None) -> None:
        """If a namespace is handed over from or to another Fairlead, so are its objects."""
        owners = [one.metadata.labels.get(CLUSTER_LABEL) if one is not None else None for one in (before, after)]
        if before is not None and owners[0] != owners[1]:
            name = before.metadata.name
            self._changed |= {id for id, (_, custom) in self._found.items() if custom.metadata.namespace == name}
            self._notify()

    async def close(self) -> None:
        await self._tasks.close()

    def _keeper(self, resource: Resource) -> Callable[[objects.CustomObject | None, objects.CustomObject | None], None]:
        def keep(before: objects.CustomObject | None, after: objects.CustomObject | None) -> None:
            if before is not None:
                self._found.pop(before.metadata.uid, None)
                self._changed.add(before.metadata.uid)
            if after is not None:
                self._found[after.metadata.uid] = (resource, after)
                self._changed.add(after.metadata.uid)
            self._notify()

        return keep

    def owner(self, workload_id: str) -> Owner | None:
        found = self._found.get(workload_id)
        if found is None:
            return None
        resource, custom = found
        return Owner(resource.api, resource.kind, custom.metadata.name, custom.metadata.uid)

    # The seam

    def listen(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def take_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def get(self, id: str) -> AppliedObject | None:
        found = self._found.get(id)
        return None if found is None else _render(*found)

    def has_synced(self, kind: str) -> bool:
        return kind in self._known

    async def belongs_to_other_installation(self, applied: AppliedObject) -> bool:
        found = await self._api.find(NAMESPACE.path(name=applied.namespace))
        labels = msgspec.json.decode(found, type=objects.Namespace).metadata.labels if found is not None else {}
        return labels.get(CLUSTER_LABEL, self._cluster_id()) != self._cluster_id()

    def _path(self, applied: AppliedObject) -> str:
        resource, custom = self._found[applied.id]
        return resource.path(custom.metadata.namespace, custom.metadata.name)

    async def hold(self, applied: AppliedObject) -> None:
        await self._change(applied, {"metadata": self._finalizers(applied, held=True)})

    async def release(self, applied: AppliedObject) -> None:
        await self._change(applied, {"metadata": self._finalizers(applied, held=False)})

    def _finalizers(self, applied: AppliedObject, *, held: bool) -> Manifest:
        """The list with or without ours. The version makes sure that nobody else has changed it meanwhile."""
        if applied.id not in self._found:
            return {}
        metadata = self._found[applied.id][1].metadata
        others = [name for name in metadata.finalizers if name != FINALIZER]
        return {
            "finalizers": [*others, FINALIZER] if held else others,
            "resourceVersion": metadata.resource_version,
        }

    async def delete(self, applied: AppliedObject) -> None:
        if applied.id in self._found:
            await ObjectWriter(self._api).delete(self._path(applied), applied.id)

    async def patch_spec(self, applied: AppliedObject, members: Mapping[str, bool | str]) -> int:
        spec = {name: {"value": value} for name, value in members.items()}
        answer = await self._change(applied, {"metadata": {"uid": applied.id}, "spec": spec})
        return msgspec.json.decode(answer, type=_Generation).metadata.generation if answer else 0

    async def set_status(self, applied: AppliedObject, status: dict[str, Any]) -> None:
        """Replace the status of this object, and of no later one of its name: a uid in the body would be ignored."""
        given = {name: value for name, value in status.items() if value is not None}
        steps: list[Manifest] = [
            {"op": "test", "path": "/metadata/uid", "value": applied.id},
            {"op": "add", "path": "/status", "value": given},
        ]
        await self._patch(applied, "/status", steps, _STEPS)

    async def _change(self, applied: AppliedObject, change: Manifest) -> bytes:
        return await self._patch(applied, "", change, MERGE)

    async def _patch(self, applied: AppliedObject, part: str, body: Manifest | list[Manifest], content: str) -> bytes:
        """An object that was deleted meanwhile needs no change; the watch reports it."""
        if applied.id not in self._found:
            return b""
        try:
            return await self._api.request("PATCH", self._path(applied) + part, body, query=_QUERY, content=content)
        except ApiError as error:
            if error.status == 404:
                return b""
            message = f"Cannot change {applied.name} in {applied.namespace} in the cluster for now: {error}"
            raise Unavailable(message) from error


def _render(resource: Resource, custom: objects.CustomObject) -> AppliedObject:
    metadata = custom.metadata
    plain = {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels}
    text = {"apiVersion": resource.api, "kind": resource.kind, "metadata": plain, "spec": custom.spec}
    return AppliedObject(
        id=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        text=msgspec.json.encode(text),
        generation=metadata.generation,
        is_leaving=metadata.deletion_timestamp is not None,
        is_held=FINALIZER in metadata.finalizers,
        status=msgspec.json.decode(custom.status),
    )


def _nothing() -> None:
    """Nobody listens yet."""
