"""What an operator can set, and what a data folder remembers of it; `serve_flags.py` declares the flags.

Read by `app`, and by nothing else. A data folder remembers whether its server is personal or shared, and with which
flags it was started last, so that `fairlead server start` brings back the server that was stopped or restored.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead.client.access.local import make_paths_absolute
from fairlead.control.context import ControlSettings
from fairlead.control.keys import write_private
from fairlead.control.notifications.settings import NotificationSettings
from fairlead.control.people.sign_on.settings import SignOnSettings
from fairlead.engines.local.configuration import pick_runtime_variables
from fairlead.formats.custom_resource import RUNAI_GROUP
from fairlead.model.errors import Refused
from fairlead.serve_flags import LOCAL, serve_parser, start_parser

#: The file in which a data folder remembers how its server is started. The command line reads it too.
RECORD = "settings.json"
#: The database of a data folder, unless `--database` says otherwise.
DATABASE = "fairlead.db"


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
    #: Where people of this machine sign in as their account; empty for nowhere.
    machine_socket: str = ""
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
    #: Where pods run: `local`, or one of `ENGINES`; and how that cluster is reached.
    engine: str = LOCAL
    kubeconfig: str = ""
    #: The API group of workloads' custom resources there.
    group: str = RUNAI_GROUP
    #: Where in that cluster the servers of one database keep their keys, as NAMESPACE/NAME.
    keys_secret: str = ""
    #: Which Ingress objects are made there for URLs, where their controller finds this server, and whether by HTTPS.
    ingress_class: str = ""
    ingress_server: str = ""
    ingress_tls: bool = False
    #: Whether an autoscaler adds nodes there: `on`, `off`, or `auto` to find out.
    node_autoscaler: str = "auto"
    #: Where Prometheus answers, which knows how much pods use there; empty for nowhere.
    prometheus_url: str = ""
    #: The URL of the Loki that agents on the nodes send output to, and the tenant there.
    loki_url: str = ""
    loki_tenant: str = ""
    #: Bytes of output that is kept of pods that the cluster has deleted; 0 for none.
    keep_logs_size: int = 10_000_000_000
    #: Seconds between scheduled backups (0: none), how many are kept, and where (empty: in the data folder).
    backup_every: int = 0
    backup_keep: int = 14
    backup_dir: str = ""
    #: Where lines of the audit are sent as they are written: a file, or syslog; empty for nowhere.
    audit_export: str = ""
    #: A file with the token that a scrape of /metrics needs; empty for none.
    metrics_token_file: str = ""
    #: Seconds for which the server goes on serving after SIGTERM, while it is not ready any more.
    drain_seconds: int = 0
    log_to_stderr: bool = True
    #: Whether the settings are only checked.
    check: bool = False
    sign_on: SignOnSettings = SignOnSettings()
    notifications: NotificationSettings = NotificationSettings()
    control: ControlSettings = ControlSettings()
    #: The flags that the data folder remembers: as they were given, without those that say how this process is started.
    flags: tuple[str, ...] = ()


class RecordedSettings(msgspec.Struct, frozen=True, rename="camel"):
    """How the server of a data folder was started last."""

    personal: bool
    flags: tuple[str, ...] = ()


def load_recorded(folder: Path) -> RecordedSettings | None:
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=RecordedSettings)
    except (OSError, msgspec.MsgspecError):
        return None


def record(settings: ServerSettings) -> str:
    """Remember how this server was started. Returns a sentence about what changed since the last time, or nothing."""
    before = load_recorded(settings.data_dir)
    now = RecordedSettings(settings.personal, settings.flags)
    if before == now:
        return ""
    write_private(settings.data_dir / RECORD, msgspec.json.encode(now))
    if before is None:
        return ""
    was, is_now = (" ".join((_mode(one.personal), *one.flags)) for one in (before, now))
    return f"The settings of this data folder have changed. Before: {was}. Now: {is_now}."


def check_mode(settings: ServerSettings, people: Sequence[str]) -> None:
    """Refuse personal mode, in which every job runs as the server's owner, if the data belongs to more than the owner.

    `people`: the users besides the first one.
    """
    if not settings.personal:
        return
    recorded = load_recorded(settings.data_dir)
    if recorded is not None and not recorded.personal:
        raise Refused(
            f"The data folder {settings.data_dir} belongs to a shared server, so it cannot be started with --personal. "
            "Leave --personal out, or choose another data folder"
        )
    if people:
        shown = ", ".join(people[:3]) + (f" and {len(people) - 3} more" if len(people) > 3 else "")
        raise Refused(
            f"Personal mode would run the jobs of {shown} as the owner of this server. "
            "Start it as a shared server: `fairlead server start -- --shared`, or `fairlead serve --shared`"
        )


def _mode(personal: bool) -> str:
    return "--personal" if personal else "--shared"


def find_database(settings: ServerSettings) -> str:
    """The path of the SQLite file, or the URL of PostgreSQL."""
    scheme, mark, _ = settings.database.partition("://")
    if is_postgres(settings.database):
        return settings.database
    if mark and scheme != "sqlite":
        raise Refused(f"The database {settings.database!r} is neither a file nor a postgresql:// URL")
    return settings.database.removeprefix("sqlite://") or str(settings.data_dir / DATABASE)


def is_postgres(database: str) -> bool:
    return database.startswith(("postgres://", "postgresql://"))


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> ServerSettings:
    arguments = make_paths_absolute(arguments)
    _, flags = start_parser().parse_known_args(arguments)
    given = serve_parser().parse_args(arguments)
    data_dir = _find_data_dir(given.data_dir or environment.get("FAIRLEAD_DATA_DIR"), environment)
    recorded = load_recorded(data_dir)
    personal = recorded.personal if recorded else given.background
    return ServerSettings(
        data_dir=data_dir,
        host=given.host,
        port=given.port,
        database=given.database or environment.get("FAIRLEAD_DATABASE", ""),
        personal=given.personal or (personal and not given.shared),
        nodes=tuple(given.node),
        nodes_file=given.nodes or "",
        machine=given.machine,
        machine_socket=given.machine_socket or "",
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
        group=given.group,
        keys_secret=given.keys_secret or "",
        ingress_class=given.ingress_class,
        ingress_server=given.ingress_server,
        ingress_tls=given.ingress_tls,
        node_autoscaler=given.node_autoscaler,
        prometheus_url=given.prometheus_url,
        loki_url=given.loki_url,
        loki_tenant=given.loki_tenant,
        keep_logs_size=given.keep_logs_size,
        backup_every=given.backup_every,
        backup_keep=given.keep,
        backup_dir=given.backup_dir or "",
        audit_export=given.audit_export,
        metrics_token_file=given.metrics_token_file or "",
        drain_seconds=given.drain_seconds,
        log_to_stderr=not (given.quiet or given.background),
        check=given.check,
        sign_on=_sign_on_settings(given),
        notifications=_notification_settings(given),
        control=_control_settings(given),
        flags=tuple(flags),
    )


def _find_data_dir(folder: str | None, environment: Mapping[str, str]) -> Path:
    """The folder that is named, otherwise the user's own."""
    if not folder:
        base = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        folder = os.path.join(base, "fairlead")
    return Path(folder).absolute()


def _control_settings(given: argparse.Namespace) -> ControlSettings:
    return ControlSettings(
        retry_delay=given.retry_delay,
        scaling_window=given.scaling_window * 1000,
        keep_logs=given.keep_logs * 1000,
        keep_cycles=given.keep_cycles * 1000,
        keep_cycles_bytes=given.keep_cycles_size,
        adopts_unknown_pods=given.unknown_pods == "adopt",
        binds_equal_names=given.bind_users == "equal-names",
        protects_ownership=given.workload_ownership_protection,
        sends_mail=bool(given.smtp_url),
    )


def _sign_on_settings(given: argparse.Namespace) -> SignOnSettings:
    return SignOnSettings(
        issuer=given.oidc_issuer,
        client_id=given.oidc_client_id,
        client_secret_file=given.oidc_client_secret_file or "",
        scopes=tuple(given.oidc_scopes.replace(",", " ").split()),
        username_claim=given.oidc_username_claim,
        groups_claim=given.oidc_groups_claim,
        domains=tuple(domain.lower().removeprefix("@") for domain in given.oidc_domain),
        audiences=tuple(given.oidc_audience),
        ca_file=given.oidc_ca_file or "",
        name=given.oidc_name,
        public_url=given.public_url,
    )


def _notification_settings(given: argparse.Namespace) -> NotificationSettings:
    return NotificationSettings(
        smtp_url=given.smtp_url,
        smtp_password_file=given.smtp_password_file or "",
        smtp_from=given.smtp_from,
        allowed=tuple(given.notify_allow),
        public_url=given.public_url,
    )
