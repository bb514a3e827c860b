"""Reads, applies and deletes one object at a time, for all that write to the cluster. Every request may be repeated."""

from collections.abc import Collection

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import APPLY, Api, ApiError
from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, Manifest, Resource, path_of
from fairlead.model.errors import Refused

MANAGER = "fairlead"
APPLY_QUERY = {"fieldManager": MANAGER, "force": "true"}
_DELETION = {"apiVersion": "v1", "kind": "DeleteOptions"}


class StoredObject(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()
    data: dict[str, str] | None = None


class ListedObjects(msgspec.Struct):
    items: list[StoredObject] = []


class _Kind(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = False


class _Kinds(msgspec.Struct):
    resources: list[_Kind] = []


async def has_kind(api: Api, resource: Resource) -> bool:
    """Whether the cluster has this kind of object."""
    content = await api.find(resource.base)
    kinds = msgspec.json.decode(content, type=_Kinds).resources if content is not None else []
    return any(kind.name == resource.plural for kind in kinds)


async def discover_kind(api: Api, version: str, kind: str) -> Resource | None:
    """The kind of object that the API server serves under this name; None if it has none in namespaces."""
    content = await api.find(Resource(version, kind, "").base)
    served = msgspec.json.decode(content, type=_Kinds).resources if content is not None else []
    # Others are parts of objects, such as their status.
    plain = (one for one in served if one.kind == kind and one.namespaced and "/" not in one.name)
    return next((Resource(version, kind, one.name) for one in plain), None)


def missing_right(resource: Resource, verbs: str) -> str:
    """What an operator has to grant."""
    group = resource.api.rpartition("/")[0] or "the core group"
    return (
        f"Fairlead's account may not {verbs} {resource.plural} of {group} in the cluster; an operator can grant it "
        "with the chart's value workloadKinds"
    )


class _Features(msgspec.Struct):
    data: dict[str, str] = {}


async def has_knative_features(api: Api, names: Collection[str]) -> bool:
    """Whether Knative was configured to accept these fields of pods."""
    try:
        config = await api.get(CONFIG_MAP.path("knative-serving", "config-features"))
    except ApiError as error:
        if error.status in (403, 404):
            return False
        raise
    features = msgspec.json.decode(config, type=_Features).data
    return all(features.get(name) == "enabled" for name in names)


class BlockedForNow(Exception):
    """Something is in the way for now: an object of that name, pods that terminate, or an object of somebody else."""


class ObjectWriter:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def _apply(self, manifest: Manifest, *, is_exact: bool = False) -> StoredObject:
        try:
            answer = await self._api.request(
                "PATCH", path_of(manifest), manifest, query=APPLY_QUERY, content=APPLY, is_exact=is_exact
            )
        except ApiError as error:
            if error.status in (400, 422):
                raise Refused(
                    f"The cluster does not accept {manifest['kind']} {manifest['metadata']['name']}: {error}"
                ) from error
            raise
        return msgspec.json.decode(answer, type=StoredObject)

    async def _find(self, path: str) -> StoredObject | None:
        content = await self._api.find(path)
        return None if content is None else msgspec.json.decode(content, type=StoredObject)

    async def delete(self, path: str, uid: str, propagation: str = "Background") -> bool:
        """Delete this object, and no later one of its name if the request is carried out late.

        Returns whether it is gone now. Pods take their time, and the answer does not say it.
        """
        body = {**_DELETION, "propagationPolicy": propagation, "preconditions": {"uid": uid}}
        try:
            answer = await self._api.request("DELETE", path, body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return error.status == 404
        # Either a Status, or the object, which finalizers may keep.
        return not msgspec.json.decode(answer, type=StoredObject).metadata.finalizers

    async def delete_collection(self, path: str, label: str) -> list[StoredObject]:
        """Delete all objects with the label; returns them."""
        body = {**_DELETION, "propagationPolicy": "Background"}
        answer = await self._api.request("DELETE", path, body, query={"labelSelector": label})
        return msgspec.json.decode(answer, type=ListedObjects).items
