"""The only place where the parts meet: settings are read here, rooms are joined here, and a server comes out.

`main` is what `fairlead serve` calls with its arguments. Nothing else imports a concrete store or engine.
"""

import argparse
import asyncio
import contextlib
import fcntl
import gc
import importlib
import logging
import logging.handlers
import os
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
import uvloop

from fairlead import __version__
from fairlead.api.application import RequestLimits, make_application
from fairlead.api.proxy.access import UrlGate
from fairlead.api.proxy.relay import Relay
from fairlead.api.proxy.server import Proxy
from fairlead.api.proxy.upstream import Upstreams
from fairlead.api.server.http_server import HttpServer
from fairlead.api.server.json_log import JsonFormatter
from fairlead.api.server.metrics import Sample, loop_samples
from fairlead.api.server.sockets import listen, url_of
from fairlead.api.workloads.admission_webhook import ADMISSION_OPERATIONS
from fairlead.control.assets.cluster_supplies import ClusterSupplier
from fairlead.control.assets.pod_supplies import Supplier
from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings
from fairlead.control.directory import Directory, Refresher
from fairlead.control.ids import GrowingIds, new_suffix
from fairlead.control.keys import agree_on_vault, load_vault, write_private
from fairlead.control.loop.engine_host import EngineHost
from fairlead.control.loop.lease import LeaseKeeper
from fairlead.control.people.authentication import (
    CREDENTIALS,
    Authenticator,
    agree_on_key,
    ensure_accounts,
    load_signer,
)
from fairlead.control.references.resolve import Resolver
from fairlead.control.serving.traffic import Traffic
from fairlead.control.serving.urls import UrlRegistry, UrlSettings
from fairlead.control.workloads.sessions import Dialler, find_holder
from fairlead.engines.base import WholeEngine
from fairlead.engines.local.configuration import make_engine, pick_runtime_variables
from fairlead.engines.local.linux.procfs import is_dead_process, process_identity
from fairlead.engines.local.usage import observe_usage
from fairlead.model.allowed import ALLOWABLE
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import FairleadError, Refused
from fairlead.store.base import Store
from fairlead.store.compaction import compact
from fairlead.store.sqlite import open_sqlite

log = logging.getLogger("fairlead")

DEFAULT_PORT = 7420
DEFAULT_PROXY_PORT = 7421
#: The command line holds the data folder's lock for moments, to see whether a server does.
LOCK_SECONDS = 1.0
#: Modules that are loaded only when the settings ask for them.
_STORES = {"postgresql": "fairlead.store.postgres", "postgres": "fairlead.store.postgres"}
_ENGINES = {"kubernetes": "fairlead.engines.kubernetes.configuration"}
LOCAL = "local"
#: The server is to begin again: it lost the machine, or could not take it over.
_AGAIN = 75


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an operator can set, from flags or from `FAIRLEAD_…` variables."""

    data_dir: Path
    host: str = "127.0.0.1"
    #: None: the default port, or any free one when it is taken.
    port: int | None = None
    database: str = ""
    personal: bool = False
    nodes: tuple[str, ...] = ()
    nodes_file: str = ""
    machine: str = "local"
    #: Where other servers of the database reach this one; empty for where it listens.
    advertise: str = ""
    #: Where workloads' URLs are served; None as for `port`.
    proxy_port: int | None = None
    domain: str = "localhost"
    url_paths: bool = False
    tls_certificate: str = ""
    tls_key: str = ""
    insecure: bool = False
    body_limit: int = 1 << 20
    token_seconds: int = 86_400
    allow: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    runtime_options: tuple[str, ...] = ()
    runtime_environment: tuple[tuple[str, str], ...] = ()
    pids_limit: int | None = None
    api_only: bool = False
    #: Where pods run: `local`, or one of `_ENGINES`; and how that cluster is reached.
    engine: str = LOCAL
    kubeconfig: str = ""
    #: Where in that cluster the servers of one database keep their keys, as NAMESPACE/NAME.
    keys_secret: str = ""
    #: Which Ingress objects are made there for URLs, where their controller finds this server, and whether by HTTPS.
    ingress_class: str = ""
    ingress_server: str = ""
    ingress_tls: bool = False
    log_to_stderr: bool = True
    control: ControlSettings = ControlSettings()


def main(arguments: Sequence[str]) -> int:
    """Serve until told to stop. Returns the exit code of `fairlead serve`."""
    settings = read_settings(arguments, os.environ)
    if not can_serve(sys.platform, settings):
        sys.stderr.write(
            "fairlead serve: Pods are run on Linux only. Elsewhere give --api-only, or use a server by --url.\n"
        )
        return 1
    os.umask(0o077)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    settings.data_dir.chmod(0o700)
    _set_up_logging(settings.data_dir / "logs", to_stderr=settings.log_to_stderr)
    try:
        with _only_server_of(settings.data_dir), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(serve(settings))
    except FairleadError as error:
        log.error("the server does not start: %s", error)
        sys.stderr.write(f"fairlead serve: {error}\n")
        return 1
    if code == _AGAIN:
        # From the beginning, in the same process: nothing of what the loop held is true any more.
        os.execv(sys.executable, [sys.executable, "-m", "fairlead", "serve", *arguments])
    return code


def can_serve(platform: str, settings: ServerSettings) -> bool:
    return platform == "linux" or settings.api_only


def _set_up_logging(folder: Path, *, to_stderr: bool) -> None:
    """One JSON object a line into the log file, which turns over at 10 MB; warnings and worse to stderr too."""
    folder.mkdir(parents=True, exist_ok=True)
    file = logging.handlers.RotatingFileHandler(folder / "server.log", maxBytes=10 << 20, backupCount=3)
    file.setFormatter(JsonFormatter())
    handlers: list[logging.Handler] = [file]
    if to_stderr:
        handlers.append(logging.StreamHandler())
    logging.basicConfig(level=logging.INFO, handlers=handlers)


def read_settings(arguments: Sequence[str], environment: "os._Environ[str] | dict[str, str]") -> ServerSettings:
    given = _parser().parse_args(arguments)
    folder = given.data_dir or environment.get("FAIRLEAD_DATA_DIR")
    if not folder:
        base = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        folder = os.path.join(base, "fairlead")
    return ServerSettings(
        data_dir=Path(folder).absolute(),
        host=given.host,
        port=given.port,
        database=given.database or environment.get("FAIRLEAD_DATABASE", ""),
        personal=given.personal,
        nodes=tuple(given.node),
        nodes_file=given.nodes or "",
        machine=given.machine,
        advertise=given.advertise or "",
        proxy_port=given.proxy_port,
        domain=given.domain,
        url_paths=given.url_paths,
        tls_certificate=given.tls_certificate or "",
        tls_key=given.tls_key or "",
        insecure=given.insecure,
        body_limit=given.body_limit,
        token_seconds=given.token_seconds,
        allow=tuple(given.allow),
        runtimes=tuple(given.runtime),
        runtime_options=tuple(given.runtime_option),
        runtime_environment=pick_runtime_variables(environment),
        pids_limit=given.pids_limit,
        api_only=given.api_only,
        engine=given.engine,
        kubeconfig=given.kubeconfig or environment.get("KUBECONFIG", ""),
        keys_secret=given.keys_secret or "",
        ingress_class=given.ingress_class,
        ingress_server=given.ingress_server,
        ingress_tls=given.ingress_tls,
        log_to_stderr=not given.quiet,
        control=ControlSettings(retry_delay=given.retry_delay, scaling_window=given.scaling_window * 1000),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fairlead serve", description="Run the server in the foreground.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on; beyond loopback it wants TLS or --insecure")
    add("--port", type=int, help=f"default {DEFAULT_PORT}, or any free one when that is taken; 0 for any")
    add("--database", help="SQLite file or postgresql:// URL; default fairlead.db in the data folder")
    add("--data-dir", help="default $FAIRLEAD_DATA_DIR, else fairlead below the user's data folder")
    add("--node", action="append", default=[], help="declare a node: NAME:cpu=4,memory=16Gi,gpus=8,gpu-memory=80Gi")
    add("--nodes", help="YAML file that declares nodes")
    add("--machine", default="local", help="name under which this server holds its machine in the database")
    add("--advertise", metavar="URL[#NAME]", help="where other servers reach this one; NAME is on its certificate")
    add("--proxy-port", type=int, help=f"port of workloads' URLs: default {DEFAULT_PROXY_PORT}, or any free one")
    add("--domain", default="localhost", help="domain below which every exposed URL is a host of its own")
    add("--url-paths", action="store_true", help="tell exposed URLs apart by path, on the domain itself, not by host")
    add("--personal", action="store_true", help="run jobs as the owner of this server, as their own shell would")
    add("--tls-certificate", help="PEM file with the certificate chain")
    add("--tls-key", help="PEM file with its private key")
    add("--insecure", action="store_true", help="serve plain HTTP beyond loopback")
    add("--body-limit", type=int, default=1 << 20, help="largest request body in bytes")
    add("--token-seconds", type=int, default=86_400, help="how long an access token is good for")
    add("--retry-delay", type=int, default=1000, help="milliseconds before the first retry of a failed pod")
    add("--scaling-window", type=int, default=60, help="seconds over which a service's load is averaged for scaling")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="WHAT",
        help=f"what shared mode and clusters refuse otherwise: {ALLOWABLE}",
    )
    add(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME[=PROGRAM]",
        help="how pods are run: host (default), podman, docker, containerd (by nerdctl); the first given is the "
        "default, others can be chosen by the annotation fairlead/runtime",
    )
    add(
        "--runtime-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option of the container runtime's command, such as --root=FOLDER",
    )
    add("--pids-limit", type=int, metavar="N", help="processes and threads of one pod; 0 for no limit")
    add(
        "--engine",
        choices=(LOCAL, *_ENGINES),
        default=LOCAL,
        help="where workloads run: on this machine (default), or on a Kubernetes cluster with the KAI scheduler",
    )
    add("--kubeconfig", metavar="FILE", help="how that cluster is reached; default $KUBECONFIG, the pod's own account")
    add("--keys-secret", metavar="NAMESPACE/NAME", help="Secret of that cluster that keeps keys and first credentials")
    add("--ingress-class", default="", metavar="NAME", help="make Ingress objects of that class for workloads' URLs")
    add("--ingress-server", default="", metavar="HOST", help="the name by which their controller reaches this server")
    add("--ingress-tls", action="store_true", help="they are https, with their controller's default certificate")
    add("--api-only", action="store_true", help="serve the API and leave pods to the server that runs the machine")
    add("--quiet", action="store_true", help="log to the file only")
    return parser


@contextlib.contextmanager
def _only_server_of(folder: Path) -> Any:
    """One server per data folder, for as long as it lives."""
    deadline = time.monotonic() + LOCK_SECONDS
    with open(folder / "holder.lock", "w", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise Refused(
                        f"Another server uses the data folder {folder}; stop it with `fairlead server stop`"
                    ) from None
                time.sleep(0.02)
        yield


async def serve(settings: ServerSettings) -> int:
    is_secured = bool(settings.tls_certificate) or settings.insecure
    sock = listen(settings.host, settings.port, DEFAULT_PORT, is_secured=is_secured)
    proxied = None
    if not settings.api_only:
        proxied = listen(settings.host, settings.proxy_port, DEFAULT_PROXY_PORT, is_secured=is_secured)
    store = await _open_store(settings)
    try:
        return await _serve_on(settings, sock, proxied, store)
    finally:
        await store.close()
        sock.close()
        if proxied:
            proxied.close()


async def _serve_on(settings: ServerSettings, sock: socket.socket, proxied: socket.socket | None, store: Store) -> int:
    url = url_of(sock, is_tls=bool(settings.tls_certificate))
    window = settings.control.scaling_window
    await _share_keys(settings)
    context = Context(
        store=store,
        clock=now,
        directory=Directory(store),
        sessions=None,
        settings=settings.control,
        new_id=GrowingIds(now).next,
        new_suffix=new_suffix,
        vault=load_vault(settings.data_dir),
        exposure=UrlRegistry(read_url_settings(settings, proxied), Traffic(now, time.monotonic, window)),
    )
    context.may_cluster_have_names = settings.engine != LOCAL
    machine = None if settings.api_only else _make_machine(settings, context, url, proxied)
    await ensure_defaults(context, "" if settings.api_only else settings.engine)
    cluster = context.directory.cluster
    if await ensure_accounts(context, settings.data_dir, cluster.id):
        await _share_keys(settings)
    signer = load_signer(settings.data_dir, cluster.id, now, settings.token_seconds)
    await agree_on_key(context, signer.fingerprint)
    await agree_on_vault(context)
    limits = RequestLimits(body_bytes=settings.body_limit)
    accounts = Authenticator(context, signer)
    gate = UrlGate(accounts, context.exposure, now)
    proxy = Proxy(gate, Upstreams(Dialler(context)))
    more = ADMISSION_OPERATIONS if settings.engine != LOCAL else ()
    samples = partial(_loop_samples, machine)
    application = make_application(context, accounts, limits, samples, gate, more)
    server = HttpServer(_http(settings, application), context)
    refresher = store.subscribe(Refresher(context.directory).hear) if machine is None else None
    relay = Relay(partial(_find_urls, context, machine))
    server.hear_signals()

    async def open_urls() -> None:
        await relay.stop()
        if proxied:
            await proxy.start(proxied, settings.tls_certificate, settings.tls_key)

    try:
        if machine:
            await server.start_with(machine.start(open_urls, partial(_give_up, server, settings)))
            if machine.reconciler is None and proxied:
                await relay.start(proxied)
        _calm_collector()
        _announce(settings, url)
        await server.serve(sockets=[sock])
    finally:
        context.stopping = True
        (settings.data_dir / "server.json").unlink(missing_ok=True)
        await relay.stop()
        await proxy.stop()
        if machine:
            await machine.stop()
        if refresher:
            refresher()
        log.info("stopped; pods run on")
    return server.exit_code


def _make_machine(settings: ServerSettings, context: Context, url: str, proxied: socket.socket | None) -> EngineHost:
    """The engine looks up what pods refer to, and people look into its pods: each is handed to the other."""
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
    kept = settings.control
    machine = partial(
        EngineHost,
        context,
        lease=lease,
        compact=lambda at: compact(context.store, at, kept.keep_events, kept.keep_audit),
        measure=time.monotonic,
    )
    if settings.engine == LOCAL:
        engine: WholeEngine = make_engine(settings, now, Resolver(context).load, Supplier(context).load)
        return machine(engine=engine, observe_usage=partial(observe_usage, settings.data_dir))
    module = importlib.import_module(_ENGINES[settings.engine])
    made = module.make_engine(settings, lambda: context.directory.cluster.id, ClusterSupplier(context).load)
    context.engine_unreachable_reason = made.away
    return machine(engine=made, follows=True, objects=made.customs)


async def _share_keys(settings: ServerSettings) -> None:
    """Where servers come and go with their data folders, the cluster keeps the keys that all of them need."""
    if not settings.keys_secret:
        return
    if settings.engine == LOCAL:
        raise Refused("--keys-secret names a Secret of a cluster; give --engine kubernetes with it")
    folder = settings.data_dir
    load_vault(folder)
    load_signer(folder, "", now)
    mine = {path.name: path.read_bytes() for path in (*(folder / "keys").iterdir(), *folder.glob(CREDENTIALS))}
    kept = await importlib.import_module(_ENGINES[settings.engine]).share_keys(settings, mine)
    for name, content in kept.items():
        write_private(folder / (name if name == CREDENTIALS else f"keys/{name}"), content)


async def _find_urls(context: Context, machine: EngineHost | None) -> str:
    """Where the holder serves workloads' URLs; an address like our own would lead back to us, and round and round."""
    holder = await find_holder(context)
    return holder.urls if holder and machine and holder.urls != machine.lease.urls else ""


def _loop_samples(machine: EngineHost | None) -> list[Sample]:
    """What the loop tells of itself at a scrape, where it runs."""
    return loop_samples(machine.reconciler) if machine and machine.reconciler else []


def _http(settings: ServerSettings, application: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_graceful_shutdown=5,
    )


def _give_up(server: HttpServer, settings: ServerSettings) -> None:
    is_again = settings.engine != LOCAL
    log.error("this server no longer runs the machine; %s", "standing by" if is_again else "stopping")
    server.exit_code = _AGAIN if is_again else 1
    server.should_exit = True


def _calm_collector() -> None:
    """What was loaded at start stays: no need to look through it for garbage again and again under load."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _announce(settings: ServerSettings, url: str) -> None:
    """Say where this server is, for the command line of the same user."""
    told = {
        "url": url,
        "pid": os.getpid(),
        "startedAt": iso(now()),
        "log": str(settings.data_dir / "logs" / "server.log"),
        "version": __version__,
        "engine": settings.engine,
        "certificate": os.path.abspath(settings.tls_certificate) if settings.tls_certificate else "",
    }
    write_private(settings.data_dir / "server.json", msgspec.json.encode(told))
    log.info("serving at %s", url)


def now() -> Millis:
    return time.time_ns() // 1_000_000


async def _open_store(settings: ServerSettings) -> Store:
    scheme = settings.database.partition("://")[0] if "://" in settings.database else ""
    if scheme in _STORES:
        store: Store = await importlib.import_module(_STORES[scheme]).open_postgres(settings.database)
        return store
    if scheme not in ("", "sqlite"):
        raise Refused(f"The database {settings.database!r} is neither a file nor a postgresql:// URL")
    path = settings.database.removeprefix("sqlite://") or settings.data_dir / "fairlead.db"
    return await open_sqlite(path)


def read_url_settings(settings: ServerSettings, proxied: socket.socket | None) -> UrlSettings:
    """How URLs look to those who open them: at our proxy, or at the ingress controller before it."""
    is_tls = bool(settings.tls_certificate)
    port = proxied.getsockname()[1] if proxied else settings.proxy_port or DEFAULT_PROXY_PORT
    given = (settings.ingress_class, settings.ingress_server)
    if any(given) or settings.ingress_tls:
        if settings.engine == LOCAL or not all(given):
            raise Refused("Ingress objects need all of --engine kubernetes, --ingress-class and --ingress-server")
        is_tls, port = settings.ingress_tls, 443 if settings.ingress_tls else 80
    scheme = "https" if is_tls else "http"
    return UrlSettings(scheme=scheme, domain=settings.domain.lower(), port=port, by_path=settings.url_paths)
