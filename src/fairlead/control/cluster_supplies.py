"""What workloads name and the server keeps, for a cluster that runs them: secrets, config maps, users' credentials.

`app` hands `ClusterSupplier.load` to the engine, which asks before it makes the objects of a workload. A name that the
server does not keep is left out: the cluster may have it, and says so in the pod's own words if it has not.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.resolve import load_config_map, load_secret, load_user_credential
from fairlead.model.errors import Refused
from fairlead.model.podset import PodSet
from fairlead.model.supplies import KeptObjects
from fairlead.model.workload import Workload
from fairlead.store.collections import WORKLOADS

Values = Mapping[str, str]


class ClusterSupplier(msgspec.Struct, frozen=True):
    context: Context

    async def load(self, workload_id: str, podsets: tuple[PodSet, ...]) -> KeptObjects:
        used = set(_used(podsets))
        workload: Workload | None = await self.context.store.get(WORKLOADS, workload_id) if used else None
        if workload is None:
            return KeptObjects()
        project, creator = workload.project_id, workload.created_by
        return KeptObjects(
            secrets=await _load(_of(used, "secret"), lambda name: load_secret(self.context, project, name)),
            config_maps=await _load(_of(used, "config"), lambda name: load_config_map(self.context, project, name)),
            credentials=await _load(
                _of(used, "credential"), lambda name: load_user_credential(self.context, creator, name)
            ),
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
    """Every object that the pods name, as (secret, config or credential; name)."""
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
