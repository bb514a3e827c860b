"""Checks settings without starting a server, for `fairlead serve --check` and before `server restart` stops a server.

It finds what would keep a server from starting, as far as that can be seen while another one still runs.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead.api.server.health import check_metrics_token
from fairlead.api.server.sockets import check_certificate, listen
from fairlead.control.audit_export import make_sink
from fairlead.control.notifications.settings import check_notifications
from fairlead.control.people.sign_on.settings import check_sign_on
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.configuration import read_ingress
from fairlead.engines.local.configuration import load_settings
from fairlead.model.allowed import parse_allowed
from fairlead.model.clock import Clock
from fairlead.model.errors import Refused
from fairlead.serve_flags import DEFAULT_PORT, DEFAULT_PROXY_PORT, LOCAL
from fairlead.settings import ServerSettings, check_mode, find_database, is_postgres, load_recorded, read_settings
from fairlead.store.backup import NEWEST_LAYOUT, load_layout


class _Announced(msgspec.Struct):
    """The part of `server.json` that is read here."""

    url: str


def check_settings(settings: ServerSettings, clock: Clock) -> None:
    """Raises a FairleadError that says what is wrong."""
    check_mode(settings, ())
    check_certificate(settings.tls_certificate, settings.tls_key)
    check_sign_on(settings.sign_on, binds_equal_names=settings.control.binds_equal_names)
    check_notifications(settings.notifications)
    check_metrics_token(settings.metrics_token_file)
    if settings.audit_export:
        make_sink(settings.audit_export)
    _check_listening(settings)
    if not settings.api_only:
        _check_engine(settings, clock)
    _check_database(settings)


def _check_engine(settings: ServerSettings, clock: Clock) -> None:
    if settings.engine == LOCAL:
        load_settings(settings, clock)
        return
    parse_allowed(settings.allow)
    read_ingress(settings)
    load_access(settings.kubeconfig, os.environ)


def _check_database(settings: ServerSettings) -> None:
    database = find_database(settings)
    folder = Path(database).parent
    if not is_postgres(database) and folder != settings.data_dir and not folder.is_dir():
        raise Refused(f"The folder of the database, {folder}, does not exist")
    layout = load_layout(database)
    if layout.oldest_reader > NEWEST_LAYOUT:
        raise Refused(
            f"The database has layout {layout.number}, but this version of Fairlead knows layouts up to "
            f"{NEWEST_LAYOUT}. Use a newer version, or restore a backup from before the upgrade"
        )


def _check_listening(settings: ServerSettings) -> None:
    """Listen for a moment, except on ports that the running server of this data folder has and will give up."""
    is_secured = bool(settings.tls_certificate) or settings.insecure
    own = _own_ports(settings)
    ports = [settings.port] if settings.api_only else [settings.port, settings.proxy_port]
    for port in ports:
        listen(settings.host, 0 if port is None or port in own else port, 0, is_secured=is_secured).close()


def _own_ports(settings: ServerSettings) -> set[int | None]:
    try:
        announced = msgspec.json.decode((settings.data_dir / "server.json").read_bytes(), type=_Announced)
    except (OSError, msgspec.MsgspecError):
        return set()
    recorded = load_recorded(settings.data_dir)
    before = read_settings(recorded.flags if recorded else (), {})
    return {urlsplit(announced.url).port, before.port, before.proxy_port, DEFAULT_PORT, DEFAULT_PROXY_PORT}
