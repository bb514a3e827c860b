"""What a pod's volumes are made of and the server keeps: secrets, config maps, claims. Asked for before each start.

An engine has no store: `control` answers it (`control/assets/pod_supplies.py`), by way of whoever makes the engine.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.assets import Reference

#: The values of a secret or config map, by key.
Values = Mapping[str, str]
#: An object that a spec names: its kind and its name.
NamedObject = tuple[Reference, str]


class ClaimSupply(msgspec.Struct, frozen=True, kw_only=True):
    """A claim as the engine needs to know it."""

    #: Names its folder; another claim of the same name has another.
    id: str
    name: str
    #: None for one without a bound.
    size_bytes: int | None = None
    storage_class: str = ""
    read_only: bool = False
    #: Whether only pods of one node at a time may mount it (ReadWriteOnce and nothing else).
    is_for_one_node: bool = False
    #: The workload whose spec made it, if any; it goes when that is deleted.
    workload_id: str = ""
    #: Its annotations.
    attributes: Mapping[str, str] = {}


class Supplies(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one pod's volumes and its image refer to."""

    secrets: Mapping[str, Values] = {}
    config_maps: Mapping[str, Values] = {}
    #: By the position of the item in the pod's list of claims; ephemeral ones are the engine's own.
    claims: Mapping[int, ClaimSupply] = {}
    #: By the data volume's id.
    data_volumes: Mapping[str, ClaimSupply] = {}
    #: What its pull secrets hold, each as container runtimes read it (the JSON of a Docker configuration).
    registries: tuple[str, ...] = ()


#: Raises Refused where something that a volume names is not there.
LoadSupplies = Callable[[PodSpec], Awaitable[Supplies]]


async def no_supplies(pod: PodSpec) -> Supplies:
    """Of an engine that nobody gave a way to look anything up."""
    return Supplies()


class KeptClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that the server keeps and no workload brought, as its cluster is to make it."""

    id: str
    name: str
    #: As written.
    size: str
    #: Empty for the cluster's own choice.
    storage_class: str = ""
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)
    volume_mode: str = "Filesystem"
    attributes: Mapping[str, str] = {}


class KeptObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole workload names and the server keeps, by name; what it does not keep is its cluster's."""

    #: Secrets, config maps and credentials of the workload's creator.
    objects: Mapping[NamedObject, Values] = {}
    claims: Mapping[str, KeptClaim] = {}
    #: From a data volume's id to the name of its claim.
    data_volumes: Mapping[str, str] = {}


#: From a workload's id and its pod sets to what of that is to be given to its cluster.
LoadKept = Callable[[str, tuple[PodSet, ...]], Awaitable[KeptObjects]]


async def nothing_kept(workload_id: str, podsets: tuple[PodSet, ...]) -> KeptObjects:
    """Of an engine that nobody gave a way to look anything up."""
    return KeptObjects()
