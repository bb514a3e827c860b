"""The flags of `fairlead serve`, by topic. Only `settings.py` reads them, and gives them their meaning."""

import argparse
from collections.abc import Callable

from fairlead.control.people.sign_on.settings import DEFAULT_SCOPES
from fairlead.formats.custom_resource import OWN_GROUP, RUNAI_GROUP
from fairlead.model.allowed import ALLOWABLE
from fairlead.model.quantity import whole

DEFAULT_PORT = 7420
DEFAULT_PROXY_PORT = 7421
LOCAL = "local"
#: Engines whose module is loaded only when the settings ask for them.
ENGINES = {"kubernetes": "fairlead.engines.kubernetes.configuration"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def start_parser() -> argparse.ArgumentParser:
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


def serve_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairlead serve",
        usage="fairlead serve [flags]",
        description="Run the server in the foreground.",
        parents=[start_parser()],
        allow_abbrev=False,
    )
    for title, add_flags in (
        ("Address and requests", _add_listener_flags),
        ("Database", _add_database_flags),
        ("Nodes and pods of this machine", _add_pod_flags),
        ("URLs of workloads", _add_url_flags),
        ("Accounts", _add_account_flags),
        ("Sign-on with an identity provider", _add_sign_on_flags),
        ("Notifications", _add_notification_flags),
        ("Logs, records and backups", _add_copy_flags),
        ("Kubernetes cluster", _add_cluster_flags),
    ):
        add_flags(parser.add_argument_group(title).add_argument)
    return parser


def _add_listener_flags(add: Callable[..., argparse.Action]) -> None:
    add("--host", default="127.0.0.1", help="address to listen on; any other than loopback needs TLS or --insecure")
    add("--port", type=_read_port, help=f"default {DEFAULT_PORT}, or a free one if that is in use; 0 for any")
    add("--tls-certificate", metavar="FILE", help="PEM file with the certificate chain")
    add("--tls-key", metavar="FILE", help="PEM file with its private key")
    add("--insecure", action="store_true", help="serve plain HTTP on addresses other than loopback")
    add(
        "--drain-seconds",
        type=int,
        default=0,
        help="how long to keep serving after SIGTERM, while /readyz already fails",
    )
    add("--body-limit", type=int, default=1 << 20, help="largest request body in bytes")
    add("--token-seconds", type=int, default=86_400, help="how long an access token is valid")


def _add_database_flags(add: Callable[..., argparse.Action]) -> None:
    add("--database", help="SQLite file or postgresql:// URL; default fairlead.db in the data folder")
    add(
        "--advertise",
        metavar="URL[#NAME]",
        help="address at which other servers reach this one; NAME is the name on its certificate",
    )


def _add_url_flags(add: Callable[..., argparse.Action]) -> None:
    add("--proxy-port", type=_read_port, help=f"port of workloads' URLs: default {DEFAULT_PROXY_PORT}, or any free one")
    add("--domain", default="localhost", help="domain of exposed URLs, each of which has a host name of its own")
    add("--url-paths", action="store_true", help="distinguish exposed URLs by path on the domain itself, not by host")


def _add_pod_flags(add: Callable[..., argparse.Action]) -> None:
    add("--node", action="append", default=[], help="declare a node: NAME:cpu=4,memory=16Gi,gpus=8,gpu-memory=80Gi")
    add("--nodes", metavar="FILE", help="YAML file that declares nodes")
    add("--machine", default="local", help="name of this machine in the database")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="WHAT",
        help=f"allow what shared mode and clusters refuse by default: {ALLOWABLE}",
    )
    add("--retry-delay", type=int, default=1000, help="milliseconds before the first retry of a failed pod")
    add("--scaling-window", type=int, default=60, help="seconds over which a service's load is averaged for scaling")
    add(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME[=PROGRAM]",
        help="how pods run: host (default), podman, docker, containerd (by nerdctl); the first given is the "
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
        help="how much space they can take, such as 200M or 5G; 0 records none",
    )
    add("--backup-every", type=_duration, default=0, metavar="TIME", help="back up regularly, such as every 6h or 1d")
    add("--keep", type=_positive, default=14, metavar="N", help="how many of these backups are kept; default 14")
    add("--backup-dir", metavar="FOLDER", help="folder of the backups; default: backups in the data folder")
    add(
        "--audit-export",
        default="",
        metavar="TARGET",
        help="send the audit log as lines of JSON to a file, or to syslog (syslog, syslog://HOST:PORT)",
    )
    add("--metrics-token-file", default="", metavar="FILE", help="file with the token that requests for /metrics need")


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
    add(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig of that cluster; default $KUBECONFIG, or the account of the pod",
    )
    add("--group", choices=(RUNAI_GROUP, OWN_GROUP), default=RUNAI_GROUP, help="API group of custom resources there")
    add("--keys-secret", metavar="NAMESPACE/NAME", help="Secret of that cluster that keeps keys and first credentials")
    add("--ingress-class", default="", metavar="NAME", help="make Ingress objects of that class for workloads' URLs")
    add("--ingress-server", default="", metavar="HOST", help="the name at which their controller reaches this server")
    add(
        "--ingress-tls",
        action="store_true",
        help="Ingress objects use https, with the default certificate of their controller",
    )
    add(
        "--node-autoscaler",
        choices=("auto", "on", "off"),
        default="auto",
        help="whether an autoscaler adds nodes to that cluster; default auto: detect it",
    )
    add(
        "--keep-logs-size",
        type=_size,
        default="10G",
        metavar="SIZE",
        help="how much output of deleted pods is kept, such as 10G or 500M; 0 for none",
    )
    add(
        "--prometheus-url",
        default="",
        metavar="URL",
        help="URL of the Prometheus that measures pods and GPUs of that cluster",
    )
    add(
        "--loki-url",
        default="",
        metavar="URL",
        help="URL of the Loki that has the output of deleted pods of that cluster",
    )
    add("--loki-tenant", default="", metavar="NAME", help="the tenant in Loki, if it has several")
    add("--api-only", action="store_true", help="serve the API and leave pods to the server that runs the machine")
