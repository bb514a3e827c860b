"""The requests that list and delete a workload's objects.

`applier.py` builds on it. Objects that are not ours are never touched; every request may be sent twice.
"""

import logging
from collections.abc import Collection

import msgspec

from fairlead.engines.base import DeleteWorkload
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import CLAIM, CONFIG_MAP, INGRESS, MPI, POD, SECRET, SERVICE, Resource
from fairlead.engines.kubernetes.client.writer import ListedObjects, ObjectWriter
from fairlead.engines.kubernetes.plan.existing_objects import Survey, data_hash
from fairlead.engines.kubernetes.render.labels import CLAIM_LABEL, CLUSTER_LABEL, EPHEMERAL_LABEL, ID_LABEL
from fairlead.model.pods.urls import IngressSettings

log = logging.getLogger(__name__)


class OwnedObjects(msgspec.Struct, frozen=True):
    """Our objects that are not watched."""

    survey: Survey
    #: (id, namespace) of the workloads to which they belong.
    workloads: frozenset[tuple[str, str]]


class ObjectDeleter(ObjectWriter):
    def __init__(self, api: Api, cluster: str, runners: tuple[Resource, ...]) -> None:
        super().__init__(api)
        #: The id by which the server knows this cluster.
        self.cluster = cluster
        #: Kinds of controllers that are installed, and pod groups if they are.
        self.runners = runners
        self.groups: tuple[Resource, ...] = ()
        #: How URLs are reached from outside; None if no Ingress objects are wanted.
        self.ingress: IngressSettings | None = None

    @property
    def _ingresses(self) -> tuple[Resource, ...]:
        """Listed only if we create them: our account may not read them otherwise."""
        return (INGRESS,) if self.ingress else ()

    async def delete_workload(self, order: DeleteWorkload) -> int:
        """Ask for the deletion of a workload's objects and pods; how many the API server still has."""
        label = f"{ID_LABEL}={order.workload_id}"
        claims = f"{label},{EPHEMERAL_LABEL}=true" if order.keeps_claims else label
        left = 0
        for resource in (*self.runners, *self.groups, *self._ingresses, SERVICE, POD, SECRET, CONFIG_MAP):
            left += await self._delete_all(resource, order.namespace, label)
        return left + await self._delete_all(CLAIM, order.namespace, claims)

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
            if item.metadata.deletion_timestamp is None:
                # The MPI operator's objects carry no label of ours, and would keep the next job of that name from
                # starting: so the job goes after them.
                propagation = "Foreground" if resource is MPI else "Background"
                await self.delete(resource.path(namespace, item.metadata.name), item.metadata.uid, propagation)
        return len(items)

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
        label = f"{CLUSTER_LABEL}={self.cluster},{CLAIM_LABEL}"
        listed = msgspec.json.decode(await self._api.get(CLAIM.path(), labelSelector=label), type=ListedObjects)
        return [item.metadata for item in listed.items]

    async def list_owned_objects(self) -> OwnedObjects:
        survey: dict[str, int] = {}
        workloads: set[tuple[str, str]] = set()
        for resource in (*self._ingresses, SERVICE, CLAIM, SECRET, CONFIG_MAP):
            label = f"{CLUSTER_LABEL}={self.cluster}"
            listed = msgspec.json.decode(await self._api.get(resource.path(), labelSelector=label), type=ListedObjects)
            for item in listed.items:
                metadata = item.metadata
                if metadata.deletion_timestamp is None:
                    survey[resource.path(metadata.namespace, metadata.name)] = data_hash(item.data)
                if id := metadata.labels.get(ID_LABEL):
                    workloads.add((id, metadata.namespace))
        return OwnedObjects(survey, frozenset(workloads))
