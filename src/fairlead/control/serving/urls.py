"""The URLs by which workloads are reached: who has which, who may open it, and which pods answer there.

Kept in memory by the loop's holder: the loop claims URLs for new workloads and hands in what it knows of their pods;
the reverse proxy asks here for every request. What a workload's URLs are called is recorded with it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.serving.traffic import ServiceBackends, Traffic
from fairlead.model.pods.container_fields import OfferedUrl
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.urls import UrlRoute
from fairlead.model.records.organization import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.revision import Stage
from fairlead.model.records.workload import Workload

#: A name of a host is a row of labels, and a label has at most this many characters.
_LONGEST_LABEL = 63
#: Marks a URL that the user chose among those that only say what is added to the workload's own name.
_CHOSEN = "//"
HTTP, GRPC = "http", "grpc"


class UrlSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How URLs of workloads look here."""

    scheme: str = "http"
    domain: str = "localhost"
    #: Where the proxy listens; 0 on a server that knows of none.
    port: int = 0
    #: One host for all, told apart by their paths, instead of a host each.
    by_path: bool = False

    @property
    def authority(self) -> str:
        """What follows a host's name."""
        return "" if self.port == {"http": 80, "https": 443}[self.scheme] else f":{self.port}"


class UrlLocation(msgspec.Struct, frozen=True):
    """Where a URL leads to us: a host's name and the beginning of the path, empty for all of it."""

    host: str
    prefix: str = ""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a workload: the port behind it and who may open it."""

    workload_id: str
    project_id: str
    owner: str
    place: UrlLocation
    port: int
    #: What is spoken there.
    protocol: str = HTTP
    #: `public`, `authenticatedUsers`, `authorizedUsers` or `authorizedGroups`.
    authorization: str = "authenticatedUsers"
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def is_public(self) -> bool:
        return self.authorization == "public"

    @property
    def seen_by_engine(self) -> UrlRoute:
        """What of it an engine is told."""
        return UrlRoute(
            host=self.place.host,
            prefix=self.place.prefix,
            port=self.port,
            is_grpc=self.protocol == GRPC,
            is_public=self.is_public,
        )

    def admits(self, caller: Caller) -> bool:
        """Whether somebody who is signed in may open it; service accounts count as users."""
        if self.authorization == "authorizedUsers":
            return bool({caller.name, caller.id} & self.users)
        if self.authorization == "authorizedGroups":
            return not self.groups.isdisjoint(caller.groups)
        return True


def exposed_urls(podsets: Iterable[PodSet]) -> list[OfferedUrl]:
    """What the pod sets of a workload expose, in the order in which it was said; its revisions expose the same."""
    sets = list(podsets)
    first = [podset for podset in sets if podset.revision == sets[0].revision]
    return [url for podset in first for url in podset.container.fields.exposed_urls]


def place_of(workload: Workload, url: str, settings: UrlSettings) -> UrlLocation:
    """Where a recorded URL of a workload is, under this server's settings."""
    if url.startswith(_CHOSEN):
        host, _, path = url.removeprefix(_CHOSEN).partition("/")
        return UrlLocation(host or settings.domain, f"/{path}" if path else "")
    if settings.by_path:
        return UrlLocation(settings.domain, f"/{workload.project_name}/{workload.name}{url}")
    label = f"{workload.name}-{workload.project_name}{url}"
    if len(label) > _LONGEST_LABEL:
        mark = hashlib.sha256(label.encode()).hexdigest()[:8]
        label = f"{label[: _LONGEST_LABEL - 9].rstrip('-')}-{mark}"
    return UrlLocation(f"{label}.{settings.domain}")


def render_routes(
    workload: Workload, podsets: Iterable[PodSet], names: Iterable[str], settings: UrlSettings
) -> list[Route]:
    """What a workload exposes, under these names as they are recorded."""
    return [
        Route(
            workload_id=workload.id,
            project_id=workload.project_id,
            owner=f"workload {workload.name} of project {workload.project_name}",
            place=place_of(workload, name, settings),
            port=url.container,
            protocol=url.protocol or HTTP,
            authorization=url.authorization_type,
            users=frozenset(url.authorized_users),
            groups=frozenset(url.authorized_groups),
        )
        for url, name in zip(exposed_urls(podsets), names, strict=False)
    ]


def render_url(place: UrlLocation, settings: UrlSettings) -> str:
    return f"{settings.scheme}://{place.host}{settings.authority}{place.prefix}/"


def first_url(workload: Workload, settings: UrlSettings) -> str:
    """Where it is reached, by the first of its URLs; empty where it has none."""
    return next((render_url(place_of(workload, name, settings), settings) for name in workload.urls), "")


def parse_custom_url(url: str) -> str:
    """A URL that a user chose, as it is recorded; empty when it cannot be one."""
    text = url.strip()
    parts = urlsplit(text if "://" in text or text.startswith("/") else f"//{text}")
    try:
        host = (parts.hostname or "").lower()
    except ValueError:
        return ""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    path = parts.path.rstrip("/")
    if parts.scheme not in ("", "http", "https") or set(host) - allowed or any(c.isspace() for c in text):
        return ""
    return f"{_CHOSEN}{host}{path}" if host or path else ""


class UrlRegistry:
    def __init__(self, settings: UrlSettings | None = None, traffic: Traffic | None = None) -> None:
        self.settings = settings or UrlSettings()
        self.traffic = traffic or Traffic(lambda: 0, lambda: 0.0)
        self._routes: dict[UrlLocation, Route] = {}
        self._held: dict[str, list[UrlLocation]] = {}

    def claim(self, entry: WorkloadEntry) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Claim the URLs of a new workload: their names for the record, or those that cannot be had and why."""
        names: list[str] = []
        refused: list[tuple[str, str]] = []
        own: set[UrlLocation] = set()
        for number, url in enumerate(exposed_urls(entry.podsets)):
            chosen = url.url or ""
            name = parse_custom_url(chosen) if chosen else self._free_name(entry, own)
            place = place_of(entry.workload, name, self.settings) if name or not chosen else None
            if place is None:
                refused.append((f"exposedUrls[{number}].url", f"'{chosen[:200]}' is no URL of a host and a path"))
                continue
            if url.protocol == GRPC and place.prefix:
                why = f"is {GRPC}, whose methods are paths of a host of its own; URLs are told apart by paths here"
                refused.append(("servingPort.protocol", why))
            holder = self._holder(place, entry.workload.id) or ("another URL of its own" if place in own else "")
            if holder:
                refused.append((f"exposedUrls[{number}].url", f"{place.host}{place.prefix} is taken by {holder}"))
            own.add(place)
            names.append(name)
        if not refused and names:
            self._hold(entry, tuple(names))
        return tuple(names), tuple(refused)

    def _free_name(self, entry: WorkloadEntry, own: set[UrlLocation]) -> str:
        """What is added to the workload's name so that the URL is nobody else's: mostly nothing."""
        workload = entry.workload
        suffixes = ("", *(f"-{number}" for number in range(2, len(own) + 2)), f"-{workload.id[-8:]}")
        for suffix in suffixes:
            place = place_of(workload, suffix, self.settings)
            if place not in own and not self._holder(place, workload.id):
                return suffix
        return f"-{workload.id[-8:]}-{len(own)}"

    def _holder(self, place: UrlLocation, workload_id: str) -> str:
        route = self._routes.get(place)
        return "" if route is None or route.workload_id == workload_id else route.owner

    def update(self, entry: WorkloadEntry) -> None:
        """Hold what is known of a workload now: its URLs as recorded, and its pods that are ready."""
        workload = entry.workload
        if not workload.urls:
            return
        if workload.id not in self._held:
            self._hold(entry, workload.urls)
        self.traffic.serve(workload.id, _serving(entry))

    def _hold(self, entry: WorkloadEntry, names: tuple[str, ...]) -> None:
        routes = render_routes(entry.workload, entry.podsets, names, self.settings)
        self._routes.update((route.place, route) for route in routes)
        self._held[entry.workload.id] = [route.place for route in routes]

    def release(self, workload_id: str) -> None:
        for place in self._held.pop(workload_id, ()):
            if place in self._routes and self._routes[place].workload_id == workload_id:
                del self._routes[place]
        self.traffic.release(workload_id)

    def find(self, host: str, path: str) -> Route | None:
        """The route of a request: the longest beginning of its path that somebody has on that host."""
        for prefix in _beginnings(path):
            route = self._routes.get(UrlLocation(host, prefix))
            if route is not None:
                return route
        return None

    def ready_pods(self, workload_id: str) -> list[str]:
        return list(self.traffic.pods(workload_id))

    def routes_of(self, workload_id: str) -> list[Route]:
        return [self._routes[place] for place in self._held.get(workload_id, ())]


def _serving(entry: WorkloadEntry) -> ServiceBackends:
    """The pods that answer now: ready ones of the sets that serve, and how requests to them are treated."""
    answering = [podset for podset in entry.podsets if podset.stage in (None, Stage.SERVING)]
    sets = {podset.role: podset for podset in answering if podset.container.fields.exposed_urls}
    pods = tuple(
        pod.id
        for pod in entry.pods
        if pod.ready and pod.phase is PodPhase.RUNNING and not pod.stopping_for and pod.role in sets
    )
    running = frozenset((pod.id, pod.attempt) for pod in entry.pods if not pod.has_ended)
    scaling = next((podset.scaling for podset in (*sets.values(), *entry.podsets) if podset.scaling), None)
    if scaling is None or entry.workload.is_terminal or entry.workload.deleted_at is not None:
        return ServiceBackends(pods=pods, running=running)
    return ServiceBackends(
        pods=pods,
        running=running,
        holds=True,
        timeout=scaling.request_timeout,
        limit=scaling.concurrency_limit,
        is_followed=scaling.min_pods < scaling.max_pods,
    )


def _beginnings(path: str) -> Iterator[str]:
    """`/a/b/c` → `/a/b/c`, `/a/b`, `/a`, and nothing."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""
