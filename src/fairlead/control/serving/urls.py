"""The URLs of workloads: which workload has which URL, who may open it, and which pods answer there.

Kept in memory on the server that holds the lease. The loop claims URLs for new workloads and passes in what it knows
about their pods; the reverse proxy asks here for every request. The names of a workload's URLs are in its record.
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
from fairlead.model.records.named_message import OTHER_WORKLOAD
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.revision import Stage
from fairlead.model.records.workload import Workload

#: The most characters of a label in a host name.
_LONGEST_LABEL = 63
#: Begins a recorded URL that the user chose; others are a suffix to the workload's name.
_CHOSEN = "//"
HTTP, GRPC = "http", "grpc"
_GRPC_BY_PATH = "grpc needs a host of its own, because its methods are paths; here all URLs share one host"


class UrlSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How URLs of workloads look here."""

    scheme: str = "http"
    domain: str = "localhost"
    #: Where the proxy listens; 0 on a server without a proxy.
    port: int = 0
    #: Whether all URLs have one host and differ by path, instead of having a host each.
    by_path: bool = False

    @property
    def port_suffix(self) -> str:
        """The port after the host name, if it is not the scheme's default."""
        return "" if self.port == {"http": 80, "https": 443}[self.scheme] else f":{self.port}"


class UrlLocation(msgspec.Struct, frozen=True):
    """A host name and a prefix of the path; empty for every path."""

    host: str
    prefix: str = ""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a workload: the port behind it and who may open it."""

    workload_id: str
    project_id: str
    owner: str
    location: UrlLocation
    port: int
    #: `http` or `grpc`.
    protocol: str = HTTP
    #: `public`, `authenticatedUsers`, `authorizedUsers` or `authorizedGroups`.
    authorization: str = "authenticatedUsers"
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def is_public(self) -> bool:
        return self.authorization == "public"

    @property
    def for_engine(self) -> UrlRoute:
        """The part that an engine needs."""
        return UrlRoute(
            host=self.location.host,
            prefix=self.location.prefix,
            port=self.port,
            is_grpc=self.protocol == GRPC,
            is_public=self.is_public,
        )

    def admits(self, caller: Caller) -> bool:
        """Whether a signed-in user may open it; service accounts count as users."""
        if self.authorization == "authorizedUsers":
            return bool({caller.name, caller.id} & self.users)
        if self.authorization == "authorizedGroups":
            return not self.groups.isdisjoint(caller.groups)
        return True


def exposed_urls(podsets: Iterable[PodSet]) -> list[OfferedUrl]:
    """The ports that the pod sets expose, in the order of the spec. All revisions expose the same ones."""
    sets = list(podsets)
    first = [podset for podset in sets if podset.revision == sets[0].revision]
    return [url for podset in first for url in podset.container.fields.exposed_urls]


def locate(workload: Workload, url: str, settings: UrlSettings) -> UrlLocation:
    """The location of a recorded URL of a workload, under this server's settings."""
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
    """The routes of a workload, with these recorded names."""
    return [
        Route(
            workload_id=workload.id,
            project_id=workload.project_id,
            owner=f"workload {workload.name} of project {workload.project_name}",
            location=locate(workload, name, settings),
            port=url.container,
            protocol=url.protocol or HTTP,
            authorization=url.authorization_type,
            users=frozenset(url.authorized_users),
            groups=frozenset(url.authorized_groups),
        )
        for url, name in zip(exposed_urls(podsets), names, strict=False)
    ]


def render_url(location: UrlLocation, settings: UrlSettings) -> str:
    return f"{settings.scheme}://{location.host}{settings.port_suffix}{location.prefix}/"


def first_url(workload: Workload, settings: UrlSettings) -> str:
    """The first of its URLs; empty if it has none."""
    return next((render_url(locate(workload, name, settings), settings) for name in workload.urls), "")


def parse_custom_url(url: str) -> str:
    """A URL that a user chose, as it is recorded; empty if it is not valid."""
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
        """Claim the URLs of a new workload: their names for the record, and (field, why) for those that are refused."""
        names: list[str] = []
        refused: list[tuple[str, str]] = []
        own: set[UrlLocation] = set()
        for number, url in enumerate(exposed_urls(entry.podsets)):
            field = f"exposedUrls[{number}].url"
            name = parse_custom_url(url.url) if url.url else self._free_name(entry, own)
            if url.url and not name:
                refused.append((field, f"'{url.url[:200]}' is not a valid URL; give a host and a path"))
                continue
            location = locate(entry.workload, name, self.settings)
            if url.protocol == GRPC and location.prefix:
                refused.append(("servingPort.protocol", _GRPC_BY_PATH))
            if holder := self._holder(location, entry.workload, own):
                refused.append((field, f"{location.host}{location.prefix} is taken by {holder}"))
            own.add(location)
            names.append(name)
        if not refused and names:
            self._hold(entry, tuple(names))
        return tuple(names), tuple(refused)

    def _free_name(self, entry: WorkloadEntry, own: set[UrlLocation]) -> str:
        """The suffix to the workload's name that makes the URL unique: mostly none."""
        workload = entry.workload
        suffixes = ("", *(f"-{number}" for number in range(2, len(own) + 2)), f"-{workload.id[-8:]}")
        for suffix in suffixes:
            if not self._holder(locate(workload, suffix, self.settings), workload, own):
                return suffix
        return f"-{workload.id[-8:]}-{len(own)}"

    def _holder(self, location: UrlLocation, workload: Workload, own: set[UrlLocation]) -> str:
        """Who has a location already: another workload, or a further URL of this one. Other projects are not named."""
        route = self._routes.get(location)
        if route is not None and route.workload_id != workload.id:
            return route.owner if route.project_id == workload.project_id else OTHER_WORKLOAD
        return "another of its own URLs" if location in own else ""

    def update(self, entry: WorkloadEntry) -> None:
        """Update what is known about a workload: its recorded URLs, and its ready pods."""
        workload = entry.workload
        if not workload.urls:
            return
        if workload.id not in self._held:
            self._hold(entry, workload.urls)
        self.traffic.serve(workload.id, _render_backends(entry))

    def _hold(self, entry: WorkloadEntry, names: tuple[str, ...]) -> None:
        routes = render_routes(entry.workload, entry.podsets, names, self.settings)
        self._routes.update((route.location, route) for route in routes)
        self._held[entry.workload.id] = [route.location for route in routes]

    def release(self, workload_id: str) -> None:
        for location in self._held.pop(workload_id, ()):
            if location in self._routes and self._routes[location].workload_id == workload_id:
                del self._routes[location]
        self.traffic.release(workload_id)

    def find(self, host: str, path: str) -> Route | None:
        """The route of a request: the longest prefix of its path that is claimed on that host."""
        for prefix in _prefixes(path):
            route = self._routes.get(UrlLocation(host, prefix))
            if route is not None:
                return route
        return None

    def ready_pods(self, workload_id: str) -> list[str]:
        return list(self.traffic.pods(workload_id))

    def routes_of(self, workload_id: str) -> list[Route]:
        return [self._routes[location] for location in self._held.get(workload_id, ())]


def _render_backends(entry: WorkloadEntry) -> ServiceBackends:
    """The pods that answer now: the ready ones of serving sets, and how requests to them are handled."""
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
        is_scaled=scaling.min_pods < scaling.max_pods,
    )


def _prefixes(path: str) -> Iterator[str]:
    """`/a/b/c` → `/a/b/c`, `/a/b`, `/a`, and the empty prefix."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""
