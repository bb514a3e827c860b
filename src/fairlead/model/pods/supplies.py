"""Objects of the server that pods use: secrets, config maps, claims. An engine asks for them before each start.

An engine has no store: `app` hands it a function of `control/assets` that loads them.
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
    """What an engine needs to know of a claim."""

    #: Names its folder; a later claim of the same name has another id.
    id: str
    name: str
    #: None for no limit.
    size_bytes: int | None = None
    storage_class: str = ""
    read_only: bool = False
    #: Whether only pods of one node at a time may mount it (ReadWriteOnce and nothing else).
    is_for_one_node: bool = False
    #: The workload whose spec created it, if any; it is deleted with that workload.
    workload_id: str = ""
    #: Its annotations.
    attributes: Mapping[str, str] = {}


class Supplies(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one pod's volumes and its image refer to."""

    secrets: Mapping[str, Values] = {}
    config_maps: Mapping[str, Values] = {}
    #: By the position of the item in the pod's list of claims; the engine creates ephemeral ones itself.
    claims: Mapping[int, ClaimSupply] = {}
    #: By the data volume's id.
    data_volumes: Mapping[str, ClaimSupply] = {}
    #: The content of its pull secrets, each as the JSON of a Docker configuration.
    registries: tuple[str, ...] = ()
    #: The environment of its caller, and what was piped into the call, in base64.
    caller_variables: Mapping[str, str] = {}
    caller_input: str = ""


#: Raises Refused if an object that a volume names does not exist.
LoadSupplies = Callable[[PodSpec], Awaitable[Supplies]]


async def no_supplies(pod: PodSpec) -> Supplies:
    """The default of an engine that was given no way to load anything."""
    return Supplies()


class KeptClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that was created on its own, not by a workload, as the cluster should create it."""

    id: str
    name: str
    #: As written.
    size: str
    #: Empty for the cluster's default.
    storage_class: str = ""
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)
    volume_mode: str = "Filesystem"
    attributes: Mapping[str, str] = {}


class KeptObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a workload names and the server stores. Others are left to the cluster."""

    #: Secrets, config maps and credentials of the workload's creator.
    objects: Mapping[NamedObject, Values] = {}
    claims: Mapping[str, KeptClaim] = {}
    #: From a data volume's id to the name of its claim.
    data_volumes: Mapping[str, str] = {}


#: From a workload's id and its pod sets to the objects that its cluster should get.
LoadKept = Callable[[str, tuple[PodSet, ...]], Awaitable[KeptObjects]]


async def nothing_kept(workload_id: str, podsets: tuple[PodSet, ...]) -> KeptObjects:
    """The default of an engine that was given no way to load anything."""
    return KeptObjects()
