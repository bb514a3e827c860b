"""Resolves the names in a workload's spec: which objects exist at submission, and their values at the start.

`workloads/submit.py` asks what exists. `app` hands `Resolver.load` to the engine, which calls it for each pod that
refers to an object. Names are looked up from the project outwards; user credentials only those of the
workload's creator.
"""

from collections.abc import Callable, Iterable

import msgspec

from fairlead.admission.names import Existing
from fairlead.control.context import Context
from fairlead.control.references import scopes
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import EnvironmentVariable, PodSpec
from fairlead.model.records.assets import (
    STORAGE_CLASSES,
    ConfigMap,
    DataVolume,
    NamedRecord,
    Reference,
    Secret,
    user_scope_key,
)
from fairlead.model.records.workload import Workload
from fairlead.model.spec.references import NamedReference, variable_reference
from fairlead.store.base import Collection, Comparison, Query, Where
from fairlead.store.collections import CLAIMS, CONFIG_MAPS, DATA_VOLUMES, SECRETS, WORKLOADS

#: From a variable that refers to an object to its value; raises Refused with the reason.
Resolve = Callable[[EnvironmentVariable], str]
#: The collections of objects that are looked up by name from a project outwards.
COLLECTIONS: dict[Reference, Collection[NamedRecord]] = {
    Reference.SECRET: SECRETS,
    Reference.CONFIG_MAP: CONFIG_MAPS,
    Reference.CLAIM: CLAIMS,
}


async def load_existing(context: Context, project_id: str, creator: str, uses: Iterable[NamedReference]) -> Existing:
    """All objects of the named kinds that a workload of this project and creator can use."""
    kinds = {use.reference for use in uses}
    existing: dict[Reference, dict[str, frozenset[str] | None]] = {}
    for what in kinds & COLLECTIONS.keys():
        records = await _load_named(context, COLLECTIONS[what], scopes.scope_keys_of_project(context, project_id))
        existing[what] = {name: _keys(record) for name, record in records.items()}
    if Reference.USER_CREDENTIAL in kinds:
        records = await _load_named(context, SECRETS, (user_scope_key(creator),))
        existing[Reference.USER_CREDENTIAL] = {name: _keys(record) for name, record in records.items()}
    if Reference.STORAGE_CLASS in kinds:
        existing[Reference.STORAGE_CLASS] = dict.fromkeys(STORAGE_CLASSES)
    if Reference.DATA_VOLUME in kinds:
        existing[Reference.DATA_VOLUME] = dict.fromkeys(await load_data_volumes(context, project_id))
    return existing


async def load_data_volumes(context: Context, project_id: str) -> dict[str, DataVolume]:
    """By id, the data volumes that a project created or that are shared with it."""
    seen = set(scopes.scope_keys_of_project(context, project_id))
    volumes: list[DataVolume] = await context.store.find(Query(collection=DATA_VOLUMES))
    return {
        volume.id: volume
        for volume in volumes
        if volume.project_id == project_id or any(scope.scope_key in seen for scope in volume.shared)
    }


async def _load_named(
    context: Context, collection: Collection[NamedRecord], where: tuple[str, ...]
) -> dict[str, NamedRecord]:
    query = Query(collection=collection, where=(Where("place", Comparison.ONE_OF, where),))
    return scopes.nearest(where, await context.store.find(query))


def _keys(record: NamedRecord) -> frozenset[str] | None:
    if isinstance(record, Secret):
        return frozenset(record.keys)
    return frozenset(record.data) if isinstance(record, ConfigMap) else None


async def load_secret(context: Context, project_id: str, name: str) -> dict[str, str]:
    """The values of a secret as a workload of that project sees them; raises Refused."""
    return await _values(context, SECRETS, scopes.scope_keys_of_project(context, project_id), name, Reference.SECRET)


async def load_user_credential(context: Context, creator: str, name: str) -> dict[str, str]:
    """The values of a credential of this user; raises Refused if the user has none of that name."""
    return await _values(context, SECRETS, (user_scope_key(creator),), name, Reference.USER_CREDENTIAL)


async def load_config_map(context: Context, project_id: str, name: str) -> dict[str, str]:
    return await _values(
        context, CONFIG_MAPS, scopes.scope_keys_of_project(context, project_id), name, Reference.CONFIG_MAP
    )


async def load_values(context: Context, workload: Workload, use: NamedReference) -> dict[str, str]:
    """The values of the secret, config map or user credential that a workload names; raises Refused."""
    if use.reference is Reference.SECRET:
        return await load_secret(context, workload.project_id, use.name)
    if use.reference is Reference.CONFIG_MAP:
        return await load_config_map(context, workload.project_id, use.name)
    return await load_user_credential(context, workload.created_by, use.name)


async def _values(
    context: Context, collection: Collection[NamedRecord], where: tuple[str, ...], name: str, what: Reference
) -> dict[str, str]:
    wanted = (Where("place", Comparison.ONE_OF, where), Where("name", Comparison.EQUAL, name))
    record = scopes.nearest(where, await context.store.find(Query(collection=collection, where=wanted))).get(name)
    if isinstance(record, Secret):
        return context.vault.open(record.sealed, record.id)
    if isinstance(record, ConfigMap):
        return record.data
    raise Refused(f"there is no {what} '{name}'; it may have been deleted")


class Resolver(msgspec.Struct, frozen=True):
    """Loads the values that the environment of a pod refers to, for the engine."""

    context: Context

    async def load(self, pod: PodSpec) -> Resolve:
        """Loads everything that the pod's variables refer to; the returned function only looks it up."""
        uses = [use for variable in pod.container.environment if (use := variable_reference(variable)) is not None]
        if not uses:
            return _refuse_unknown
        workload: Workload | None = await self.context.store.get(WORKLOADS, pod.workload_id)
        if workload is None:
            raise Refused("its workload was deleted")
        loaded: dict[tuple[Reference, str], dict[str, str]] = {}
        for use in uses:
            if (use.reference, use.name) not in loaded:
                loaded[use.reference, use.name] = await load_values(self.context, workload, use)
        return lambda variable: _value(variable, loaded)


def _value(variable: EnvironmentVariable, loaded: dict[tuple[Reference, str], dict[str, str]]) -> str:
    use = variable_reference(variable)
    if use is None:
        return _refuse_unknown(variable)
    values = loaded[use.reference, use.name]
    if use.key not in values:
        raise Refused(f"environment variable {variable.name}: {use.reference} '{use.name}' has no key '{use.key}'")
    return values[use.key]


def _refuse_unknown(variable: EnvironmentVariable) -> str:
    raise Refused(f"environment variable {variable.name} refers to an object that is not known here")
