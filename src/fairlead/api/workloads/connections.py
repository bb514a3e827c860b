"""Where a workload is reached, as the interface shows it: exposed URLs, open ports, pages that belong to it. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.control.serving.urls import UrlSettings, exposed_urls, place_of, render_url
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.workload import Pod, Workload

#: How the interface calls the kinds of authorization.
_SHOWN = {"authorizedUsers": "authorizedUsersOrGroups", "authorizedGroups": "authorizedUsersOrGroups"}
_CUSTOM = "custom"


class ConnectionView(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """One way to reach a workload."""

    name: str
    #: ExternalUrl, NodePort, LoadBalancer, ClusterIP, or RelatedUrl for a page elsewhere.
    connection_type: str
    tool_type: str
    url: str | UnsetType = UNSET
    container_port: int | UnsetType = UNSET
    authorization_type: Literal["public", "authenticatedUsers", "authorizedUsersOrGroups"] | UnsetType = UNSET
    authorized_users: list[str] | UnsetType = UNSET
    authorized_groups: list[str] | UnsetType = UNSET


def render_connections(
    workload: Workload, podsets: Sequence[PodSet], pods: Sequence[Pod], settings: UrlSettings
) -> dict[str, Any]:
    """The members `urls` and `externalConnections` of a workload's view."""
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
        authorization = url.get("authorizationType", "authenticatedUsers")
        views.append(
            ConnectionView(
                name=url.get("toolName") or url.get("name") or f"port {url['container']}",
                connection_type="ExternalUrl",
                tool_type=url.get("toolType") or _CUSTOM,
                url=render_url(place_of(workload, name, settings), settings),
                container_port=url["container"],
                authorization_type=_SHOWN.get(authorization, authorization),
                authorized_users=url.get("authorizedUsers") or UNSET,
                authorized_groups=url.get("authorizedGroups") or UNSET,
            )
        )
    return views


def _ports(podsets: Sequence[PodSet], pods: Sequence[Pod]) -> list[ConnectionView]:
    """Ports as they are open now: before its start a workload has none."""
    opened = {inside: outside for pod in pods for inside, outside in pod.ports}
    listed = [port for podset in podsets for port in podset.container.fields.get("ports") or ()]
    return [
        ConnectionView(
            name=port.get("toolName") or port.get("name") or f"port {port['container']}",
            connection_type=port["serviceType"],
            tool_type=port.get("toolType") or _CUSTOM,
            url=f"localhost:{opened[port['container']]}" if port["container"] in opened else UNSET,
            container_port=port["container"],
        )
        for port in listed
    ]


def _related(podsets: Sequence[PodSet]) -> list[ConnectionView]:
    listed = [each for podset in podsets for each in podset.container.fields.get("relatedUrls") or ()]
    return [
        ConnectionView(
            name=each.get("name") or each["type"], connection_type="RelatedUrl", tool_type=each["type"], url=each["url"]
        )
        for each in listed
    ]
