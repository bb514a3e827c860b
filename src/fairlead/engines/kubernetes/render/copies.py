"""Secrets and config maps that the server keeps, as objects that a workload has for itself. Pure.

Copies are the workload's own and go with it, so that nobody else's object of that name is touched or read.
"""

import base64
from collections.abc import Mapping
from typing import Any

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, SECRET
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of
from fairlead.model.pods.supplies import KeptObjects, NamedObject
from fairlead.model.records.assets import Reference

_REGISTRY = ".dockerconfigjson"
#: The part of a copy's name that tells equal names of different kinds apart.
_INFIXES = {Reference.SECRET: "secret", Reference.CONFIG_MAP: "config", Reference.USER_CREDENTIAL: "credential"}


def copies_of(workload: str, kept: KeptObjects) -> dict[NamedObject, str]:
    """What each kept object is called in the cluster."""
    return {key: f"{workload}-{_INFIXES[key[0]]}-{key[1]}".lower() for key in kept.objects}


def render_copies(place: RenderContext, kept: KeptObjects) -> list[dict[str, Any]]:
    """Every kept object as the workload's own copy of it."""
    return [
        _config_map(place, place.copies[key], values)
        if key[0] is Reference.CONFIG_MAP
        else _secret(place, place.copies[key], values)
        for key, values in kept.objects.items()
    ]


def _config_map(place: RenderContext, name: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": CONFIG_MAP.api,
        "kind": CONFIG_MAP.kind,
        "metadata": metadata_of(place, name),
        "data": dict(values),
    }


def _secret(place: RenderContext, name: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": SECRET.api,
        "kind": SECRET.kind,
        "metadata": metadata_of(place, name),
        "type": "kubernetes.io/dockerconfigjson" if _REGISTRY in values else "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
