"""Views of a workload's connections: exposed URLs, open ports and related pages."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.control.serving.urls import UrlSettings, exposed_urls, locate, render_url
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.workload import Pod, Workload

Authorization = Literal["public", "authenticatedUsers", "authorizedUsersOrGroups"]
#: The contract's names of authorization types.
_SHOWN: dict[str, Authorization] = {
    "public": "public",
    "authenticatedUsers": "authenticatedUsers",
    "authorizedUsers": "authorizedUsersOrGroups",
    "authorizedGroups": "authorizedUsersOrGroups",
}
_CUSTOM = "custom"


class ConnectionView(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One way to reach a workload."""

    name: str
    #: ExternalUrl, NodePort, LoadBalancer, ClusterIP, or RelatedUrl for a page on another site.
    connection_type: str
    tool_type: str
    url: str | UnsetType = UNSET
    container_port: int | UnsetType = UNSET
    authorization_type: Authorization | UnsetType = UNSET
    authorized_users: list[str] | UnsetType = UNSET
    authorized_groups: list[str] | UnsetType = UNSET


def render_connections(
    workload: Workload, podsets: Sequence[PodSet], pods: Sequence[Pod], settings: UrlSettings
) -> dict[str, Any]:
    """The fields `urls` and `externalConnections` of a workload's view."""
    external = _exposed(workload, podsets, settings)
    connections = [*external, *_ports(podsets, pods), *_related(podsets)]
    if not connections:
        return {}
    return {
        "urls": tuple(one.url for one in connections if isinstance(one.url, str)),
        "external_connections": tuple(connections),
    }


def _exposed(workload: Workload, podsets: Sequence[PodSet], settings: UrlSettings) -> list[ConnectionView]:
    views = []
    for url, name in zip(exposed_urls(podsets), workload.urls, strict=False):
        views.append(
            ConnectionView(
                name=url.tool_name or url.name or f"port {url.container}",
                connection_type="ExternalUrl",
                tool_type=url.tool_type or _CUSTOM,
                url=render_url(locate(workload, name, settings), settings),
                container_port=url.container,
                authorization_type=_SHOWN[url.authorization_type],
                authorized_users=list(url.authorized_users) or UNSET,
                authorized_groups=list(url.authorized_groups) or UNSET,
            )
        )
    return views


def _ports(podsets: Sequence[PodSet], pods: Sequence[Pod]) -> list[ConnectionView]:
    """The ports that are open now; a workload has none before it starts."""
    opened = {inside: outside for pod in pods for inside, outside in pod.ports}
    listed = [port for podset in podsets for port in podset.container.fields.ports]
    return [
        ConnectionView(
            name=port.tool_name or port.name or f"port {port.container}",
            connection_type=port.service_type or "",
            tool_type=port.tool_type or _CUSTOM,
            url=f"localhost:{opened[port.container]}" if port.container in opened else UNSET,
            container_port=port.container,
        )
        for port in listed
    ]


def _related(podsets: Sequence[PodSet]) -> list[ConnectionView]:
    listed = [page for podset in podsets for page in podset.container.fields.related_urls]
    return [
        ConnectionView(name=page.name or page.type, connection_type="RelatedUrl", tool_type=page.type, url=page.url)
        for page in listed
    ]
