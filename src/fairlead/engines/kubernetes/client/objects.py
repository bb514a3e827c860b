"""The members of Kubernetes' objects that we read, as structs; other members are not even decoded.

Import this module, not its names: they are Kubernetes' own, and some of our classes have the same.
"""

from datetime import datetime
from typing import Any

import msgspec

from fairlead.model.clock import Millis


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Decoded from JSON; missing members have their defaults."""


class OwnerReference(_Object, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class Metadata(_Object, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int = 0
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(_Object, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Waiting(_Object, frozen=True):
    reason: str = ""
    message: str = ""


class Running(_Object, frozen=True):
    started_at: datetime | None = None


class Terminated(_Object, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(_Object, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Object, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class ContainerPort(_Object, frozen=True):
    container_port: int = 0


class Container(_Object, frozen=True):
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    stdin: bool = False
    tty: bool = False


class PodSpec(_Object, frozen=True):
    node_name: str = ""
    restart_policy: str = ""
    containers: tuple[Container, ...] = ()


class PodStatus(_Object, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(_Object, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class RunnerStatus(_Object, frozen=True):
    """The members that Jobs, Deployments, LeaderWorkerSets and Kubeflow jobs have, together."""

    succeeded: int = 0
    failed: int = 0
    active: int = 0
    #: Of an Indexed Job, such as `0-4,7`.
    completed_indexes: str = ""
    ready_replicas: int = 0
    conditions: tuple[Condition, ...] = ()
    #: Kubeflow's counts by role.
    replica_statuses: dict[str, dict[str, Any]] = {}


class Runner(_Object, frozen=True):
    """A controller of pods."""

    metadata: Metadata = Metadata()
    status: RunnerStatus = RunnerStatus()


class QueueDetails(_Object, frozen=True):
    name: str = ""


class ExplanationDetails(_Object, frozen=True):
    queue_details: QueueDetails | None = None


class Explanation(_Object, frozen=True):
    reason: str = ""
    message: str = ""
    details: ExplanationDetails | None = None


class SchedulingCondition(_Object, frozen=True):
    type: str = ""
    node_pool: str = ""
    reason: str = ""
    message: str = ""
    status: str = ""
    reasons: tuple[Explanation, ...] = ()
    #: A number that grows with every condition.
    transition_id: str = msgspec.field(name="transitionID", default="")


class PodGroupStatus(_Object, frozen=True):
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class PodGroup(_Object, frozen=True):
    metadata: Metadata = Metadata()
    status: PodGroupStatus = PodGroupStatus()


class NodeSpec(_Object, frozen=True):
    unschedulable: bool = False
    taints: tuple[dict[str, str], ...] = ()


class NodeStatus(_Object, frozen=True):
    allocatable: dict[str, str | int] = {}
    conditions: tuple[Condition, ...] = ()


class Node(_Object, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Device(_Object, frozen=True):
    name: str = ""
    #: By name: a value by its type, such as `{"string": "NVIDIA H100"}`.
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, str]] = {}


class DevicePool(_Object, frozen=True):
    name: str = ""
    generation: int = 0


class ResourceSliceSpec(_Object, frozen=True):
    driver: str = ""
    node_name: str = ""
    pool: DevicePool = DevicePool()
    devices: tuple[Device, ...] = ()


class ResourceSlice(_Object, frozen=True):
    """Devices that a driver of dynamic resource allocation offers on a node."""

    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class ObjectReference(_Object, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Namespace(_Object, frozen=True):
    metadata: Metadata = Metadata()


class Event(_Object, frozen=True):
    """A message about an object; a repeated message is the same event with a later time."""

    metadata: Metadata = Metadata()
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
    event_time: datetime | None = None


class DefinitionStatus(_Object, frozen=True):
    #: Null just after the creation.
    conditions: tuple[Condition, ...] | None = None


class Definition(_Object, frozen=True):
    """The definition of an installed kind."""

    metadata: Metadata = Metadata()
    status: DefinitionStatus = DefinitionStatus()


class ManagedFields(_Object, frozen=True):
    """Who wrote a part of an object."""

    manager: str = ""


class CustomMetadata(Metadata, frozen=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class CustomObject(_Object, frozen=True):
    """The custom resource of a workload; its spec is decoded later."""

    metadata: CustomMetadata = CustomMetadata()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


def millis(time: datetime | None) -> Millis | None:
    return None if time is None else round(time.timestamp() * 1000)


def condition(conditions: tuple[Condition, ...], type: str) -> Condition | None:
    """The condition of that type if it is true."""
    return next((one for one in conditions if one.type == type and one.status == "True"), None)
