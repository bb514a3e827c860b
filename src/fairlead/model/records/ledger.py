"""The ledger of usage: what workloads held and waited for, and what nodes and quotas there were, until when.

Closed intervals only. What is still open follows from the records of pods, workloads, nodes and owners themselves, so
that a start writes nothing. `control/ledger/` writes and reads these records.
"""

from typing import Literal, NamedTuple

import msgspec

from fairlead.model.clock import Millis


class ResourceAmounts(NamedTuple):
    """An amount of each resource: thousandths of a GPU, millicores, bytes."""

    gpu: int = 0
    cpu: int = 0
    memory: int = 0


NOTHING = ResourceAmounts()


class UsageInterval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a pod held from its placement to its end, or what a workload requested while it waited."""

    #: The pod's id, or the workload's id and version.
    id: str
    version: int = 1
    type: Literal["used", "waited"] = "used"
    since: Millis
    until: Millis
    workload_id: str
    workload_name: str
    #: Who submitted the workload.
    user: str
    project_id: str
    project_name: str
    department_id: str
    department_name: str
    node_pool: str
    #: Empty for a workload that waited.
    node: str = ""
    preemptible: bool = True
    amounts: ResourceAmounts = NOTHING


class PoolDeserved(NamedTuple):
    """The quota of an owner in one node pool, in the units of `ResourceAmounts`; None for an unlimited one."""

    gpu: int | None = 0
    cpu: int | None = None
    memory: int | None = None


class SupplyInterval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node or an owner's quota was until a time; it began when the previous interval of the subject ended."""

    id: str
    version: int = 1
    #: `ledger` says that nothing is recorded before `until`.
    type: Literal["node", "project", "department", "ledger"] = "node"
    #: The name of a node, the id of an owner.
    subject: str
    until: Millis
    #: Of an owner.
    name: str = ""
    deserved: dict[str, PoolDeserved] = {}
    #: Of a node: its pool, what it had, and whether new pods could be placed on it. Nothing if it did not exist.
    node_pool: str = ""
    capacity: ResourceAmounts = NOTHING
    available: bool = False
