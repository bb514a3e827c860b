"""What is exposed by URLs, as Ingress objects that ask our server who may open them. Pure; `render.py` calls it.

Only where an operator wants them. URLs whose requests we count, hold or limit lead to our own proxy, which sees to all
of it; the others lead to the workload's Service. The annotations are ingress-nginx's.
"""

from collections.abc import Sequence
from typing import Any

from fairlead.engines.kubernetes.client.resources import INGRESS, SERVICE
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.labels import PROJECT_LABEL, WORKLOAD_LABEL
from fairlead.engines.kubernetes.render.service import name_of_service
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.urls import ACCESS, ANSWERED, SIGN_IN, IngressSettings, UrlRoute

_NGINX = "nginx.ingress.kubernetes.io"
#: Like our own proxy, which bounds neither bodies nor the silence of a connection that is open; in seconds.
_PATIENCE = 3600
_SECOND = 1000

#: A path of a host and where it leads: host, path, how the path is compared, Service, port.
_Way = tuple[str, str, str, str, int]


def render_ingresses(place: RenderContext, podsets: Sequence[PodSet], *, is_held: bool = False) -> list[dict[str, Any]]:
    """The Ingress of every URL of these pod sets, and a Service that is our proxy; `is_held`: all lead to that one."""
    entrance = place.ingress
    if entrance is None:
        return []
    exposing = [podset for podset in podsets for _ in podset.container.fields.exposed_urls]
    proxy = f"{place.name}-proxy"
    made: list[dict[str, Any]] = []
    held: list[_Way] = []
    sign_ins: list[_Way] = []
    for number, (podset, url) in enumerate(zip(exposing, place.urls, strict=False), 1):
        if not entrance.can_expose(url):
            continue
        name = f"{place.name}-url" + (f"-{number}" if number > 1 else "")
        if is_held or _is_held(podset):
            way = (url.host, url.prefix or "/", "Prefix", proxy, entrance.proxy_port)
            annotations = {**_to_proxy(entrance, is_grpc=url.is_grpc), **_limits(_PATIENCE)}
            held.append(way)
        else:
            way = (url.host, url.prefix or "/", "Prefix", name_of_service(place, podset, "ClusterIP"), url.port)
            annotations = {**_to_pods(entrance, url), **_limits(_timeout(podset))}
            if not url.is_public:
                sign_ins.append((url.host, url.prefix + SIGN_IN, "Exact", proxy, entrance.proxy_port))
        made.append(_ingress(place, entrance, name, annotations, [way]))
    if sign_ins:
        made.append(_ingress(place, entrance, f"{place.name}-sign-in", _to_proxy(entrance), sign_ins))
    return [_proxy(place, entrance, proxy), *made] if held or sign_ins else made


def _is_held(podset: PodSet) -> bool:
    """Whether requests to it are counted to scale it, wait for it to wake, or are let in only so many at once."""
    scaling = podset.scaling
    return scaling is not None and (scaling.min_pods < max(1, scaling.max_pods) or scaling.concurrency_limit > 0)


def _timeout(podset: PodSet) -> int:
    return podset.scaling.request_timeout // _SECOND if podset.scaling else _PATIENCE


def _limits(seconds: int) -> dict[str, str]:
    return {
        f"{_NGINX}/proxy-body-size": "0",
        f"{_NGINX}/proxy-read-timeout": str(seconds),
        f"{_NGINX}/proxy-send-timeout": str(_PATIENCE),
    }


def _to_proxy(entrance: IngressSettings, *, is_grpc: bool = False) -> dict[str, str]:
    """Our proxy asks by itself who comes."""
    protocol = ("GRPC" if is_grpc else "HTTP") + ("S" if entrance.is_tls else "")
    return {f"{_NGINX}/backend-protocol": protocol}


def _to_pods(entrance: IngressSettings, url: UrlRoute) -> dict[str, str]:
    protocol = {f"{_NGINX}/backend-protocol": "GRPC" if url.is_grpc else "HTTP"}
    if url.is_public:
        return protocol
    scheme = "https" if entrance.is_tls else "http"
    # For which URL it asks is said here, not found by the path: servers read one path in several ways.
    asked = f"{scheme}://{entrance.server}:{entrance.port}{ACCESS}?url={url.host}{url.prefix}"
    answered = ",".join(ANSWERED)
    return {
        **protocol,
        f"{_NGINX}/auth-url": asked,
        f"{_NGINX}/auth-response-headers": answered,
        # The answer repeats the caller's cookies, which may be as long as nginx takes them.
        f"{_NGINX}/proxy-buffer-size": "32k",
    }


def _metadata(place: RenderContext, name: str) -> dict[str, Any]:
    labels = {WORKLOAD_LABEL: place.name, PROJECT_LABEL: place.project, **place.ownership_labels}
    return {"name": name, "namespace": place.namespace, "labels": labels}


def _ingress(
    place: RenderContext, entrance: IngressSettings, name: str, annotations: dict[str, str], ways: Sequence[_Way]
) -> dict[str, Any]:
    spec: dict[str, Any] = {"ingressClassName": entrance.ingress_class, "rules": [_rule(*way) for way in ways]}
    if entrance.has_certificate:
        # Without a Secret's name it is the controller's own certificate.
        spec["tls"] = [{"hosts": sorted({way[0] for way in ways})}]
    metadata = {**_metadata(place, name), "annotations": annotations}
    return {"apiVersion": INGRESS.api, "kind": INGRESS.kind, "metadata": metadata, "spec": spec}


def _rule(host: str, path: str, compared: str, service: str, port: int) -> dict[str, Any]:
    backend = {"service": {"name": service, "port": {"number": port}}}
    return {"host": host, "http": {"paths": [{"path": path, "pathType": compared, "backend": backend}]}}


def _proxy(place: RenderContext, entrance: IngressSettings, name: str) -> dict[str, Any]:
    """An Ingress leads to Services of its own namespace only: this one is a name for our server's."""
    port = {"name": "urls", "port": entrance.proxy_port, "targetPort": entrance.proxy_port}
    spec = {"type": "ExternalName", "externalName": entrance.server, "ports": [port]}
    return {"apiVersion": SERVICE.api, "kind": SERVICE.kind, "metadata": _metadata(place, name), "spec": spec}
