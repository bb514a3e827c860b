"""The custom resources of workloads: watched, held by a finalizer, their status written.

The engine has one. `control/custom_resources/` decides through the seam what becomes of them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from fairlead.engines.base import CustomResources
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, retry_forever
from fairlead.engines.kubernetes.client.resources import DEFINITION, EVENT, NAMESPACE, Manifest, Resource
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.watch import ObjectWatch
from fairlead.engines.kubernetes.client.writer import MANAGER, ListedObjects, ObjectWriter
from fairlead.engines.kubernetes.render.context import Owner
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL
from fairlead.formats.custom_resource import CREATED_FOR
from fairlead.model.custom_resource import CustomResource, NewResource
from fairlead.model.errors import Refused, Unavailable

log = logging.getLogger(__name__)

FINALIZER = "run.ai/fairlead"
#: The label of our definitions.
_OURS = "app.kubernetes.io/managed-by=fairlead"
_QUERY = {"fieldManager": MANAGER}
#: A list of steps, of which the first tests whether it is the right object.
_STEPS = "application/json-patch+json"


class _Generation(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()


class _Binding(msgspec.Struct, rename="camel"):
    """The part of a status that says of which workload the object is."""

    workload_id: Any = ""


class _Known(msgspec.Struct, frozen=True):
    #: The workload's id.
    id: str
    kind: Resource
    custom: objects.CustomObject


def _no_run(workload_id: str) -> int:
    """Nothing of it exists."""
    return 0


class WatchedResources(CustomResources):
    def __init__(self, api: Api, cluster_id: Callable[[], str], find_run: Callable[[str], int] = _no_run) -> None:
        self._api = api
        self._cluster_id = cluster_id
        #: The run of a workload whose objects exist.
        self._find_run = find_run
        #: By the workload's id, and that id by the object's uid.
        self._known_objects: dict[str, _Known] = {}
        self._ids: dict[str, str] = {}
        #: Installed kinds by name.
        self._installed: dict[str, Resource] = {}
        self._namespaces = ObjectWatch(api, NAMESPACE.path(), objects.Namespace, self._note_namespace, CLUSTER_LABEL)
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
        watches.append(self._namespaces)
        await asyncio.gather(*(watch.list() for watch in watches))
        for watch in watches:
            self._tasks.spawn(watch.run())
        self._synced |= {kind.kind for kind in resources}
        self._installed |= {kind.kind: kind for kind in resources}
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
        self._installed[kind.kind] = kind
        self._note_known(kind)
        await watch.run()

    def _note_known(self, kind: Resource) -> None:
        """All its objects are known, perhaps none."""
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
        """If a namespace is handed over from or to another Fairlead installation, so are its objects."""
        owners = [one.metadata.labels.get(CLUSTER_LABEL) if one is not None else None for one in (before, after)]
        if before is not None and owners[0] != owners[1]:
            name = before.metadata.name
            self._changed |= {
                id for id, known in self._known_objects.items() if known.custom.metadata.namespace == name
            }
            self._notify()

    async def close(self) -> None:
        await self._tasks.close()

    def _keeper(self, kind: Resource) -> Callable[[objects.CustomObject | None, objects.CustomObject | None], None]:
        def keep(before: objects.CustomObject | None, after: objects.CustomObject | None) -> None:
            if before is not None:
                self._forget(before.metadata.uid)
            if after is not None:
                self._remember(kind, after)
            self._notify()

        return keep

    def _forget(self, uid: str) -> None:
        id = self._ids.pop(uid, "")
        if id:
            del self._known_objects[id]
            self._changed.add(id)

    def _remember(self, kind: Resource, custom: objects.CustomObject) -> None:
        uid = custom.metadata.uid
        bound = msgspec.json.decode(custom.status, type=_Binding).workload_id
        # Somebody may have copied an object with its status: only the first one is the workload's.
        id = bound if isinstance(bound, str) and bound and bound not in self._known_objects else uid
        self._known_objects[id], self._ids[uid] = _Known(id, kind, custom), id
        self._changed.add(id)

    def owner(self, workload_id: str) -> Owner | None:
        known = self._known_objects.get(workload_id)
        if known is None:
            return None
        return Owner(known.kind.api, known.kind.kind, known.custom.metadata.name, known.custom.metadata.uid)

    def has(self, workload_id: str) -> bool:
        return workload_id in self._known_objects

    # The seam

    def listen(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def take_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def get(self, id: str) -> CustomResource | None:
        known = self._known_objects.get(id)
        return None if known is None else _render(known, self._find_run(id))

    def has_synced(self, kind: str) -> bool:
        return kind in self._synced

    def is_installed(self, kind: str) -> bool:
        return kind in self._installed

    def find_other_installation(self, namespace: str) -> str:
        known = self._namespaces.objects.get(("", namespace))
        owner = known.metadata.labels.get(CLUSTER_LABEL, "") if known is not None else ""
        return owner if owner != self._cluster_id() else ""

    def _path(self, resource: CustomResource) -> str:
        known = self._known_objects[resource.id]
        return known.kind.path(known.custom.metadata.namespace, known.custom.metadata.name)

    async def create(self, wanted: NewResource) -> bool:
        kind = self._installed[wanted.kind]
        metadata = {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "labels": wanted.labels,
            "annotations": {**wanted.annotations, CREATED_FOR: wanted.workload_id},
            "finalizers": [FINALIZER],
        }
        body = {"apiVersion": kind.api, "kind": kind.kind, "metadata": metadata, "spec": wanted.spec}
        try:
            await self._api.request("POST", kind.path(wanted.namespace), body, query=_QUERY)
        except ApiError as error:
            if error.status == 409:
                return False
            if error.status in (400, 422):
                raise Refused(f"The cluster does not accept {kind.kind} {wanted.name}: {error}") from error
            message = f"Cannot create {kind.kind} {wanted.name} in {wanted.namespace} for now: {error}"
            raise Unavailable(message) from error
        return True

    async def hold(self, resource: CustomResource) -> None:
        await self._change(resource, {"metadata": self._finalizers(resource, is_held=True)})

    async def release(self, resource: CustomResource) -> None:
        await self._change(resource, {"metadata": self._finalizers(resource, is_held=False)})

    def _finalizers(self, resource: CustomResource, *, is_held: bool) -> Manifest:
        """The list with or without ours. The version makes sure that nobody else has changed it meanwhile."""
        if resource.id not in self._known_objects:
            return {}
        metadata = self._known_objects[resource.id].custom.metadata
        others = [name for name in metadata.finalizers if name != FINALIZER]
        return {
            "finalizers": [*others, FINALIZER] if is_held else others,
            "resourceVersion": metadata.resource_version,
        }

    async def delete(self, resource: CustomResource) -> None:
        if resource.id in self._known_objects:
            await ObjectWriter(self._api).delete(self._path(resource), resource.uid)

    async def patch_spec(self, resource: CustomResource, members: Mapping[str, object]) -> int:
        given = msgspec.json.decode(resource.text).get("spec", {})
        steps: list[Manifest] = [{"op": "test", "path": "/metadata/uid", "value": resource.uid}]
        for name, value in members.items():
            if value is not None:
                steps.append({"op": "add", "path": f"/spec/{name}", "value": value})
            elif name in given:
                steps.append({"op": "remove", "path": f"/spec/{name}"})
        answer = await self._patch(resource, "", steps, _STEPS)
        return msgspec.json.decode(answer, type=_Generation).metadata.generation if answer else 0

    async def set_status(self, resource: CustomResource, status: Mapping[str, object]) -> None:
        """Replace the status of this object, and of no later one of its name: a uid in the body would be ignored."""
        given = {name: value for name, value in status.items() if value is not None}
        steps: list[Manifest] = [
            {"op": "test", "path": "/metadata/uid", "value": resource.uid},
            {"op": "add", "path": "/status", "value": given},
        ]
        await self._patch(resource, "/status", steps, _STEPS)

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        known = self._known_objects.get(resource.id)
        if known is None:
            return
        try:
            event = _render_event(known, (type, reason, message), datetime.now(UTC))
            await self._api.request("POST", EVENT.path(resource.namespace), event)
        except (ApiError, OSError) as error:
            log.info("Cannot write an event of %s in %s: %s", resource.name, resource.namespace, error)

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


def _render(known: _Known, run: int) -> CustomResource:
    kind, metadata = known.kind, known.custom.metadata
    plain = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
    }
    text = {"apiVersion": kind.api, "kind": kind.kind, "metadata": plain, "spec": known.custom.spec}
    return CustomResource(
        id=known.id,
        kind=kind.kind,
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        text=msgspec.json.encode(text),
        generation=metadata.generation,
        is_leaving=metadata.deletion_timestamp is not None,
        is_held=FINALIZER in metadata.finalizers,
        status=msgspec.json.decode(known.custom.status),
        created_at=objects.millis(metadata.creation_timestamp) or 0,
        created_for=metadata.annotations.get(CREATED_FOR, ""),
        is_written_by_server_only={one.manager for one in metadata.managed_fields} == {MANAGER},
        run=run,
    )


def _render_event(known: _Known, about: tuple[str, str, str], now: datetime) -> Manifest:
    type, reason, message = about
    metadata, time = known.custom.metadata, now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": EVENT.api,
        "kind": EVENT.kind,
        "metadata": {"generateName": f"{metadata.name[:200]}.", "namespace": metadata.namespace},
        "involvedObject": {
            "apiVersion": known.kind.api,
            "kind": known.kind.kind,
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
        },
        "type": type,
        "reason": reason,
        "message": message[:1024],
        "source": {"component": MANAGER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def _nothing() -> None:
    """Nobody listens yet."""
