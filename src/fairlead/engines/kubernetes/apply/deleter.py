"""The requests that list and delete a workload's objects.

`applier.py` builds on it. Objects that are not ours are never touched; every request may be sent twice.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from fairlead.engines.base import DeleteWorkload
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.client.resources import (
    CLAIM,
    CONFIG_MAP,
    INGRESS,
    MPI,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM_TEMPLATE,
    SECRET,
    SERVICE,
    Resource,
)
from fairlead.engines.kubernetes.client.writer import ListedObjects, ObjectWriter, StoredObject
from fairlead.engines.kubernetes.observe.workload import run_of
from fairlead.engines.kubernetes.plan.existing_objects import Survey, data_hash
from fairlead.engines.kubernetes.render.labels import CLAIM_LABEL, CLUSTER_LABEL, EPHEMERAL_LABEL, ID_LABEL, RUN_LABEL

log = logging.getLogger(__name__)


#: Namespaces that are listed at the same time.
_AT_ONCE = 16
#: How often a namespace is asked whose binding may not have taken effect yet, and the seconds between.
_TRIES, _PAUSE = 5, 0.2


class OwnedObjects(msgspec.Struct, frozen=True):
    """Our objects that are not watched."""

    survey: Survey
    #: The kinds of them by (id, namespace) of the workload to which they belong.
    kinds: dict[tuple[str, str], set[Resource]]
    workload_ids: frozenset[str]


class ObjectDeleter(ObjectWriter):
    def __init__(
        self,
        api: Api,
        cluster_id: Callable[[], str],
        kinds: InstalledKinds,
        organization: OrganizationSync,
        *,
        has_ingresses: bool = False,
    ) -> None:
        super().__init__(api)
        self.cluster_id = cluster_id
        self.kinds = kinds
        self._organization = organization
        # Listed only if we create them: our account may not read them otherwise.
        self._ingresses = (INGRESS,) if has_ingresses else ()

    @property
    def _unwatched(self) -> tuple[Resource, ...]:
        """Kinds that are not watched, without claims."""
        device_claims = (RESOURCE_CLAIM_TEMPLATE,) if self.kinds.has_device_claims else ()
        return (*self._ingresses, SERVICE, SECRET, CONFIG_MAP, *device_claims)

    def kinds_of_workloads(self) -> tuple[Resource, ...]:
        """All that a workload may consist of, in the order in which it is deleted."""
        groups = (POD_GROUP,) if self.kinds.has_pod_groups else ()
        return (*self.kinds.runners, *groups, *self._unwatched, POD, CLAIM)

    async def delete_workload(self, order: DeleteWorkload, kinds: Collection[Resource]) -> int:
        """Ask for the deletion of a workload's objects of these kinds; how many the API server still has."""
        label = f"{ID_LABEL}={order.workload_id}"
        claims = f"{label},{EPHEMERAL_LABEL}=true" if order.keeps_claims else label
        remaining = 0
        for resource in self.kinds_of_workloads():
            if resource in kinds:
                remaining += await self._delete_all(resource, order.namespace, claims if resource is CLAIM else label)
        return remaining

    async def _delete_all(self, resource: Resource, namespace: str, label: str) -> int:
        """Ask for the deletion of every object with the label; how many there still are."""
        try:
            listed = await self._api.get(resource.path(namespace), labelSelector=label)
        except ApiError as error:
            # The kind was uninstalled, and its objects with it.
            if error.status == 404:
                return 0
            raise
        items = msgspec.json.decode(listed, type=ListedObjects).items
        for item in items:
            await self.delete_object(resource, item.metadata)
        return len(items)

    async def delete_object(self, resource: Resource, metadata: objects.Metadata) -> None:
        """Ask for the deletion of one object, unless that was done before."""
        if metadata.deletion_timestamp is None:
            # The MPI operator's objects carry no label of ours, and would keep the next job of that name from
            # starting: so the job goes after them.
            propagation = "Foreground" if resource is MPI else "Background"
            await self.delete(resource.path(metadata.namespace, metadata.name), metadata.uid, propagation)

    async def delete_pods(self, pods: Sequence[objects.Metadata]) -> bool:
        """Ask for the deletion of the pods of a run, in one request; whether the API server has no others of it."""
        runs = {run_of(pod) for pod in pods}
        if len(pods) > 1 and len(runs) == 1 and 0 not in runs:
            label = f"{ID_LABEL}={pods[0].labels[ID_LABEL]},{RUN_LABEL}={runs.pop()}"
            try:
                deleted = await self.delete_collection(POD.path(pods[0].namespace), label)
                return {item.metadata.uid for item in deleted} <= {pod.uid for pod in pods}
            except ApiError as error:
                # Roles of earlier versions do not have this verb.
                if error.status != 403:
                    raise
        for pod in pods:
            await self.delete_object(POD, pod)
        return False

    async def delete_claims(self, claim_ids: Collection[str]) -> None:
        """Delete claims of the server by the ids of their records; a pod that mounts one keeps it to its end."""
        for claim in await self._list_claims():
            if claim.labels[CLAIM_LABEL] in claim_ids:
                await self.delete(CLAIM.path(claim.namespace, claim.name), claim.uid)

    async def report_unknown_claims(self, claim_ids: Collection[str]) -> None:
        """Name the server's claims that no record knows. They are kept: they may be newer than a restored backup."""
        for claim in await self._list_claims():
            if claim.labels[CLAIM_LABEL] not in claim_ids:
                log.warning(
                    "Claim %s in namespace %s has no record and is kept; to delete it and its data: "
                    "kubectl delete pvc -n %s %s",
                    *(claim.name, claim.namespace, claim.namespace, claim.name),
                )

    async def _list_claims(self) -> list[objects.Metadata]:
        return [item.metadata for item in await self._list_ours(CLAIM, f",{CLAIM_LABEL}")]

    async def _list_ours(self, resource: Resource, more: str = "") -> list[StoredObject]:
        """All our objects of a kind: in the whole cluster, or in our namespaces if the account may read only those."""
        label = f"{CLUSTER_LABEL}={self.cluster_id()}{more}"
        try:
            return _items(await self._api.get(resource.path(), labelSelector=label))
        except ApiError as error:
            if error.status != 403:
                raise
        listed: list[StoredObject] = []
        await self._organization.wait_until_synced()
        for batch in _batches(sorted(self._organization.namespaces)):
            answers = await asyncio.gather(*(self._list_in(resource, namespace, label) for namespace in batch))
            listed += [item for items in answers for item in items]
        return listed

    async def _list_in(self, resource: Resource, namespace: str, label: str) -> list[StoredObject]:
        for attempt in range(_TRIES):
            try:
                return _items(await self._api.get(resource.path(namespace), labelSelector=label))
            except ApiError as error:
                if error.status != 403:
                    raise
                # A binding that was just created takes effect in a moment.
                if attempt == _TRIES - 1:
                    log.warning("Cannot list %s in namespace %s: %s", resource.plural, namespace, error)
                else:
                    await asyncio.sleep(_PAUSE)
        return []

    async def list_owned_objects(self) -> OwnedObjects:
        survey: dict[str, int] = {}
        kinds: dict[tuple[str, str], set[Resource]] = {}
        for resource in (*self._unwatched, CLAIM):
            for item in await self._list_ours(resource):
                metadata = item.metadata
                if metadata.deletion_timestamp is None:
                    survey[resource.path(metadata.namespace, metadata.name)] = data_hash(item.data)
                if id := metadata.labels.get(ID_LABEL):
                    kinds.setdefault((id, metadata.namespace), set()).add(resource)
        return OwnedObjects(survey, kinds, frozenset(id for id, _ in kinds))


def _items(listed: bytes) -> list[StoredObject]:
    return msgspec.json.decode(listed, type=ListedObjects).items


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
