"""What workloads name and the server keeps, for a cluster that runs them: secrets, config maps, credentials, claims.

`app` hands `ClusterSupplier.load` to the engine, which asks before it makes the objects of a workload. A name that the
server does not keep is left out: the cluster may have it, and says so in the pod's own words if it has not.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.references.resolve import load_config_map, load_data_volumes, load_secret, load_user_credential
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import KeptClaim, KeptObjects
from fairlead.model.records.assets import DEFAULT_STORAGE_CLASS, Claim, project_place
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CLAIMS, WORKLOADS

Values = Mapping[str, str]


class ClusterSupplier(msgspec.Struct, frozen=True):
    context: Context

    async def load(self, workload_id: str, podsets: tuple[PodSet, ...]) -> KeptObjects:
        used = set(_used(podsets))
        workload: Workload | None = await self.context.store.get(WORKLOADS, workload_id) if used else None
        if workload is None:
            return KeptObjects()
        project, creator = workload.project_id, workload.created_by
        volumes = await self._load_data_volumes(project, _of(used, "volume"))
        return KeptObjects(
            secrets=await _load(_of(used, "secret"), lambda name: load_secret(self.context, project, name)),
            config_maps=await _load(_of(used, "config"), lambda name: load_config_map(self.context, project, name)),
            credentials=await _load(
                _of(used, "credential"), lambda name: load_user_credential(self.context, creator, name)
            ),
            claims=await self._load_claims(workload, {*_of(used, "claim"), *volumes.values()}),
            data_volumes=volumes,
        )

    async def _load_claims(self, workload: Workload, names: Collection[str]) -> dict[str, KeptClaim]:
        """Claims that were made for themselves; what a workload brings along is in its own objects."""
        if not names:
            return {}
        place = Where("place", Comparison.EQUAL, project_place(workload.project_id))
        query = Query(collection=CLAIMS, where=(place, Where("name", Comparison.ONE_OF, sorted(names))))
        found: list[Claim] = await self.context.store.find(query)
        return {claim.name: _kept(claim) for claim in found if claim.size and not claim.workload_id}

    async def _load_data_volumes(self, project_id: str, ids: Collection[str]) -> dict[str, str]:
        if not ids:
            return {}
        known = await load_data_volumes(self.context, project_id)
        for id in ids:
            if id not in known:
                raise Refused(f"storage.dataVolume: there is no data volume {id} any more")
            if known[id].project_id != project_id:
                raise Refused(
                    f"storage.dataVolume: {known[id].name} is a claim of another project; pods of a cluster mount "
                    "claims of their own namespace only. Copy the data into a claim of this project"
                )
        return {id: known[id].claim_name for id in ids}


def _kept(claim: Claim) -> KeptClaim:
    return KeptClaim(
        id=claim.id,
        name=claim.name,
        size=claim.size,
        # The class of one machine means nothing to a cluster.
        storage_class="" if claim.storage_class == DEFAULT_STORAGE_CLASS else claim.storage_class,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        attributes=claim.attributes,
    )


def _of(used: Iterable[tuple[str, str]], what: str) -> list[str]:
    return sorted(name for kind, name in used if kind == what)


async def _load(names: Iterable[str], load: Callable[[str], Awaitable[Values]]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for name in names:
        try:
            found[name] = await load(name)
        except Refused:
            # Not ours; the cluster is asked.
            continue
    return found


def _used(podsets: Iterable[PodSet]) -> Iterator[tuple[str, str]]:
    """Every object that the pods name, as (secret, config, credential, claim or volume; name)."""
    for podset in podsets:
        for variable in podset.container.environment:
            for what, source in (
                ("secret", variable.secret),
                ("config", variable.config_map),
                ("credential", variable.user_credential),
            ):
                if source is not None:
                    yield what, source[0]
        yield from _named(podset.container.fields)


def _named(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    storage = fields.get("storage") or {}
    for item in storage.get("secretVolume") or ():
        yield "secret", item["secret"]
    for item in storage.get("configMapVolume") or ():
        yield "config", item["configMap"]
    for item in fields.get("imagePullSecrets") or ():
        yield ("credential" if item.get("userCredential") else "secret"), item["name"]
    for item in storage.get("git") or ():
        if name := (item.get("secretRef") or {}).get("name") or item.get("passwordSecret"):
            yield "secret", name
    for item in storage.get("s3") or ():
        if item.get("accessKeySecret"):
            yield "secret", item["accessKeySecret"]
    for item in storage.get("pvc") or ():
        if item.get("claimName"):
            yield "claim", item["claimName"]
    for item in storage.get("dataVolume") or ():
        yield "volume", item["id"].lower()
