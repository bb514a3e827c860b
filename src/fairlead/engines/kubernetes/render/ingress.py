"""Services for the ports of pod sets, and exposed URLs as Ingress objects that ask our server who may open them. Pure.

Ingress objects are rendered only if the operator wants them. URLs whose requests we count, queue or limit lead to our
own proxy, which does all of that; the others lead to the workload's Service. The annotations are those of
ingress-nginx.
"""

from collections.abc import Sequence

from msgspec import UNSET

from fairlead.engines.kubernetes.client.resources import INGRESS, SERVICE, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, selector_of
from fairlead.engines.kubernetes.render.labels import PROJECT_LABEL, WORKLOAD_LABEL
from fairlead.formats.losses import Source
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.urls import ACCESS, ANSWERED, SIGN_IN, IngressSettings, UrlRoute

_NGINX = "nginx.ingress.kubernetes.io"
#: Seconds. Our own proxy limits neither bodies nor the idle time of an open connection.
_PATIENCE = 3600
_SECOND = 1000

#: Host, path, how the path is compared, Service, port.
_Route = tuple[str, str, str, str, int]


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
    by_type = {kind: _once(ports) for kind, ports in by_type.items()}
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


def render_ingresses(context: RenderContext, podsets: Sequence[PodSet], *, is_held: bool = False) -> list[Manifest]:
    """An Ingress for every URL of these pod sets, and a Service for our proxy; `is_held`: all lead to the proxy."""
    ingress = context.ingress
    if ingress is None:
        return []
    exposing = [podset for podset in podsets for _ in podset.container.fields.exposed_urls]
    proxy = f"{context.name}-proxy"
    manifests: list[Manifest] = []
    routes_to_proxy: list[_Route] = []
    sign_ins: list[_Route] = []
    for number, (podset, url) in enumerate(zip(exposing, context.urls, strict=False), 1):
        if not ingress.can_expose(url):
            continue
        name = f"{context.name}-url" + (f"-{number}" if number > 1 else "")
        if is_held or _is_held(podset):
            route = (url.host, url.prefix or "/", "Prefix", proxy, ingress.proxy_port)
            annotations = {**_to_proxy(ingress, is_grpc=url.is_grpc), **_limits(_PATIENCE)}
            routes_to_proxy.append(route)
        else:
            route = (url.host, url.prefix or "/", "Prefix", name_of_service(context, podset, "ClusterIP"), url.port)
            annotations = {**_to_pods(ingress, url), **_limits(_timeout(podset))}
            if not url.is_public:
                sign_ins.append((url.host, url.prefix + SIGN_IN, "Exact", proxy, ingress.proxy_port))
        manifests.append(_ingress(context, ingress, name, annotations, [route]))
    if sign_ins:
        manifests.append(_ingress(context, ingress, f"{context.name}-sign-in", _to_proxy(ingress), sign_ins))
    return [_proxy(context, ingress, proxy), *manifests] if routes_to_proxy or sign_ins else manifests


def _is_held(podset: PodSet) -> bool:
    """Whether its requests are counted for scaling, wait until it wakes, or are limited in number."""
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


def _to_proxy(ingress: IngressSettings, *, is_grpc: bool = False) -> dict[str, str]:
    """Our proxy checks the caller itself."""
    protocol = ("GRPC" if is_grpc else "HTTP") + ("S" if ingress.is_tls else "")
    return {f"{_NGINX}/backend-protocol": protocol}


def _to_pods(ingress: IngressSettings, url: UrlRoute) -> dict[str, str]:
    protocol = {f"{_NGINX}/backend-protocol": "GRPC" if url.is_grpc else "HTTP"}
    if url.is_public:
        return protocol
    scheme = "https" if ingress.is_tls else "http"
    # The URL is given here and not taken from the path, because servers read one path in several routes.
    auth_url = f"{scheme}://{ingress.server}:{ingress.port}{ACCESS}?url={url.host}{url.prefix}"
    answered = ",".join(ANSWERED)
    return {
        **protocol,
        f"{_NGINX}/auth-url": auth_url,
        f"{_NGINX}/auth-response-headers": answered,
        # The answer repeats the caller's cookies, which may be as long as nginx accepts.
        f"{_NGINX}/proxy-buffer-size": "32k",
    }


def _once(ports: list[Manifest]) -> list[Manifest]:
    """A Service has each port, and each name of one, once; several external ports may lead to one of the container."""
    chosen = list({port["port"]: port for port in reversed(ports)}.values())[::-1]
    names = [port["name"] for port in chosen]
    return [
        {**port, "name": f"{port['name']}-{port['port']}" if port["name"] in names[:number] else port["name"]}
        for number, port in enumerate(chosen)
    ]


def _metadata(context: RenderContext, name: str) -> Manifest:
    labels = {WORKLOAD_LABEL: context.name, PROJECT_LABEL: context.project, **context.ownership_labels}
    return {"name": name, "namespace": context.namespace, "labels": labels}


def _ingress(
    context: RenderContext, ingress: IngressSettings, name: str, annotations: dict[str, str], routes: Sequence[_Route]
) -> Manifest:
    spec: Manifest = {"ingressClassName": ingress.ingress_class, "rules": [_rule(*route) for route in routes]}
    if ingress.has_certificate:
        # Without the name of a Secret, the controller uses its own certificate.
        spec["tls"] = [{"hosts": sorted({route[0] for route in routes})}]
    metadata = {**_metadata(context, name), "annotations": annotations}
    return {"apiVersion": INGRESS.api, "kind": INGRESS.kind, "metadata": metadata, "spec": spec}


def _rule(host: str, path: str, compared: str, service: str, port: int) -> Manifest:
    backend = {"service": {"name": service, "port": {"number": port}}}
    return {"host": host, "http": {"paths": [{"path": path, "pathType": compared, "backend": backend}]}}


def _proxy(context: RenderContext, ingress: IngressSettings, name: str) -> Manifest:
    """An Ingress can refer to Services of its own namespace only: this one is an alias of our server's."""
    port = {"name": "urls", "port": ingress.proxy_port, "targetPort": ingress.proxy_port}
    spec = {"type": "ExternalName", "externalName": ingress.server, "ports": [port]}
    return {"apiVersion": SERVICE.api, "kind": SERVICE.kind, "metadata": _metadata(context, name), "spec": spec}
