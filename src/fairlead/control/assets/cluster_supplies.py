"""Loads the secrets, config maps, credentials and claims that a workload names, for a cluster that runs it.

`app` hands `ClusterSupplier.load` to the engine, which calls it before it creates the objects of a workload. Names that
the server does not know are left out: the cluster may have them, and otherwise reports them as missing.
"""

from collections.abc import Collection, Iterable

import msgspec

from fairlead.control.context import Context
from fairlead.control.references.resolve import load_data_volumes, load_values
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import KeptClaim, KeptObjects, NamedObject, Values
from fairlead.model.records.assets import DEFAULT_STORAGE_CLASS, Claim, Reference, project_scope_key
from fairlead.model.records.workload import Workload
from fairlead.model.spec.references import NamedReference, pod_references
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CLAIMS, WORKLOADS

_WITH_VALUES = (Reference.SECRET, Reference.USER_CREDENTIAL, Reference.CONFIG_MAP)


class ClusterSupplier(msgspec.Struct, frozen=True):
    context: Context

    async def load(self, workload_id: str, podsets: tuple[PodSet, ...]) -> KeptObjects:
        used = {
            (use.reference, use.name): use for podset in podsets for use in pod_references(podset.container) if use.name
        }
        workload: Workload | None = await self.context.store.get(WORKLOADS, workload_id) if used else None
        if workload is None:
            return KeptObjects()
        volumes = await self._load_data_volumes(workload.project_id, _of(used, Reference.DATA_VOLUME))
        return KeptObjects(
            objects=await self._load_objects(
                workload, [used[kind, name] for kind in _WITH_VALUES for name in _of(used, kind)]
            ),
            claims=await self._load_claims(workload, {*_of(used, Reference.CLAIM), *volumes.values()}),
            data_volumes=volumes,
        )

    async def _load_objects(self, workload: Workload, uses: Iterable[NamedReference]) -> dict[NamedObject, Values]:
        loaded: dict[NamedObject, Values] = {}
        for use in uses:
            try:
                loaded[use.reference, use.name] = await load_values(self.context, workload, use)
            except Refused:
                # The server does not have it; the cluster may.
                continue
        return loaded

    async def _load_claims(self, workload: Workload, names: Collection[str]) -> dict[str, KeptClaim]:
        """Claims that were created on their own; those of the workload are among its own objects."""
        if not names:
            return {}
        in_project = Where("place", Comparison.EQUAL, project_scope_key(workload.project_id))
        query = Query(collection=CLAIMS, where=(in_project, Where("name", Comparison.ONE_OF, sorted(names))))
        claims = await self.context.store.find(query)
        return {claim.name: _kept_claim(claim) for claim in claims if claim.size and not claim.workload_id}

    async def _load_data_volumes(self, project_id: str, ids: Collection[str]) -> dict[str, str]:
        if not ids:
            return {}
        known = await load_data_volumes(self.context, project_id)
        for id in ids:
            if id not in known:
                raise Refused(f"storage.dataVolume: there is no data volume {id}; it may have been deleted")
            if known[id].project_id != project_id:
                raise Refused(
                    f"storage.dataVolume: {known[id].name} is a claim of another project, and pods of a cluster can "
                    "mount only claims of their own namespace; copy the data into a claim of this project"
                )
        return {id: known[id].claim_name for id in ids}


def _kept_claim(claim: Claim) -> KeptClaim:
    return KeptClaim(
        id=claim.id,
        name=claim.name,
        size=claim.size,
        # The local storage class does not exist in a cluster.
        storage_class="" if claim.storage_class == DEFAULT_STORAGE_CLASS else claim.storage_class,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        attributes=claim.attributes,
    )


def _of(used: Iterable[NamedObject], reference: Reference) -> list[str]:
    return sorted(name for kind, name in used if kind is reference)
