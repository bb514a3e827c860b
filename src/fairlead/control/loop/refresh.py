"""Finds running pods that mount a changed config map or secret, so that the engine updates their files."""

from collections.abc import Callable, Iterable

from fairlead.control.context import Context
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.references.resolve import COLLECTIONS
from fairlead.engines.base import Refresh
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.assets import NamedRecord, Reference
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.spec.references import pod_references

Named = tuple[Reference, str]
_RUNNING = (PodPhase.STARTING, PodPhase.RUNNING)
RenderPod = Callable[[Workload, Pod, PodSet], PodSpec]


async def find_changed(
    context: Context, entries: Iterable[WorkloadEntry], changed: Iterable[tuple[str, str]], render: RenderPod
) -> list[Refresh]:
    """Orders for the pods that mount an object of one of these names. One that is gone is shown on."""
    wanted: set[Named] = set()
    for name, id in changed:
        for reference, collection in COLLECTIONS.items():
            if name == collection.name:
                record: NamedRecord | None = await context.store.get(collection, id)
                if record is not None:
                    wanted.add((reference, record.name))
    return find_mounting(entries, render, wanted) if wanted else []


def find_mounting(
    entries: Iterable[WorkloadEntry], render: RenderPod, wanted: set[Named] | None = None
) -> list[Refresh]:
    """Orders for the pods that mount one of these objects, as (kind of object, name); for None, any object at all."""
    orders: list[Refresh] = []
    for entry in entries:
        mounting = {podset.role: podset for podset in entry.podsets if _mounts(podset, wanted)}
        pods = (pod for pod in entry.pods if pod.role in mounting and pod.phase in _RUNNING)
        orders += [Refresh(render(entry.workload, pod, mounting[pod.role])) for pod in pods]
    return orders


def _mounts(podset: PodSet, wanted: set[Named] | None) -> bool:
    mounted = {(use.reference, use.name) for use in pod_references(podset.container) if use.is_live}
    return bool(mounted if wanted is None else mounted & wanted)
