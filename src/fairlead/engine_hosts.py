"""Makes the engines of a server and their hosts: that of its first cluster, and those of clusters that were added.

Called by `app`. Knows the engines, as `app` does.
"""

import importlib
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from fairlead.api.server.sockets import reserve
from fairlead.control.assets.cluster_supplies import ClusterSupplier
from fairlead.control.assets.pod_supplies import Supplier
from fairlead.control.context import Context, EngineView
from fairlead.control.keys import write_private
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.loop.engine_host import AnyHost, EngineHost
from fairlead.control.loop.fleet import ClusterSessions, Fleet
from fairlead.control.loop.lease import LeaseKeeper
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.references.resolve import Resolver
from fairlead.engines.base import CustomResources, LogStore, Sessions, WorkloadEngine
from fairlead.engines.local.configuration import load_settings
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.linux.nvml import DeviceMeter
from fairlead.engines.local.linux.procfs import is_dead_process, process_identity
from fairlead.engines.local.usage import UsageMeter
from fairlead.model.clock import Clock, Millis
from fairlead.model.errors import Refused
from fairlead.model.pods.supplies import LoadKept
from fairlead.model.records.organization import Cluster
from fairlead.model.resource_usage import MeasuredUsage
from fairlead.serve_flags import ENGINES, LOCAL
from fairlead.settings import ServerSettings
from fairlead.store.compaction import compact


class Listening(NamedTuple):
    """Where the server listens: its URL, its socket, and the socket of the proxy."""

    url: str
    socket: socket.socket
    proxied: socket.socket | None


class ClusterPodAccess(Sessions, LogStore, Protocol):
    """What an engine of a cluster offers into its pods."""


class AutoscalingView(Protocol):
    def may_add_nodes(self) -> bool: ...


class ClusterEngine(WorkloadEngine, Protocol):
    """An engine from `ENGINES`, whose module is loaded only if the settings name it."""

    @property
    def sessions(self) -> ClusterPodAccess: ...

    @property
    def custom_resources(self) -> CustomResources: ...

    @property
    def autoscaling(self) -> AutoscalingView: ...

    def away(self) -> str: ...

    def find_namespace_problem(self, namespace: str) -> str: ...

    def observe_usage(self) -> Sequence[MeasuredUsage]: ...


#: `make_engine` of such a module.
MakeEngine = Callable[[ServerSettings, Callable[[], str], LoadKept], ClusterEngine]


def make_first_host(
    settings: ServerSettings, whole: Context, fleet: Fleet, listening: Listening, clock: Clock
) -> AnyHost:
    """Create the engine of the first cluster and its host; the context gets sessions into the pods of all clusters."""
    context = whole.add_view(whole.directory.cluster.id)
    address = settings.advertise or listening.url
    port = listening.proxied.getsockname()[1] if listening.proxied else 0
    lease = LeaseKeeper(
        context,
        settings.machine,
        process_identity(),
        address=address,
        urls=f"{urlsplit(address).hostname}:{port}",
        is_dead=is_dead_process,
    )
    own_sockets = [each for each in (listening.socket, listening.proxied) if each is not None]
    host, whole.engine = _make_host(settings, context, lease, clock, own_sockets)
    host.sessions = ClusterSessions(whole, host.sessions, fleet)
    own_usage = host.observe_usage
    host.observe_usage = lambda: [*own_usage(), *fleet.observe_usage()]
    return host


def make_added_host(
    settings: ServerSettings, clock: Clock, context: Context, cluster: Cluster
) -> tuple[AnyHost, EngineView]:
    """The host of a cluster that was added to the server; raises Refused if it cannot run here."""
    connection = cluster.connection
    if connection is None:
        raise Refused(f"Cluster {cluster.name} has no connection")
    folder = settings.data_dir / "clusters" / cluster.id
    if connection.engine != LOCAL:
        kubeconfig = context.vault.open(connection.sealed, cluster.id)["kubeconfig"]
        return _make_host(_added_settings(settings, connection.engine, folder, kubeconfig), context, None, clock)
    if settings.engine == LOCAL or sys.platform != "linux":
        raise Refused("This machine is the first cluster of the server already, or does not run Linux")
    if connection.machine != settings.machine:
        raise Refused(f"It is the machine {connection.machine}, and the server runs on {settings.machine} now")
    return _make_host(msgspec.structs.replace(settings, engine=LOCAL, data_dir=folder), context, None, clock)


def _added_settings(settings: ServerSettings, engine: str, folder: Path, kubeconfig: str) -> ServerSettings:
    """The settings for the engine of an added Kubernetes cluster; writes its kubeconfig to the folder."""
    path = folder / "kubeconfig"
    folder.mkdir(parents=True, exist_ok=True)
    write_private(path, kubeconfig.encode())
    own: ServerSettings = msgspec.structs.replace(
        settings,
        engine=engine,
        data_dir=folder,
        kubeconfig=str(path),
        # Ingress objects, Prometheus and Loki of the first cluster are not those of this one.
        ingress_class="",
        ingress_server="",
        prometheus_url="",
        loki_url="",
    )
    return own


def _make_host(
    settings: ServerSettings,
    context: Context,
    lease: LeaseKeeper | None,
    clock: Clock,
    own_sockets: Sequence[socket.socket] = (),
) -> tuple[AnyHost, EngineView]:
    """An engine with its host, and what use cases ask it. The engine loads what pods refer to.

    `own_sockets`: those of the server, whose ports the pods of a shared machine must not take.
    """
    if settings.engine == LOCAL:
        return _make_pod_host(settings, context, lease, clock, own_sockets)
    return _make_cluster_host(settings, context, lease)


def _make_pod_host(
    settings: ServerSettings,
    context: Context,
    lease: LeaseKeeper | None,
    clock: Clock,
    own_sockets: Sequence[socket.socket],
) -> tuple[AnyHost, EngineView]:
    own = load_settings(settings, clock)
    engine = LocalEngine(own, clock, Resolver(context).load, Supplier(context).load)
    meter = UsageMeter(settings.data_dir, own.nodes, DeviceMeter())
    if not settings.personal:
        engine.reserve([reserve(each) for each in own_sockets])
    host = EngineHost(
        context=context,
        lease=lease,
        compact=_compactor(settings, context),
        measure=time.monotonic,
        driver=PodDriver(context, engine),
        sessions=engine,
        logs=engine,
        observe_usage=meter.observe,
        find_warnings=engine.find_warnings,
    )
    return host, EngineView(review=engine.review, measures_gpus=meter.measures_gpus)


def _make_cluster_host(
    settings: ServerSettings, context: Context, lease: LeaseKeeper | None
) -> tuple[AnyHost, EngineView]:
    make_engine: MakeEngine = importlib.import_module(ENGINES[settings.engine]).make_engine
    engine = make_engine(settings, lambda: context.directory.cluster_id, ClusterSupplier(context).load)
    view = EngineView(
        review=engine.review,
        unreachable_reason=engine.away,
        find_namespace_problem=engine.find_namespace_problem,
        may_nodes_be_added=engine.autoscaling.may_add_nodes,
        measures_gpus=bool(settings.prometheus_url),
        is_cluster=True,
    )
    host = EngineHost(
        context=context,
        lease=lease,
        compact=_compactor(settings, context),
        measure=time.monotonic,
        driver=ClusterDriver(context, engine),
        sessions=engine.sessions,
        logs=engine.sessions,
        objects=engine.custom_resources,
        observe_usage=engine.observe_usage,
        can_stand_by=True,
    )
    return host, view


def _compactor(settings: ServerSettings, context: Context) -> Callable[[Millis], Awaitable[object]]:
    limits = settings.control
    return partial(compact, context.store, keep_events=limits.keep_events, keep_audit=limits.keep_audit)
