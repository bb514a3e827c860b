"""Reads from a cluster what its scheduler, KAI, decides on. Called by `fairlead snapshot --engine kubernetes`.

Needs no server of ours, only the right to list the objects; it changes nothing.
"""

import asyncio
import os

import msgspec

from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Resource
from fairlead.foresight.kai.objects import KaiObjects
from fairlead.model.errors import Refused

_BIND_REQUEST = Resource("scheduling.run.ai/v1alpha2", "BindRequest", "bindrequests")
_TOPOLOGY = Resource("kai.scheduler/v1alpha1", "Topology", "topologies", False)
#: By the member of `KaiObjects`; and those that a cluster may lack.
_LISTS = {
    "pods": POD,
    "nodes": NODE,
    "queues": QUEUE,
    "podGroups": POD_GROUP,
    "priorityClasses": PRIORITY_CLASS,
    "bindRequests": _BIND_REQUEST,
    "topologies": _TOPOLOGY,
}
_OPTIONAL = (_BIND_REQUEST, _TOPOLOGY)


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] = []


def read_scheduler_objects(kubeconfig: str) -> KaiObjects:
    """All objects that KAI reads; raises Refused if the cluster cannot be read."""
    try:
        return asyncio.run(_read(kubeconfig))
    except (ApiError, OSError) as error:
        raise Refused(f"The cluster cannot be read: {error_message(error)}") from error
    except msgspec.DecodeError as error:
        raise Refused(f"The cluster has objects of another form: {error}") from error


async def _read(kubeconfig: str) -> KaiObjects:
    api = Api(load_access(kubeconfig, os.environ))
    try:
        lists = await asyncio.gather(*(_list(api, resource) for resource in _LISTS.values()))
    finally:
        api.close()
    objects = dict(zip(_LISTS, lists, strict=True))
    return msgspec.json.decode(msgspec.json.encode(objects), type=KaiObjects)


async def _list(api: Api, resource: Resource) -> list[msgspec.Raw]:
    body = await api.find(resource.path())
    if body is None and resource not in _OPTIONAL:
        raise Refused(f"The cluster has no {resource.plural} of {resource.api}; is KAI installed there?")
    return msgspec.json.decode(body, type=_Items).items if body is not None else []
