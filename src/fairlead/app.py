"""Wires the parts together into a server, starts them and stops them.

`fairlead serve` calls `main` with its arguments. `server_context.py` opens the store, `engine_hosts.py` makes the
engines; nothing else knows a concrete one.
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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvicorn
import uvloop

from fairlead import __version__
from fairlead.api.application import Application, RequestSettings, make_application
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
from fairlead.control.context import Context
from fairlead.control.directory import Refresher
from fairlead.control.keys import write_private
from fairlead.control.loop.engine_host import AnyHost
from fairlead.control.loop.fleet import Fleet
from fairlead.control.machine_accounts import load_user_of
from fairlead.control.notifications.dispatch import Notifier
from fairlead.control.notifications.settings import check_notifications
from fairlead.control.people.authentication import (
    Authenticator,
)
from fairlead.control.people.sign_on.settings import check_sign_on
from fairlead.control.people.sign_on.sign_on import make_sign_on
from fairlead.control.people.tokens import Tokens
from fairlead.control.workloads.sessions import Dialler, find_holder
from fairlead.engine_hosts import Listening, make_added_host, make_first_host
from fairlead.engines.local.supervisor.forkserver_client import find_reserved_ports
from fairlead.model.clock import iso
from fairlead.model.errors import FairleadError, Refused
from fairlead.scheduled_backups import BackupSchedule
from fairlead.serve_flags import DEFAULT_PORT, DEFAULT_PROXY_PORT, LOCAL
from fairlead.server_context import make_context, now, open_store, prepare_records, share_keys
from fairlead.settings import ServerSettings, read_settings, record
from fairlead.store.base import Store

log = logging.getLogger("fairlead")

#: How long to wait for the lock: the command line takes it briefly to check whether a server runs.
LOCK_SECONDS = 1.0
#: Imported only for `serve --check`.
_PREFLIGHT = "fairlead.preflight"
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
    store = await open_store(settings)
    try:
        return await _serve_on(settings, sock, proxied, store)
    finally:
        await store.close()
        sock.close()
        if proxied:
            proxied.close()


class _Parts(NamedTuple):
    """A server before it starts: its HTTP server, and everything that runs next to it."""

    context: Context
    server: HttpServer
    application: Application
    #: Runs the workloads; None on a server that serves the API only.
    host: AnyHost | None
    fleet: Fleet
    #: Exposed URLs: served here, or passed on to the server that runs the machine.
    proxy: Proxy
    relay: Relay
    machine_socket: MachineSocket | None
    backups: BackupSchedule
    exporter: AuditExporter | None
    notifier: Notifier
    #: Removes the file with the address. As soon as the port is free, another program may take it, and must not get the
    #: secrets of our clients.
    withdraw: Callable[[], None]


async def _serve_on(settings: ServerSettings, sock: socket.socket, proxied: socket.socket | None, store: Store) -> int:
    listening = Listening(url_of(sock, is_tls=bool(settings.tls_certificate)), sock, proxied)
    parts = await _assemble(settings, listening, store)
    unsubscribe = store.subscribe(Refresher(parts.context.directory).on_commit) if parts.host is None else None
    parts.server.handle_signals()
    try:
        await _start(settings, listening, parts)
        await parts.server.serve(sockets=[sock])
    finally:
        await _stop(parts)
        if unsubscribe:
            unsubscribe()
        log.info("Stopped; pods keep running")
    return parts.server.exit_code


async def _assemble(settings: ServerSettings, listening: Listening, store: Store) -> _Parts:
    await share_keys(settings)
    context = make_context(settings, store, listening.proxied)
    signer = await prepare_records(settings, context)
    authenticator = Authenticator(context, signer, make_sign_on(context, settings.sign_on))
    fleet = Fleet(context, partial(make_added_host, settings, now))
    host = None if settings.api_only else make_first_host(settings, context, fleet, listening, now)
    gate = UrlGate(authenticator, context.url_registry, now)
    backups = BackupSchedule(settings, lambda: host is not None and host.reconciler is not None)
    samples = partial(_samples, host, fleet, backups)
    more = ADMISSION_OPERATIONS if settings.engine != LOCAL else ()
    application = make_application(context, authenticator, _request_settings(settings), samples, gate, more)
    withdraw = partial((settings.data_dir / "server.json").unlink, missing_ok=True)
    return _Parts(
        context=context,
        server=HttpServer(_http(settings, application), context, withdraw, settings.drain_seconds),
        application=application,
        host=host,
        fleet=fleet,
        proxy=Proxy(gate, Upstreams(Dialler(context)), limits_of_process(_PROXY_SHARE)),
        relay=Relay(partial(_find_urls, context, host)),
        machine_socket=_make_machine_socket(settings, context, authenticator, listening.url),
        backups=backups,
        exporter=_make_audit_exporter(settings, store),
        notifier=Notifier(context, settings.notifications),
        withdraw=withdraw,
    )


async def _start(settings: ServerSettings, listening: Listening, parts: _Parts) -> None:
    """Start everything but the HTTP server itself: the workloads first."""
    host, proxied = parts.host, listening.proxied

    async def open_urls() -> None:
        await parts.relay.stop()
        if proxied:
            await parts.proxy.start(proxied, settings.tls_certificate, settings.tls_key)
        await parts.fleet.start()

    if host:
        await parts.server.start_with(host.start(open_urls, partial(_give_up, parts.server, settings)))
        if host.reconciler is None and proxied:
            await parts.relay.start(proxied)
    _tune_garbage_collector()
    # Flags with which it does not start would keep the next start, without flags, from starting too.
    if changed := record(settings):
        log.warning(changed)
    _announce(settings, listening.url, host.find_warnings() if host else ())
    if parts.machine_socket:
        await parts.machine_socket.start()
    parts.backups.start()
    if parts.exporter:
        parts.exporter.start()
    parts.notifier.start()


async def _stop(parts: _Parts) -> None:
    parts.context.stopping = True
    parts.withdraw()
    await parts.application.close()
    others = (parts.backups, parts.notifier, parts.exporter, parts.machine_socket)
    for part in (*others, parts.relay, parts.proxy, parts.fleet, parts.host):
        if part:
            await part.stop()


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


def _request_settings(settings: ServerSettings) -> RequestSettings:
    return RequestSettings(
        body_bytes=settings.body_limit,
        certificate=settings.tls_certificate,
        metrics_token_file=settings.metrics_token_file,
        # People of a shared machine reach its loopback; in a cluster, network policies decide who reaches the server.
        are_metrics_open=settings.personal,
    )


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
