"""Copies of the server's secrets and config maps for one workload. Pure.

A copy belongs to its workload and is deleted with it, so that no other object of that name is touched or read.
"""

import base64
from collections.abc import Mapping

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, SECRET, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of
from fairlead.model.pods.supplies import KeptObjects, NamedObject
from fairlead.model.records.assets import Reference

_REGISTRY = ".dockerconfigjson"
#: The part of a copy's name that tells equal names of different kinds apart.
_INFIXES = {Reference.SECRET: "secret", Reference.CONFIG_MAP: "config", Reference.USER_CREDENTIAL: "credential"}


def copies_of(workload: str, kept: KeptObjects) -> dict[NamedObject, str]:
    """The name of each copy in the cluster."""
    return {key: f"{workload}-{_INFIXES[key[0]]}-{key[1]}".lower() for key in kept.objects}


def render_copies(context: RenderContext, kept: KeptObjects) -> list[Manifest]:
    """The workload's copies of all these objects."""
    return [
        _config_map(context, context.copies[key], values)
        if key[0] is Reference.CONFIG_MAP
        else _secret(context, context.copies[key], values)
        for key, values in kept.objects.items()
    ]


def _config_map(context: RenderContext, name: str, values: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": CONFIG_MAP.api,
        "kind": CONFIG_MAP.kind,
        "metadata": metadata_of(context, name),
        "data": dict(values),
    }


def _secret(context: RenderContext, name: str, values: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": SECRET.api,
        "kind": SECRET.kind,
        "metadata": metadata_of(context, name),
        "type": "kubernetes.io/dockerconfigjson" if _REGISTRY in values else "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
