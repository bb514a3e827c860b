"""Services for the ports of a pod set. Pure."""

from msgspec import UNSET

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, selector_of
from fairlead.engines.kubernetes.render.labels import PROJECT_LABEL, WORKLOAD_LABEL
from fairlead.formats.losses import Source
from fairlead.model.pods.podset import PodSet


def name_of_service(context: RenderContext, podset: PodSet, kind: str) -> str:
    """The name of the Service of one type, such as `ClusterIP`."""
    return f"{context.name}{podset.infix}-{kind.lower()}"


def render_services(context: RenderContext, podset: PodSet, source: Source) -> list[Manifest]:
    """One Service per type; a URL needs a port inside the cluster."""
    by_type: dict[str, list[Manifest]] = {}
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
    # A Service has each port once.
    by_type = {
        kind: list({port["port"]: port for port in reversed(ports)}.values())[::-1] for kind, ports in by_type.items()
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name_of_service(context, podset, kind),
                "namespace": context.namespace,
                "labels": {WORKLOAD_LABEL: context.name, PROJECT_LABEL: context.project, **context.ownership_labels},
            },
            "spec": {"type": kind, "selector": selector_of(context, podset), "ports": ports},
        }
        for kind, ports in by_type.items()
    ]
