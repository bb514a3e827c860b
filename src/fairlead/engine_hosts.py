"""Makes the engines of a server and their hosts: that of its first cluster, and those of clusters that were added.

Called by `app`. Knows the engines, as `app` does.
"""

import importlib
import socket
import sys
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from fairlead.api.server.sockets import reserve
from fairlead.control.assets.cluster_supplies import ClusterSupplier
from fairlead.control.assets.pod_supplies import Supplier
from fairlead.control.context import Context, EngineView
from fairlead.control.keys import write_private
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.loop.engine_host import EngineHost
from fairlead.control.loop.fleet import ClusterSessions, Fleet
from fairlead.control.loop.lease import LeaseKeeper
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.references.resolve import Resolver
from fairlead.engines.base import PodOrder, WorkloadOrder
from fairlead.engines.local.configuration import make_engine
from fairlead.engines.local.linux.procfs import is_dead_process, process_identity
from fairlead.engines.local.usage import observe_usage
from fairlead.model.clock import Clock
from fairlead.model.errors import Refused
from fairlead.model.records.organization import Cluster
from fairlead.settings import ENGINES, LOCAL, ServerSettings
from fairlead.store.compaction import compact

#: A cluster's engine and its loop, by the kind of engine.
Host = EngineHost[PodOrder] | EngineHost[WorkloadOrder]


#: The server's URL, its socket, and that of the proxy.
Listening = tuple[str, socket.socket, socket.socket | None]


def make_first_host(settings: ServerSettings, whole: Context, fleet: Fleet, listening: Listening, clock: Clock) -> Host:
    """Create the engine of the first cluster and its host; the context gets sessions into the pods of all clusters."""
    url, sock, proxied = listening
    context = whole.add_view(whole.directory.cluster.id)
    where = settings.advertise or url
    port = proxied.getsockname()[1] if proxied else 0
    lease = LeaseKeeper(
        context,
        settings.machine,
        process_identity(),
        address=where,
        urls=f"{urlsplit(where).hostname}:{port}",
        is_dead=is_dead_process,
    )
    host: Any
    host, whole.engine = _make_host(settings, context, lease, clock)
    if settings.engine == LOCAL and not settings.personal:
        host.driver.engine.reserve([reserve(each) for each in (sock, proxied) if each is not None])
    host.sessions = ClusterSessions(whole, host.sessions, fleet)
    own_usage = host.observe_usage
    host.observe_usage = lambda: [*own_usage(), *fleet.observe_usage()]
    made: Host = host
    return made


def make_added_host(
    settings: ServerSettings, clock: Clock, context: Context, cluster: Cluster
) -> tuple[Host, EngineView]:
    """The host of a cluster that was added to the server; raises Refused if it cannot run here."""
    connection = cluster.connection
    if connection is None:
        raise Refused(f"Cluster {cluster.name} has no connection")
    if connection.engine == settings.engine == LOCAL or (connection.engine == LOCAL and sys.platform != "linux"):
        raise Refused("This machine is the first cluster of the server already, or does not run Linux")
    if connection.engine == LOCAL and connection.machine != settings.machine:
        raise Refused(f"It is the machine {connection.machine}, and the server runs on {settings.machine} now")
    changed: dict[str, Any] = {"engine": connection.engine, "data_dir": settings.data_dir / "clusters" / cluster.id}
    if connection.engine != LOCAL:
        kubeconfig = context.vault.open(connection.sealed, cluster.id)["kubeconfig"]
        path = changed["data_dir"] / "kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, kubeconfig.encode())
        # Ingress objects, Prometheus and Loki of the first cluster are not those of this one.
        changed |= dict.fromkeys(("ingress_class", "ingress_server", "prometheus_url", "loki_url"), "")
        changed["kubeconfig"] = str(path)
    return _make_host(msgspec.structs.replace(settings, **changed), context, None, clock)


def _make_host(
    settings: ServerSettings, context: Context, lease: LeaseKeeper | None, clock: Clock
) -> tuple[Any, EngineView]:
    """An engine with its host, and what use cases ask it. The engine loads what pods refer to."""
    kept = settings.control
    shared: dict[str, Any] = {
        "context": context,
        "lease": lease,
        "compact": lambda at: compact(context.store, at, kept.keep_events, kept.keep_audit),
        "measure": time.monotonic,
    }
    if settings.engine == LOCAL:
        engine = make_engine(settings, clock, Resolver(context).load, Supplier(context).load)
        host = EngineHost(
            **shared,
            driver=PodDriver(context, engine),
            sessions=engine,
            logs=engine,
            observe_usage=partial(observe_usage, settings.data_dir),
            find_warnings=engine.find_warnings,
        )
        return host, EngineView(review=engine.review)
    module = importlib.import_module(ENGINES[settings.engine])
    cluster = module.make_engine(settings, lambda: context.directory.own_id, ClusterSupplier(context).load)
    view = EngineView(
        review=cluster.review,
        unreachable_reason=cluster.away,
        find_namespace_problem=cluster.find_namespace_problem,
        may_nodes_be_added=cluster.may_nodes_be_added,
        measures_gpus=bool(settings.prometheus_url),
        is_cluster=True,
    )
    return EngineHost(
        **shared,
        driver=ClusterDriver(context, cluster),
        sessions=cluster,
        logs=cluster,
        objects=cluster.custom_resources,
        observe_usage=cluster.observe_usage,
        can_stand_by=True,
    ), view
