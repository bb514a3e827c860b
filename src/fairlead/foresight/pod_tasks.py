"""What the pods of a pod set ask of the scheduler: the request of one pod, and the topology that they name.

Called for the scheduler's snapshot, and by questions on workloads that are in no snapshot.
"""

from msgspec.structs import replace

from fairlead.model.pods.container_fields import ContainerFields
from fairlead.model.pods.podset import Request
from fairlead.scheduling.model.snapshot import Task, TopologyConstraint

_MIG = "nvidia.com/mig-"
_TOPOLOGY = "kai.scheduler/topology"


def render_request(request: Request) -> Task:
    """A task without an id that requests what a pod does."""
    task = Task(
        id="",
        cpu_milli=request.cpu_milli,
        memory_bytes=request.memory_bytes,
        mig={name.removeprefix(_MIG): count for name, count in request.extended.items() if name.startswith(_MIG)},
        extended={name: count for name, count in request.extended.items() if not name.startswith(_MIG)},
    )
    if request.gpu_devices == 0:
        return task
    if request.gpu_memory_bytes:
        return replace(task, gpu_memory_mib=request.gpu_memory_mib, gpu_devices=request.gpu_devices)
    if request.gpu_portion < 1000:
        return replace(task, gpu_portion=request.gpu_portion / 1000, gpu_devices=request.gpu_devices)
    return replace(task, gpu=request.gpu_devices)


def requested_topology(fields: ContainerFields) -> TopologyConstraint | None:
    """The constraint in a workload's annotations, as KAI reads them."""
    annotations = {annotation.name: annotation.value or "" for annotation in fields.annotations}
    topology = annotations.get(_TOPOLOGY)
    required, preferred = (
        annotations.get(f"{_TOPOLOGY}-required-placement"),
        annotations.get(f"{_TOPOLOGY}-preferred-placement"),
    )
    if not topology or not (required or preferred):
        return None
    return TopologyConstraint(topology=topology, required=required or None, preferred=preferred or None)
