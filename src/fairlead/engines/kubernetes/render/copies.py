"""Secrets and config maps that the server keeps, as objects that a workload has for itself. Pure.

Copies are the workload's own and go with it, so that nobody else's object of that name is touched or read.
"""

import base64
from collections.abc import Mapping
from typing import Any

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, SECRET
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of
from fairlead.model.pods.supplies import KeptObjects

_REGISTRY = ".dockerconfigjson"


def copies_of(workload: str, kept: KeptObjects) -> dict[tuple[str, str], str]:
    """What each kept object is called in the cluster."""
    return {
        (what, name): f"{workload}-{what}-{name}".lower()
        for what, objects in (
            ("secret", kept.secrets),
            ("config", kept.config_maps),
            ("credential", kept.credentials),
        )
        for name in objects
    }


def render_copies(place: RenderContext, kept: KeptObjects) -> list[dict[str, Any]]:
    secrets = [
        _secret(place, place.copies[what, name], values)
        for what, objects in (("secret", kept.secrets), ("credential", kept.credentials))
        for name, values in objects.items()
    ]
    maps = [
        {
            "apiVersion": CONFIG_MAP.api,
            "kind": CONFIG_MAP.kind,
            "metadata": metadata_of(place, place.copies["config", name]),
            "data": dict(values),
        }
        for name, values in kept.config_maps.items()
    ]
    return secrets + maps


def _secret(place: RenderContext, name: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": SECRET.api,
        "kind": SECRET.kind,
        "metadata": metadata_of(place, name),
        "type": "kubernetes.io/dockerconfigjson" if _REGISTRY in values else "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
