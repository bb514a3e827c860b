"""What kinds that serve share: the URL or the service that leads from their serving port to their pods."""

from typing import Literal, Protocol

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
from fairlead.model.spec.fields import Maybe, is_given, value_or
from fairlead.model.spec.rules import Violation

#: Who may send requests, if a list says so.
_LISTS: tuple[UrlAccess, ...] = ("authorizedUsers", "authorizedGroups")


class ServingPort(Protocol):
    """What is read of the serving port of each kind that has one."""

    @property
    def protocol(self) -> Maybe[Literal["http", "grpc"]]: ...

    @property
    def authorization_type(self) -> Maybe[str]: ...

    @property
    def authorized_users(self) -> Maybe[tuple[str, ...]]: ...

    @property
    def authorized_groups(self) -> Maybe[tuple[str, ...]]: ...


def served(container: PodContainer, port: ServingPort, inside: int, is_outside: bool, url: str = "") -> PodContainer:
    """The container with its serving port as a URL, or as a service inside the cluster; 0 means no port.

    `url`: the URL that was asked for; empty to have one made.
    """
    if not inside:
        return container
    fields = container.fields
    if is_outside:
        protocol, access, names = value_or(port.protocol, "http"), _access(port), _given_lists(port)
        offered = OfferedUrl(
            container=inside,
            url=url,
            authorization_type=access,
            protocol=protocol if protocol != "http" else None,
            authorized_users=names.get("authorizedUsers", ()) if access == "authorizedUsers" else (),
            authorized_groups=names.get("authorizedGroups", ()) if access == "authorizedGroups" else (),
        )
        fields = replace(fields, exposed_urls=(*fields.exposed_urls, offered))
    else:
        fields = replace(fields, ports=(*fields.ports, OfferedPort(container=inside, service_type="ClusterIP")))
    return replace(container, fields=fields)


def listening(container: PodContainer, inside: int) -> PodContainer:
    """The container with a TCP readiness probe on its port, unless it has a probe of its own."""
    if not inside or container.fields.readiness is not None:
        return container
    probe = ReadinessProbe(handler=ProbeHandlers(tcp_socket=TcpProbe(port=inside)))
    return replace(container, fields=replace(container.fields, probes=ContainerProbes(readiness=probe)))


def _given_lists(port: ServingPort) -> dict[UrlAccess, tuple[str, ...]]:
    """The lists of names that the port has, by the access that they are for."""
    lists: dict[UrlAccess, tuple[str, ...]] = {}
    if is_given(port.authorized_users):
        lists["authorizedUsers"] = tuple(port.authorized_users)
    if is_given(port.authorized_groups):
        lists["authorizedGroups"] = tuple(port.authorized_groups)
    return lists


def _access(port: ServingPort) -> UrlAccess:
    """Who may send requests; `authorizedUsersOrGroups` means the list that is given."""
    match value_or(port.authorization_type, "public"):
        case "public" | "authenticatedUsers" | "authorizedUsers" | "authorizedGroups" as access:
            return access
        case _:
            return next(iter(_given_lists(port)), "authenticatedUsers")


def serving_violations(port: Maybe[ServingPort], path: str) -> list[Violation]:
    """Lists that contradict each other or the authorization type."""
    if not is_given(port):
        return []
    lists, access = _given_lists(port), _access(port)
    if sum(map(bool, lists.values())) > 1:
        return [Violation(path, "has authorizedUsers and authorizedGroups; give only one of them")]
    details = f"is given, but authorizationType is {access}"
    broken = [Violation(f"{path}.{name}", details) for name in lists if name != access and lists[name]]
    if access in _LISTS and not lists.get(access):
        missing = "is empty" if access in lists else "is missing"
        broken.append(Violation(f"{path}.{access}", f"{missing}; authorizationType is {access}"))
    blank = [name for name, names in lists.items() if any(each is not None and not each.strip() for each in names)]
    broken += [Violation(f"{path}.{name}", "has an empty name; leave it out, or give a name") for name in blank]
    return broken
