"""Which running pods mount a config map or a secret that changed. The loop has the engine show them the new files."""

from collections.abc import Callable, Iterable

from fairlead.control.context import Context
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.engines.base import Refresh
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.assets import NamedRecord
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Collection
from fairlead.store.collections import CONFIG_MAPS, SECRETS

#: The objects that are followed: their collection, the volumes that show them, the member that names them.
_SHOWN: tuple[tuple[Collection, str, str], ...] = (
    (CONFIG_MAPS, "configMapVolume", "configMap"),
    (SECRETS, "secretVolume", "secret"),
)
_RUNNING = (PodPhase.STARTING, PodPhase.RUNNING)
RenderPod = Callable[[Workload, Pod, PodSet], PodSpec]


async def find_changed(
    context: Context, entries: Iterable[WorkloadEntry], changed: Iterable[tuple[str, str]], render: RenderPod
) -> list[Refresh]:
    """Orders for the pods that mount an object of one of these names. One that is gone is shown on."""
    wanted = set()
    for name, id in changed:
        for collection, volume, _ in _SHOWN:
            if name == collection.name:
                record: NamedRecord | None = await context.store.get(collection, id)
                if record is not None:
                    wanted.add((volume, record.name))
    return find_mounting(entries, render, wanted) if wanted else []


def find_mounting(
    entries: Iterable[WorkloadEntry], render: RenderPod, wanted: set[tuple[str, str]] | None = None
) -> list[Refresh]:
    """Orders for the pods that mount one of these objects, as (kind of volume, name); for None, any object at all."""
    orders: list[Refresh] = []
    for entry in entries:
        mounting = {podset.role: podset for podset in entry.podsets if _mounts(podset, wanted)}
        pods = (pod for pod in entry.pods if pod.role in mounting and pod.phase in _RUNNING)
        orders += [Refresh(render(entry.workload, pod, mounting[pod.role])) for pod in pods]
    return orders


def _mounts(podset: PodSet, wanted: set[tuple[str, str]] | None) -> bool:
    storage = podset.container.fields.get("storage") or {}
    named = {(volume, item[member]) for _, volume, member in _SHOWN for item in storage.get(volume) or ()}
    return bool(named if wanted is None else named & wanted)
