"""What kinds that serve share: the URL or the service that leads from their serving port to their pods."""

from typing import Any

from msgspec.structs import replace

from fairlead.model.pods.container_fields import (
    ContainerProbes,
    OfferedPort,
    OfferedUrl,
    ProbeHandlers,
    ReadinessProbe,
    TcpProbe,
    UrlAccess,
)
from fairlead.model.pods.podset import PodContainer
from fairlead.model.spec.fields import is_given, value_or
from fairlead.model.spec.rules import Violation

_LISTS: dict[UrlAccess, str] = {"authorizedUsers": "authorized_users", "authorizedGroups": "authorized_groups"}


def served(container: PodContainer, port: Any, inside: int, is_outside: bool) -> PodContainer:
    """The container with its serving port as a URL, or as a service inside the cluster; 0 means no port."""
    if not inside:
        return container
    fields = container.fields
    if is_outside:
        chosen = _chosen(port)
        protocol = value_or(port.protocol, "http")
        url = OfferedUrl(
            container=inside,
            url=value_or(getattr(port, "exposed_url", None), ""),
            authorization_type=chosen,
            protocol=protocol if protocol != "http" else None,
        )
        if chosen in _LISTS:
            url = replace(url, **{_LISTS[chosen]: tuple(value_or(getattr(port, _LISTS[chosen]), ()))})
        fields = replace(fields, exposed_urls=(*fields.exposed_urls, url))
    else:
        fields = replace(fields, ports=(*fields.ports, OfferedPort(container=inside, service_type="ClusterIP")))
    return replace(container, fields=fields)


def listening(container: PodContainer, inside: int) -> PodContainer:
    """The container with a TCP readiness probe on its port, unless it has a probe of its own."""
    if not inside or container.fields.readiness is not None:
        return container
    probe = ReadinessProbe(handler=ProbeHandlers(tcp_socket=TcpProbe(port=inside)))
    return replace(container, fields=replace(container.fields, probes=ContainerProbes(readiness=probe)))


def _chosen(port: Any) -> UrlAccess:
    """Who may send requests; `authorizedUsersOrGroups` means the list that is given."""
    chosen: UrlAccess = value_or(port.authorization_type, "public")
    if chosen in (*_LISTS, "public", "authenticatedUsers"):
        return chosen
    given = (rest for rest, attribute in _LISTS.items() if is_given(getattr(port, attribute)))
    return next(given, "authenticatedUsers")


def serving_violations(port: Any, path: str) -> list[Violation]:
    """Lists that contradict each other or the authorization type."""
    if not is_given(port):
        return []
    given = {rest: getattr(port, attribute) for rest, attribute in _LISTS.items() if is_given(getattr(port, attribute))}
    if len(given) > 1:
        return [Violation(path, "has authorizedUsers and authorizedGroups; give only one of them")]
    chosen = _chosen(port)
    details = f"is given, but authorizationType is {chosen}"
    broken = [Violation(f"{path}.{rest}", details) for rest in given if rest != chosen]
    if chosen in _LISTS and chosen not in given:
        broken.append(Violation(f"{path}.{chosen}", f"is missing; authorizationType is {chosen}"))
    return broken
