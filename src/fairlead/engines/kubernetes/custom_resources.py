"""The custom resources of workloads: watched, held by a finalizer, their status written.

The engine has one. `control/workloads/custom_resources.py` decides through the seam what becomes of them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.engines.base import CustomResource, CustomResources
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


class WatchedResources(CustomResources):
    def __init__(self, api: Api, cluster_id: Callable[[], str]) -> None:
        self._api = api
        self._cluster_id = cluster_id
        self._known_objects: dict[str, tuple[Resource, objects.CustomObject]] = {}
        self._changed: set[str] = set()
        self._notify: Callable[[], None] = _nothing
        self._tasks = BackgroundTasks()
        #: Kinds that were not installed when we started, by the names of their definitions.
        self._missing: dict[str, Resource] = {}
        #: Kinds whose objects are all known.
        self._synced: set[str] = set()

    async def start(self, resources: Sequence[Resource], missing: Sequence[Resource] = ()) -> None:
        """Watch these kinds, and each missing kind when it is installed."""
        watches: list[ObjectWatch[Any]] = [self._watch(kind) for kind in resources]
        watches.append(ObjectWatch(self._api, NAMESPACE.path(), objects.Namespace, self._note_namespace, CLUSTER_LABEL))
        await asyncio.gather(*(watch.list() for watch in watches))
        for watch in watches:
            self._tasks.spawn(watch.run())
        self._synced |= {kind.kind for kind in resources}
        self._missing = {f"{kind.plural}.{kind.api.partition('/')[0]}": kind for kind in missing}
        if not missing:
            return
        definitions = ObjectWatch(self._api, DEFINITION.path(), objects.Definition, self._note_definition, _OURS)
        try:
            await definitions.list()
            for name, kind in self._missing.items():
                # That a kind is not served proves nothing: an API server that starts does not serve all kinds yet.
                if not await self._is_installed(name):
                    self._synced.add(kind.kind)
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
        listed = await self._api.get(DEFINITION.path(), fieldSelector=f"metadata.name={definition}")
        return bool(msgspec.json.decode(listed, type=ListedObjects).items)

    def _watch(self, kind: Resource) -> ObjectWatch[objects.CustomObject]:
        return ObjectWatch(self._api, kind.path(), objects.CustomObject, self._keeper(kind))

    async def _watch_late(self, kind: Resource) -> None:
        watch = self._watch(kind)
        await retry_forever(watch.list, f"Cannot list {kind.plural} yet")
        self._note_known(kind)
        await watch.run()

    def _note_known(self, kind: Resource) -> None:
        self._synced.add(kind.kind)
        self._notify()

    def _note_definition(self, before: objects.Definition | None, after: objects.Definition | None) -> None:
        if after is None:
            if before is not None and before.metadata.name in self._missing:
                self._note_known(self._missing[before.metadata.name])
        elif objects.condition(after.status.conditions or (), "Established") is not None:
            kind = self._missing.pop(after.metadata.name, None)
            if kind is not None:
                self._tasks.spawn(self._watch_late(kind))

    def _note_namespace(self, before: objects.Namespace | None, after: objects.Namespace | None) -> None:
        """If a namespace is handed over from or to another Fairlead, so are its objects."""
        owners = [one.metadata.labels.get(CLUSTER_LABEL) if one is not None else None for one in (before, after)]
        if before is not None and owners[0] != owners[1]:
            name = before.metadata.name
            self._changed |= {
                id for id, (_, custom) in self._known_objects.items() if custom.metadata.namespace == name
            }
            self._notify()

    async def close(self) -> None:
        await self._tasks.close()

    def _keeper(self, kind: Resource) -> Callable[[objects.CustomObject | None, objects.CustomObject | None], None]:
        def keep(before: objects.CustomObject | None, after: objects.CustomObject | None) -> None:
            if before is not None:
                self._known_objects.pop(before.metadata.uid, None)
                self._changed.add(before.metadata.uid)
            if after is not None:
                self._known_objects[after.metadata.uid] = (kind, after)
                self._changed.add(after.metadata.uid)
            self._notify()

        return keep

    def owner(self, workload_id: str) -> Owner | None:
        known = self._known_objects.get(workload_id)
        if known is None:
            return None
        kind, custom = known
        return Owner(kind.api, kind.kind, custom.metadata.name, custom.metadata.uid)

    # The seam

    def listen(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def take_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def get(self, id: str) -> CustomResource | None:
        known = self._known_objects.get(id)
        return None if known is None else _render(*known)

    def has_synced(self, kind: str) -> bool:
        return kind in self._synced

    async def belongs_to_other_installation(self, resource: CustomResource) -> bool:
        content = await self._api.find(NAMESPACE.path(name=resource.namespace))
        labels = msgspec.json.decode(content, type=objects.Namespace).metadata.labels if content is not None else {}
        return labels.get(CLUSTER_LABEL, self._cluster_id()) != self._cluster_id()

    def _path(self, resource: CustomResource) -> str:
        kind, custom = self._known_objects[resource.id]
        return kind.path(custom.metadata.namespace, custom.metadata.name)

    async def hold(self, resource: CustomResource) -> None:
        await self._change(resource, {"metadata": self._finalizers(resource, held=True)})

    async def release(self, resource: CustomResource) -> None:
        await self._change(resource, {"metadata": self._finalizers(resource, held=False)})

    def _finalizers(self, resource: CustomResource, *, held: bool) -> Manifest:
        """The list with or without ours. The version makes sure that nobody else has changed it meanwhile."""
        if resource.id not in self._known_objects:
            return {}
        metadata = self._known_objects[resource.id][1].metadata
        others = [name for name in metadata.finalizers if name != FINALIZER]
        return {
            "finalizers": [*others, FINALIZER] if held else others,
            "resourceVersion": metadata.resource_version,
        }

    async def delete(self, resource: CustomResource) -> None:
        if resource.id in self._known_objects:
            await ObjectWriter(self._api).delete(self._path(resource), resource.id)

    async def patch_spec(self, resource: CustomResource, members: Mapping[str, bool | str]) -> int:
        spec = {name: {"value": value} for name, value in members.items()}
        answer = await self._change(resource, {"metadata": {"uid": resource.id}, "spec": spec})
        return msgspec.json.decode(answer, type=_Generation).metadata.generation if answer else 0

    async def set_status(self, resource: CustomResource, status: dict[str, Any]) -> None:
        """Replace the status of this object, and of no later one of its name: a uid in the body would be ignored."""
        given = {name: value for name, value in status.items() if value is not None}
        steps: list[Manifest] = [
            {"op": "test", "path": "/metadata/uid", "value": resource.id},
            {"op": "add", "path": "/status", "value": given},
        ]
        await self._patch(resource, "/status", steps, _STEPS)

    async def _change(self, resource: CustomResource, change: Manifest) -> bytes:
        return await self._patch(resource, "", change, MERGE)

    async def _patch(self, resource: CustomResource, part: str, body: Manifest | list[Manifest], content: str) -> bytes:
        """An object that was deleted meanwhile needs no change; the watch reports it."""
        if resource.id not in self._known_objects:
            return b""
        try:
            return await self._api.request("PATCH", self._path(resource) + part, body, query=_QUERY, content=content)
        except ApiError as error:
            if error.status == 404:
                return b""
            message = f"Cannot change {resource.name} in {resource.namespace} in the cluster for now: {error}"
            raise Unavailable(message) from error


def _render(kind: Resource, custom: objects.CustomObject) -> CustomResource:
    metadata = custom.metadata
    plain = {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels}
    text = {"apiVersion": kind.api, "kind": kind.kind, "metadata": plain, "spec": custom.spec}
    return CustomResource(
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
