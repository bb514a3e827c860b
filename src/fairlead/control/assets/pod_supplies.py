"""Loads what the volumes of a pod refer to, for the engine before each start; and cleans up a workload's claims.

`app` hands `Supplier.load` to the engine. Names are looked up as at submission: from the project outwards.
"""

from collections.abc import Iterable

import msgspec

from fairlead.control.assets.caller_environments import NO_ENVIRONMENT, open_environment
from fairlead.control.assets.claims import claim_name
from fairlead.control.assets.kinds import REGISTRY_KEY
from fairlead.control.context import Context
from fairlead.control.machine_accounts import find_user
from fairlead.control.references import scopes
from fairlead.control.references.resolve import load_config_map, load_data_volumes, load_secret, load_values
from fairlead.control.references.users import find_users
from fairlead.engines.base import Retain
from fairlead.model.errors import Refused
from fairlead.model.pods.container_fields import ClaimMount
from fairlead.model.pods.podset import PodSpec
from fairlead.model.pods.supplies import ClaimSupply, Supplies
from fairlead.model.quantity import whole
from fairlead.model.records.assets import Claim, Reference, project_scope_key
from fairlead.model.records.event import Event
from fairlead.model.records.workload import Workload
from fairlead.model.spec.references import NamedReference, pod_references
from fairlead.store.base import Comparison, Delete, Put, Query, Where
from fairlead.store.collections import CLAIMS, WORKLOADS

_READ_ONLY, _ONE_NODE = ("ReadOnlyMany",), ("ReadWriteOnce",)


class Supplier(msgspec.Struct, frozen=True):
    """Loads what the volumes of a pod refer to, for the engine."""

    context: Context

    async def load(self, pod: PodSpec) -> Supplies:
        workload: Workload | None = await self.context.store.get(WORKLOADS, pod.workload_id)
        if workload is None:
            raise Refused("its workload was deleted")
        self._check_account(workload)
        project = workload.project_id
        uses = list(pod_references(pod.container))
        secrets, maps, volumes = (
            sorted({use.name for use in uses if use.reference is reference and use.path.startswith("storage.")})
            for reference in (Reference.SECRET, Reference.CONFIG_MAP, Reference.DATA_VOLUME)
        )
        caller = await open_environment(self.context, workload) if workload.caller_environment else NO_ENVIRONMENT
        return Supplies(
            caller_variables=caller.variables,
            caller_input=caller.input,
            secrets={name: await load_secret(self.context, project, name) for name in secrets},
            config_maps={name: await load_config_map(self.context, project, name) for name in maps},
            claims=await self._load_claims(workload, pod.container.fields.storage.pvc),
            data_volumes=await self._load_data_volumes(workload, volumes),
            registries=await self._load_registries(
                workload, [use for use in uses if use.path.startswith("imagePullSecrets")]
            ),
        )

    def _check_account(self, workload: Workload) -> None:
        """Its user may have been deleted, or bound to another account, since the submission."""
        user = find_user(self.context, workload.machine_user) if workload.machine_user else None
        if workload.machine_user and (user is None or user.name != workload.created_by):
            raise Refused(f"{workload.created_by} is no longer bound to the account {workload.machine_user}")

    async def _load_registries(self, workload: Workload, pull_secrets: list[NamedReference]) -> tuple[str, ...]:
        """Pull secrets as container runtimes read them; a secret that is not for a registry is refused."""
        registries = []
        for use in pull_secrets:
            values = await load_values(self.context, workload, use)
            if REGISTRY_KEY not in values:
                raise Refused(
                    f"imagePullSecrets: '{use.name}' is not a registry credential: it has no key {REGISTRY_KEY}"
                )
            registries.append(values[REGISTRY_KEY])
        return tuple(registries)

    async def _load_claims(self, workload: Workload, mounts: Iterable[ClaimMount]) -> dict[int, ClaimSupply]:
        wanted = {
            number: claim_name(workload.name, mount.claim_name, mount.name, number)
            for number, mount in enumerate(mounts)
            if not mount.ephemeral
        }
        if not wanted:
            return {}
        where = scopes.scope_keys_of_project(self.context, workload.project_id)
        claims = await self._find(where, set(wanted.values()))
        return {number: _supply(claims[name]) for number, name in wanted.items() if name in claims}

    async def _find(self, where: tuple[str, ...], names: set[str]) -> dict[str, Claim]:
        wanted = (Where("place", Comparison.ONE_OF, where), Where("name", Comparison.ONE_OF, sorted(names)))
        return scopes.nearest(where, await self.context.store.find(Query(collection=CLAIMS, where=wanted)))

    async def _load_data_volumes(self, workload: Workload, ids: list[str]) -> dict[str, ClaimSupply]:
        if not ids:
            return {}
        known = await load_data_volumes(self.context, workload.project_id)
        supplies = {}
        for volume in (known[id] for id in ids if id in known):
            claims = await self._find((project_scope_key(volume.project_id),), {volume.claim_name})
            if volume.claim_name in claims:
                supply = _supply(claims[volume.claim_name])
                is_others = volume.project_id != workload.project_id
                supplies[volume.id] = msgspec.structs.replace(supply, read_only=supply.read_only or is_others)
        return supplies


def _supply(claim: Claim) -> ClaimSupply:
    if claim.volume_mode == "Block":
        raise Refused(f"claim '{claim.name}' is a raw device (volumeMode Block), which this engine does not support")
    return ClaimSupply(
        id=claim.id,
        name=claim.name,
        size_bytes=whole(claim.size) if claim.size else None,
        storage_class=claim.storage_class,
        read_only=claim.access_modes == _READ_ONLY,
        is_for_one_node=claim.access_modes == _ONE_NODE,
        workload_id=claim.workload_id,
        attributes=claim.attributes,
    )


# Claims that a workload created


async def leave_claims(context: Context, workload: Workload) -> tuple[list[Put | Delete], list[Event]]:
    """The changes when a workload is gone: its claims are deleted, or released if other workloads mount them."""
    where = (Where("place", Comparison.EQUAL, project_scope_key(workload.project_id)),)
    claims: list[Claim] = await context.store.find(Query(collection=CLAIMS, where=where))
    writes: list[Put | Delete] = []
    events: list[Event] = []
    for claim in claims:
        if claim.workload_id != workload.id:
            continue
        others = [user for user in await find_users(context, Reference.CLAIM, claim) if user.id != workload.id]
        # Written also before it is deleted: the change is refused if a workload that mounts it came meanwhile.
        writes.append(Put(CLAIMS, msgspec.structs.replace(claim, version=claim.version + 1, workload_id="")))
        if others:
            message = f"Claim {claim.name} of {workload.name} is kept, because {others[0].name} mounts it"
        else:
            writes.append(Delete(CLAIMS, claim.id))
            message = f"Claim {claim.name} was deleted with {workload.name}"
        events.append(_event(context, claim, message))
    return writes, events


def _event(context: Context, claim: Claim, message: str) -> Event:
    """Through this event the loop learns of the claim and lets the engine delete its storage."""
    return Event(
        at=context.clock(),
        subject=CLAIMS.name,
        subject_id=claim.id,
        project_id=claim.project_id,
        reason="WorkloadDeleted",
        message=message,
        source="control",
    )


async def load_retained(context: Context, workload_ids: Iterable[str]) -> Retain:
    """The claims that still exist, for an engine after a start: it deletes the storage of all others."""
    claims: list[Claim] = await context.store.find(Query(collection=CLAIMS))
    return Retain(frozenset(claim.id for claim in claims), frozenset(workload_ids))
