"""What an operator can set: the flags of `fairlead serve`, and what a data folder remembers of them.

Read by `app`, and by nothing else. A data folder remembers whether its server is personal or shared, and with which
flags it was started last, so that `fairlead server start` brings back the server that was stopped or restored.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead.control.context import ControlSettings
from fairlead.control.keys import write_private
from fairlead.control.notifications.settings import NotificationSettings
from fairlead.control.people.sign_on.settings import DEFAULT_SCOPES, SignOnSettings
from fairlead.engines.local.configuration import pick_runtime_variables
from fairlead.formats.custom_resource import OWN_GROUP, RUNAI_GROUP
from fairlead.model.allowed import ALLOWABLE
from fairlead.model.errors import Refused
from fairlead.model.quantity import whole

DEFAULT_PORT = 7420
DEFAULT_PROXY_PORT = 7421
LOCAL = "local"
#: Engines whose module is loaded only when the settings ask for them.
ENGINES = {"kubernetes": "fairlead.engines.kubernetes.configuration"}
#: The file in which a data folder remembers how its server is started. The command line reads it too.
RECORD = "settings.json"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
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
        named = ", ".join(people[:3]) + (f" and {len(people) - 3} more" if len(people) > 3 else "")
        raise Refused(
            f"Personal mode would run the jobs of {named} as the owner of this server. "
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
    _, flags = _start_parser().parse_known_args(arguments)
    given = _parser().parse_args(arguments)
    folder = given.data_dir or environment.get("FAIRLEAD_DATA_DIR")
    if not folder:
        base = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        folder = os.path.join(base, "fairlead")
    data_dir = Path(folder).absolute()
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
        machine_socket=os.path.abspath(given.machine_socket) if given.machine_socket else "",
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
        backup_dir=os.path.abspath(given.backup_dir) if given.backup_dir else "",
        audit_export=_audit_target(given.audit_export),
        metrics_token_file=os.path.abspath(given.metrics_token_file) if given.metrics_token_file else "",
        drain_seconds=given.drain_seconds,
        log_to_stderr=not (given.quiet or given.background),
        check=given.check,
        sign_on=_sign_on_settings(given),
        notifications=_notification_settings(given),
        control=_control_settings(given),
        flags=tuple(flags),
    )


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
        client_secret_file=os.path.abspath(given.oidc_client_secret_file) if given.oidc_client_secret_file else "",
        scopes=tuple(given.oidc_scopes.replace(",", " ").split()),
        username_claim=given.oidc_username_claim,
        groups_claim=given.oidc_groups_claim,
        domains=tuple(domain.lower().removeprefix("@") for domain in given.oidc_domain),
        audiences=tuple(given.oidc_audience),
        ca_file=os.path.abspath(given.oidc_ca_file) if given.oidc_ca_file else "",
        name=given.oidc_name,
        public_url=given.public_url,
    )


def _notification_settings(given: argparse.Namespace) -> NotificationSettings:
    return NotificationSettings(
        smtp_url=given.smtp_url,
        smtp_password_file=os.path.abspath(given.smtp_password_file) if given.smtp_password_file else "",
        smtp_from=given.smtp_from,
        allowed=tuple(given.notify_allow),
        public_url=given.public_url,
    )


def _start_parser() -> argparse.ArgumentParser:
    """The flags that say how this one process is started; the data folder remembers all others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--data-dir", help="default $FAIRLEAD_DATA_DIR, else fairlead below the user's data folder")
    parser.add_argument("--quiet", action="store_true", help="log to the file only")
    parser.add_argument("--check", action="store_true", help="check the flags without starting the server")
    parser.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--personal", action="store_true", help="run jobs as the owner of this server, as in the owner's own shell"
    )
    mode.add_argument(
        "--shared", action="store_true", help="isolate jobs from the machine and from each other (default)"
    )
    return parser


def _read_port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: it must be a number up to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairlead serve",
        description="Run the server in the foreground.",
        parents=[_start_parser()],
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on; beyond loopback it wants TLS or --insecure")
    add("--port", type=_read_port, help=f"default {DEFAULT_PORT}, or any free one when that is taken; 0 for any")
    add("--database", help="SQLite file or postgresql:// URL; default fairlead.db in the data folder")
    add("--node", action="append", default=[], help="declare a node: NAME:cpu=4,memory=16Gi,gpus=8,gpu-memory=80Gi")
    add("--nodes", help="YAML file that declares nodes")
    add("--machine", default="local", help="name under which this server holds its machine in the database")
    add("--advertise", metavar="URL[#NAME]", help="where other servers reach this one; NAME is on its certificate")
    add("--proxy-port", type=_read_port, help=f"port of workloads' URLs: default {DEFAULT_PROXY_PORT}, or any free one")
    add("--domain", default="localhost", help="domain below which every exposed URL is a host of its own")
    add("--url-paths", action="store_true", help="tell exposed URLs apart by path, on the domain itself, not by host")
    add("--tls-certificate", help="PEM file with the certificate chain")
    add("--tls-key", help="PEM file with its private key")
    add("--insecure", action="store_true", help="serve plain HTTP beyond loopback")
    add("--drain-seconds", type=int, default=0, help="how long to serve after SIGTERM while /readyz fails already")
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
    _add_pod_flags(add)
    _add_account_flags(add)
    _add_sign_on_flags(add)
    _add_notification_flags(add)
    _add_copy_flags(add)
    _add_cluster_flags(add)
    return parser


def _add_pod_flags(add: Callable[..., argparse.Action]) -> None:
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
        "--unknown-pods",
        choices=("adopt", "stop"),
        default="adopt",
        help="running pods that the database does not know, as after a restore: adopt them (default) or stop them",
    )


def _add_account_flags(add: Callable[..., argparse.Action]) -> None:
    add("--machine-socket", metavar="PATH", help="socket on which people sign in with their account on this machine")
    add(
        "--bind-users",
        choices=("explicitly", "equal-names"),
        default="explicitly",
        help="which users run pods as accounts on this machine: those bound to one, or also those with the same name",
    )
    add(
        "--workload-ownership-protection",
        action="store_true",
        help="only the creator of a workload, and administrators, may change, stop or delete it",
    )


def _add_sign_on_flags(add: Callable[..., argparse.Action]) -> None:
    add("--oidc-issuer", default="", metavar="URL", help="issuer URL of the identity provider (OpenID Connect)")
    add("--oidc-client-id", default="", metavar="ID", help="the client id of this server at the provider")
    add("--oidc-client-secret-file", metavar="FILE", help="file with the client's secret; omit it for a public client")
    add(
        "--oidc-scopes",
        default=" ".join(DEFAULT_SCOPES),
        metavar="SCOPES",
        help="scopes to ask for, separated by spaces or commas; default: %(default)s",
    )
    add("--oidc-username-claim", default="email", metavar="CLAIM", help="claim with the user's name; default email")
    add("--oidc-groups-claim", default="groups", metavar="CLAIM", help="claim with the groups; empty to ignore groups")
    add("--oidc-domain", action="append", default=[], metavar="DOMAIN", help="allow only mail addresses of this domain")
    add("--oidc-audience", action="append", default=[], metavar="ID", help="another client whose tokens are accepted")
    add("--oidc-ca-file", metavar="FILE", help="PEM file with the authorities to trust for the provider")
    add("--oidc-name", default="single sign-on", metavar="NAME", help="name of the provider on the page's button")
    add("--public-url", default="", metavar="URL", help="where browsers reach this server, if it is behind a proxy")


def _add_notification_flags(add: Callable[..., argparse.Action]) -> None:
    add("--smtp-url", default="", metavar="URL", help="mail server: smtp://USER@HOST:587 or smtps://HOST")
    add("--smtp-password-file", metavar="FILE", help="file with the password of that user")
    add("--smtp-from", default="", metavar="MAIL", help="sender of mails")
    add(
        "--notify-allow",
        action="append",
        default=[],
        metavar="HOST",
        help="private host or network (10.1.0.0/16) that notifications may be sent to",
    )


def _add_copy_flags(add: Callable[..., argparse.Action]) -> None:
    add("--keep-logs", type=_duration, default="14d", metavar="TIME", help="how long output of ended pods is kept")
    add(
        "--keep-cycles",
        type=_duration,
        default="14d",
        metavar="TIME",
        help="how long scheduling cycles are kept",
    )
    add(
        "--keep-cycles-size",
        type=_size,
        default="1G",
        metavar="SIZE",
        help="how much space they may take, such as 200M or 5G; 0 records none",
    )
    add("--backup-every", type=_duration, default=0, metavar="TIME", help="back up regularly, such as every 6h or 1d")
    add("--keep", type=_positive, default=14, metavar="N", help="how many of these backups are kept; default 14")
    add("--backup-dir", metavar="FOLDER", help="where they are kept; default backups in the data folder")
    add(
        "--audit-export",
        default="",
        metavar="TARGET",
        help="send the audit as lines of JSON to a file, or to syslog (syslog, syslog://HOST:PORT)",
    )
    add("--metrics-token-file", default="", metavar="FILE", help="file with the token that /metrics asks for")


def _audit_target(given: str) -> str:
    return given if not given or given.startswith("syslog") else os.path.abspath(given)


def _duration(text: str) -> int:
    """Seconds of a time such as 90s, 30m, 6h or 1d."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and int(number) and unit in _UNITS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30m, 6h or 1d")
    return int(number) * _UNITS[unit]


def _size(text: str) -> int:
    """Bytes of a size such as 500M or 10Gi."""
    try:
        return whole(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 10G") from error


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _add_cluster_flags(add: Callable[..., argparse.Action]) -> None:
    add(
        "--engine",
        choices=(LOCAL, *ENGINES),
        default=LOCAL,
        help="where workloads run: on this machine (default), or on a Kubernetes cluster with the KAI scheduler",
    )
    add("--kubeconfig", metavar="FILE", help="how that cluster is reached; default $KUBECONFIG, the pod's own account")
    add("--group", choices=(RUNAI_GROUP, OWN_GROUP), default=RUNAI_GROUP, help="API group of custom resources there")
    add("--keys-secret", metavar="NAMESPACE/NAME", help="Secret of that cluster that keeps keys and first credentials")
    add("--ingress-class", default="", metavar="NAME", help="make Ingress objects of that class for workloads' URLs")
    add("--ingress-server", default="", metavar="HOST", help="the name by which their controller reaches this server")
    add("--ingress-tls", action="store_true", help="they are https, with their controller's default certificate")
    add(
        "--node-autoscaler",
        choices=("auto", "on", "off"),
        default="auto",
        help="whether an autoscaler adds nodes to that cluster; default auto: find out",
    )
    add(
        "--keep-logs-size",
        type=_size,
        default="10G",
        metavar="SIZE",
        help="how much output is kept of pods that the cluster deleted, such as 10G or 500M; 0 for none",
    )
    add("--prometheus-url", default="", metavar="URL", help="Prometheus that measures pods and GPUs of that cluster")
    add("--loki-url", default="", metavar="URL", help="Loki with the output of deleted pods of that cluster")
    add("--loki-tenant", default="", metavar="NAME", help="the tenant in Loki, if it has several")
    add("--api-only", action="store_true", help="serve the API and leave pods to the server that runs the machine")
