"""What the kinds that serve share: from their serving port to the URL or the service that leads to their pods."""

from typing import Any

from msgspec.structs import replace

from fairlead.model.pods.podset import PodContainer
from fairlead.model.spec.fields import is_given, value_or
from fairlead.model.spec.rules import Violation

_LISTS = {"authorizedUsers": "authorized_users", "authorizedGroups": "authorized_groups"}


def served(container: PodContainer, port: Any, inside: int, is_outside: bool) -> PodContainer:
    """The container with its serving port as a URL, or as a service of the cluster alone; 0 is no port."""
    if not inside:
        return container
    fields = dict(container.fields)
    if is_outside:
        chosen = _chosen(port)
        url = {
            "container": inside,
            "url": value_or(getattr(port, "exposed_url", None), ""),
            "authorizationType": chosen,
        }
        if value_or(port.protocol, "http") != "http":
            url["protocol"] = port.protocol
        if chosen in _LISTS:
            url[chosen] = list(value_or(getattr(port, _LISTS[chosen]), ()))
        fields["exposedUrls"] = [*fields.get("exposedUrls", ()), url]
    else:
        fields["ports"] = [*fields.get("ports", ()), {"container": inside, "serviceType": "ClusterIP"}]
    return replace(container, fields=fields)


def listening(container: PodContainer, inside: int) -> PodContainer:
    """The container, ready only when somebody listens on its port, unless it says itself how that is asked for."""
    probes = container.fields.get("probes") or {}
    if not inside or probes.get("readiness"):
        return container
    return replace(container, fields=container.fields | {"probes": {**probes, "readiness": _asks(inside)}})


def _asks(port: int) -> dict[str, Any]:
    return {
        "handler": {"tcpSocket": {"port": port}},
        "initialDelaySeconds": 0,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def _chosen(port: Any) -> str:
    """Who may send requests; the word for either list means the one that is given."""
    chosen: str = value_or(port.authorization_type, "public")
    if chosen in (*_LISTS, "public", "authenticatedUsers"):
        return chosen
    return next(
        (rest for rest, attribute in _LISTS.items() if is_given(getattr(port, attribute))), "authenticatedUsers"
    )


def serving_violations(port: Any, path: str) -> list[Violation]:
    """Lists that contradict each other or the type."""
    if not is_given(port):
        return []
    given = {rest: getattr(port, attribute) for rest, attribute in _LISTS.items() if is_given(getattr(port, attribute))}
    if len(given) > 1:
        return [Violation(path, "has authorizedUsers and authorizedGroups; give one of them")]
    chosen = _chosen(port)
    details = f"is given, but authorizationType is {chosen}"
    found = [Violation(f"{path}.{rest}", details) for rest in given if rest != chosen]
    if chosen in _LISTS and chosen not in given:
        found.append(Violation(f"{path}.{chosen}", f"is missing; authorizationType is {chosen}"))
    return found
