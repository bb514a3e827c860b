"""Wires the parts together into a server. Nothing else imports a concrete store or engine.

`fairlead serve` calls `main` with its arguments.
"""

import asyncio
import contextlib
import fcntl
import gc
import importlib
import logging
import os
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import uvloop

from fairlead import __version__
from fairlead.api.application import RequestSettings, make_application
from fairlead.api.http.certificates import load_tls
from fairlead.api.http.connection_limits import limits_of_process
from fairlead.api.proxy.access import UrlGate
from fairlead.api.proxy.relay import Relay
from fairlead.api.proxy.server import Proxy
from fairlead.api.proxy.upstream import Upstreams
from fairlead.api.server.cluster_metrics import cluster_samples
from fairlead.api.server.connections import make_protocol
from fairlead.api.server.health import check_metrics_token
from fairlead.api.server.http_server import HttpServer
from fairlead.api.server.json_log import set_up_logging
from fairlead.api.server.machine_socket import MachineSocket
from fairlead.api.server.metrics import HistogramSample, Sample, loop_samples
from fairlead.api.server.sockets import check_certificate, listen, url_of
from fairlead.api.workloads.admission_webhook import ADMISSION_OPERATIONS
from fairlead.control.audit_export import AuditExporter, make_sink
from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, EngineView
from fairlead.control.directory import Directory, Refresher
from fairlead.control.ids import GrowingIds, new_suffix
from fairlead.control.keys import agree_on_vault, load_vault, write_private
from fairlead.control.loop.engine_host import AnyHost
from fairlead.control.loop.fleet import Fleet
from fairlead.control.machine_accounts import load_user_of
from fairlead.control.notifications.dispatch import Notifier
from fairlead.control.notifications.settings import check_notifications
from fairlead.control.people.authentication import (
    ADMINISTRATOR,
    CREDENTIALS,
    Authenticator,
    agree_on_key,
    ensure_accounts,
)
from fairlead.control.people.sign_on.settings import check_sign_on
from fairlead.control.people.sign_on.sign_on import make_sign_on
from fairlead.control.people.tokens import Signer, Tokens, load_signer
from fairlead.control.serving.traffic import Traffic
from fairlead.control.serving.urls import UrlRegistry, UrlSettings
from fairlead.control.workloads.sessions import Dialler, find_holder
from fairlead.engine_hosts import Listening, make_added_host, make_first_host
from fairlead.engines.local.supervisor.forkserver_client import find_reserved_ports
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import FairleadError, Refused
from fairlead.model.records.organization import RecoveredOrganization
from fairlead.scheduled_backups import BackupSchedule
from fairlead.serve_flags import DEFAULT_PORT, DEFAULT_PROXY_PORT, ENGINES, LOCAL
from fairlead.settings import ServerSettings, check_mode, find_database, is_postgres, read_settings, record
from fairlead.store.base import Store
from fairlead.store.sqlite import open_sqlite

log = logging.getLogger("fairlead")

#: How long to wait for the lock: the command line takes it briefly to check whether a server runs.
LOCK_SECONDS = 1.0
#: In the data folder: what `fairlead restore --from-cluster` read, until the next server starts.
RECOVERED = "recovered.json"
#: Modules that are imported only if the settings need them.
_POSTGRES, _PREFLIGHT = "fairlead.store.postgres", "fairlead.preflight"
_RENDER = "fairlead.engines.kubernetes.render.workload"
#: The protocol of WebSockets.
_WEBSOCKETS = "uvicorn.protocols.websockets.websockets_sansio_impl"
#: Exit code for a restart: the server lost the machine, or could not take it over.
_AGAIN = 75
#: The proxy gets one in eight of the files that the process may open. Each of its connections may need a second one, to
#: a pod, so that both are a quarter.
_PROXY_SHARE = 8


def main(arguments: Sequence[str]) -> int:
    """Serve until told to stop. Returns the exit code of `fairlead serve`."""
    settings = read_settings(arguments, os.environ)
    if not can_serve(sys.platform, settings):
        sys.stderr.write(
            "fairlead serve: Pods run on Linux only. Use --api-only here, or a server on Linux with --url.\n"
        )
        return 1
    if settings.check:
        return _check(settings)
    os.umask(0o077)
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        settings.data_dir.chmod(0o700)
    except OSError as error:
        sys.stderr.write(f"fairlead serve: The data folder {settings.data_dir} cannot be used: {error.strerror}.\n")
        return 1
    set_up_logging(settings.data_dir / "logs", to_stderr=settings.log_to_stderr)
    try:
        with _only_server_of(settings.data_dir), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(serve(settings))
    except FairleadError as error:
        log.error("The server cannot start: %s", error)
        if not settings.log_to_stderr:
            sys.stderr.write(f"fairlead serve: {error}\n")
        return 1
    if code == _AGAIN:
        # Restart in the same process, because the state of the loop is no longer valid.
        os.execv(sys.executable, [sys.executable, "-m", "fairlead", "serve", *arguments])
    return code


def _check(settings: ServerSettings) -> int:
    try:
        importlib.import_module(_PREFLIGHT).check_settings(settings, now)
    except FairleadError as error:
        sys.stderr.write(f"fairlead serve: {error}\n")
        return 1
    return 0


def can_serve(platform: str, settings: ServerSettings) -> bool:
    return platform == "linux" or settings.api_only


@contextlib.contextmanager
def _only_server_of(folder: Path) -> Any:
    """Lock the data folder, so that only one server uses it."""
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
    check_certificate(settings.tls_certificate, settings.tls_key)
    check_sign_on(settings.sign_on, binds_equal_names=settings.control.binds_equal_names)
    check_notifications(settings.notifications)
    check_metrics_token(settings.metrics_token_file)
    is_secured = bool(settings.tls_certificate) or settings.insecure
    reserved = find_reserved_ports(str(settings.data_dir))
    sock = listen(settings.host, settings.port, DEFAULT_PORT, is_secured=is_secured, reserved=reserved)
    proxied = None
    if not settings.api_only:
        proxied = listen(
            settings.host, settings.proxy_port, DEFAULT_PROXY_PORT, is_secured=is_secured, reserved=reserved
        )
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
    await _share_keys(settings)
    context = _make_context(settings, store, proxied)
    authenticator = Authenticator(
        context, await _prepare_records(settings, context), make_sign_on(context, settings.sign_on)
    )
    fleet = Fleet(context, partial(make_added_host, settings, now))
    host = None if settings.api_only else make_first_host(settings, context, fleet, Listening(url, sock, proxied), now)
    gate = UrlGate(authenticator, context.url_registry, now)
    proxy = Proxy(gate, Upstreams(Dialler(context)), limits_of_process(_PROXY_SHARE))
    more = ADMISSION_OPERATIONS if settings.engine != LOCAL else ()
    backups = BackupSchedule(settings, lambda: host is not None and host.reconciler is not None)
    exporter = _make_audit_exporter(settings, store)
    samples = partial(_samples, host, fleet, backups)
    notifier = Notifier(context, settings.notifications)
    application = make_application(context, authenticator, _request_settings(settings), samples, gate, more)
    # As soon as the port is free, another program may take it, and must not get the secrets of our clients.
    withdraw = partial((settings.data_dir / "server.json").unlink, missing_ok=True)
    server = HttpServer(_http(settings, application), context, withdraw, settings.drain_seconds)
    refresher = store.subscribe(Refresher(context.directory).on_commit) if host is None else None
    relay = Relay(partial(_find_urls, context, host))
    machine_socket = _make_machine_socket(settings, context, authenticator, url)
    server.handle_signals()

    async def open_urls() -> None:
        await relay.stop()
        if proxied:
            await proxy.start(proxied, settings.tls_certificate, settings.tls_key)
        await fleet.start()

    try:
        if host:
            await server.start_with(host.start(open_urls, partial(_give_up, server, settings)))
            if host.reconciler is None and proxied:
                await relay.start(proxied)
        _tune_garbage_collector()
        # Flags with which it does not start would keep the next start, without flags, from starting too.
        if changed := record(settings):
            log.warning(changed)
        _announce(settings, url, host.find_warnings() if host else ())
        if machine_socket:
            await machine_socket.start()
        backups.start()
        if exporter:
            exporter.start()
        notifier.start()
        await server.serve(sockets=[sock])
    finally:
        context.stopping = True
        withdraw()
        await application.close()
        for part in (backups, notifier, exporter, machine_socket, relay, proxy, fleet, host):
            if part:
                await part.stop()
        if refresher:
            refresher()
        log.info("Stopped; pods keep running")
    return server.exit_code


async def _prepare_records(settings: ServerSettings, context: Context) -> Signer:
    """Create the records and keys that every server needs, and check that they fit; returns what signs tokens."""
    await ensure_defaults(context, "" if settings.api_only else settings.engine, _load_recovered(settings.data_dir))
    (settings.data_dir / RECOVERED).unlink(missing_ok=True)
    cluster = context.directory.cluster
    if await ensure_accounts(context, settings.data_dir, cluster.id):
        await _share_keys(settings)
    _check_mode(settings, context)
    signer = load_signer(settings.data_dir, cluster.id, now, settings.token_seconds)
    await agree_on_key(context, signer.fingerprint)
    await agree_on_vault(context)
    return signer


def _make_machine_socket(
    settings: ServerSettings, context: Context, authenticator: Authenticator, url: str
) -> MachineSocket | None:
    if not settings.machine_socket:
        return None

    def sign_in(account: str) -> tuple[str, Tokens]:
        user = load_user_of(context, account)
        return user.name, authenticator.issue_for(user)

    certificate = os.path.abspath(settings.tls_certificate) if settings.tls_certificate else ""
    return MachineSocket(settings.machine_socket, url, certificate, sign_in)


def _make_context(settings: ServerSettings, store: Store, proxied: socket.socket | None) -> Context:
    window = settings.control.scaling_window
    return Context(
        store=store,
        clock=now,
        directory=Directory(store),
        sessions=None,
        settings=settings.control,
        new_id=GrowingIds(now).next,
        new_suffix=new_suffix,
        vault=load_vault(settings.data_dir),
        url_registry=UrlRegistry(read_url_settings(settings, proxied), Traffic(now, time.monotonic, window)),
        engine=EngineView(is_cluster=settings.engine != LOCAL),
        render_objects=lambda *workload: importlib.import_module(_RENDER).render_spec(*workload),
    )


def _load_recovered(folder: Path) -> RecoveredOrganization | None:
    """What `fairlead restore --from-cluster` left for a server with an empty or restored database."""
    try:
        return msgspec.json.decode((folder / RECOVERED).read_bytes(), type=RecoveredOrganization)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Refused(f"{folder / RECOVERED} cannot be read; run `fairlead restore --from-cluster` again") from error


def _check_mode(settings: ServerSettings, context: Context) -> None:
    """Check the mode against who has an account here."""
    users = (user for user in context.directory.users.values() if user.type == "user" and user.name != ADMINISTRATOR)
    check_mode(settings, sorted(user.name for user in users))


def _request_settings(settings: ServerSettings) -> RequestSettings:
    return RequestSettings(
        body_bytes=settings.body_limit,
        certificate=settings.tls_certificate,
        metrics_token_file=settings.metrics_token_file,
        # People of a shared machine reach its loopback; in a cluster, network policies decide who reaches the server.
        are_metrics_open=settings.personal,
    )


async def _share_keys(settings: ServerSettings) -> None:
    """Share keys through a Secret of the cluster, for servers that do not keep their data folders."""
    if not settings.keys_secret:
        return
    if settings.engine == LOCAL:
        raise Refused("--keys-secret needs --engine kubernetes: it names a Secret of the cluster")
    folder = settings.data_dir
    load_vault(folder)
    load_signer(folder, "", now)
    mine = {path.name: path.read_bytes() for path in (*(folder / "keys").iterdir(), *folder.glob(CREDENTIALS))}
    kept = await importlib.import_module(ENGINES[settings.engine]).share_keys(settings, mine)
    for name, content in kept.items():
        write_private(folder / (name if name == CREDENTIALS else f"keys/{name}"), content)


async def _find_urls(context: Context, host: AnyHost | None) -> str:
    """Where the server that runs the machine serves workloads' URLs; empty if it is this one, to avoid a loop."""
    holder = await find_holder(context)
    own = host.lease.urls if host and host.lease else ""
    return holder.urls if holder and host and holder.urls != own else ""


def _make_audit_exporter(settings: ServerSettings, store: Store) -> AuditExporter | None:
    if not settings.audit_export:
        return None
    return AuditExporter(store, now, make_sink(settings.audit_export), settings.data_dir / "audit-export.position")


def _samples(host: AnyHost | None, fleet: Fleet, backups: BackupSchedule) -> list[Sample | HistogramSample]:
    """Metrics of the loops and of what they know, if they run here, and of backups."""
    samples = _loop_samples(host) if host else []
    for id, added in list(fleet.hosts.items()):
        cluster = fleet.context.directory.clusters.get(id)
        labels = {"cluster": cluster.name if cluster else id}
        samples += [
            msgspec.structs.replace(sample, labels={**sample.labels, **labels}) for sample in _loop_samples(added)
        ]
    return [*samples, *backups.samples()]


def _loop_samples(host: AnyHost) -> list[Sample | HistogramSample]:
    loop = host.reconciler
    if loop is None:
        return []
    return [*loop_samples(loop.board, loop.metrics), *cluster_samples(loop.context, loop.board, loop.metrics)]


def _open_websocket(**members: Any) -> asyncio.Protocol:
    """The protocol of a WebSocket. Its library is loaded with the first one: most servers never have one."""
    protocol: asyncio.Protocol = importlib.import_module(_WEBSOCKETS).WebSocketsSansIOProtocol(**members)
    return protocol


def _http(settings: ServerSettings, application: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=make_protocol(limits_of_process(), load_tls(settings.tls_certificate, settings.tls_key)),
        ws=_open_websocket,  # type: ignore[arg-type]  # called as the class would be
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
    )


def _give_up(server: HttpServer, settings: ServerSettings) -> None:
    is_again = settings.engine != LOCAL
    log.error("This server no longer runs the machine; %s", "standing by" if is_again else "stopping")
    server.exit_code = _AGAIN if is_again else 1
    server.should_exit = True


def _tune_garbage_collector() -> None:
    """Exclude objects loaded at start from garbage collection, which saves time under load."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _announce(settings: ServerSettings, url: str, warnings: Sequence[str]) -> None:
    """Write the server's address to a file for the command line of the same user."""
    for warning in warnings:
        log.warning(warning)
    announcement = {
        "url": url,
        "pid": os.getpid(),
        "startedAt": iso(now()),
        "log": str(settings.data_dir / "logs" / "server.log"),
        "version": __version__,
        "engine": settings.engine,
        "personal": settings.personal,
        "warnings": warnings,
        "certificate": os.path.abspath(settings.tls_certificate) if settings.tls_certificate else "",
    }
    write_private(settings.data_dir / "server.json", msgspec.json.encode(announcement))
    log.info("Serving at %s", url)


def now() -> Millis:
    return time.time_ns() // 1_000_000


async def _open_store(settings: ServerSettings) -> Store:
    database = find_database(settings)
    if is_postgres(database):
        store: Store = await importlib.import_module(_POSTGRES).open_postgres(database)
        return store
    return await open_sqlite(database)


def read_url_settings(settings: ServerSettings, proxied: socket.socket | None) -> UrlSettings:
    """The public form of workloads' URLs: at our proxy, or at an ingress controller in front of it."""
    is_tls = bool(settings.tls_certificate)
    port = proxied.getsockname()[1] if proxied else settings.proxy_port or DEFAULT_PROXY_PORT
    given = (settings.ingress_class, settings.ingress_server)
    if any(given) or settings.ingress_tls:
        if settings.engine == LOCAL or not all(given):
            raise Refused("Ingress objects need all of --engine kubernetes, --ingress-class and --ingress-server")
        is_tls, port = settings.ingress_tls, 443 if settings.ingress_tls else 80
    scheme = "https" if is_tls else "http"
    return UrlSettings(scheme=scheme, domain=settings.domain.lower(), port=port, by_path=settings.url_paths)
