"""What leads to the ports of a pod set, as Services. Pure; `render.py` calls it."""

from typing import Any

from msgspec import UNSET

from fairlead.engines.kubernetes.render.context import RenderContext, selector_of
from fairlead.engines.kubernetes.render.labels import PROJECT_LABEL, WORKLOAD_LABEL
from fairlead.formats.losses import Source
from fairlead.model.pods.podset import PodSet


def name_of_service(place: RenderContext, podset: PodSet, kind: str) -> str:
    """Of the Service that offers ports of a pod set in one way, such as `ClusterIP`."""
    return f"{place.name}{podset.infix}-{kind.lower()}"


def render_services(place: RenderContext, podset: PodSet, source: Source) -> list[dict[str, Any]]:
    """One Service for each way of offering ports; a URL needs a port inside the cluster."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for number, item in source.items("ports"):
        port = {"name": f"port-{item['container']}", "port": item["container"], "targetPort": item["container"]}
        kind, external = source.take(f"ports[{number}].serviceType"), source.take(f"ports[{number}].external")
        if external is not UNSET:
            port["nodePort" if kind == "NodePort" else "port"] = external
        source.take(f"ports[{number}].container")
        by_type.setdefault(kind if kind is not UNSET else "ClusterIP", []).append(port)
    for number, item in source.items("exposedUrls"):
        port = {"name": f"url-{item['container']}", "port": item["container"], "targetPort": item["container"]}
        source.take(f"exposedUrls[{number}].container")
        by_type.setdefault("ClusterIP", []).append(port)
    # A service has a port once, however many lead to it.
    by_type = {
        kind: list({port["port"]: port for port in reversed(ports)}.values())[::-1] for kind, ports in by_type.items()
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name_of_service(place, podset, kind),
                "namespace": place.namespace,
                "labels": {WORKLOAD_LABEL: place.name, PROJECT_LABEL: place.project, **place.ownership_labels},
            },
            "spec": {"type": kind, "selector": selector_of(place, podset), "ports": ports},
        }
        for kind, ports in by_type.items()
    ]
