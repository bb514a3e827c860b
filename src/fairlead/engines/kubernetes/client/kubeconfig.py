"""Address and credentials of the API server: from a kubeconfig, or from the service account of our own pod.

The address is read once, by `configuration.py`. Credentials are read again when they get old (`identity.py`), also if
the kubeconfig itself was written anew.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead.engines.kubernetes.client.identity import (
    ApiIdentity,
    Identify,
    TlsCache,
    TlsFiles,
    check_plugin,
    load_identity,
)
from fairlead.engines.kubernetes.client.proxies import HttpProxy, choose_proxy, read_proxy
from fairlead.formats.kubeconfig import KubeconfigEntries, find_entries
from fairlead.model.errors import Invalid, Refused

log = logging.getLogger(__name__)
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
Environment = Mapping[str, str]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    #: Returns what proves who we are; raises OSError if it cannot be had now.
    identify: Identify
    #: The prefix of every path; usually empty.
    prefix: str = ""
    #: The name on the server's certificate, if it is not the host.
    name: str = ""
    #: The file it was read from, for messages.
    source: str = ""
    #: The way there; None for a direct connection.
    proxy: HttpProxy | None = None


def load_access(kubeconfig: str, environment: Environment, home: Path | None = None) -> Access:
    """From the file that was named, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Of several files in $KUBECONFIG, which kubectl would merge, the first is read.
    """
    listed = environment.get("KUBECONFIG", "")
    # The server passes the variable as if it were the flag.
    path = listed.split(os.pathsep)[0] if kubeconfig in ("", listed) else kubeconfig
    if path:
        return load_kubeconfig(Path(path), environment)
    if environment.get("KUBERNETES_SERVICE_HOST") and (_ACCOUNT / "token").exists():
        return _load_account(environment)
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return load_kubeconfig(usual, environment)
    raise Refused(
        f"No cluster is configured: use --kubeconfig, set KUBECONFIG, create {usual}, "
        "or run in a pod with a service account"
    )


def _load_account(environment: Environment) -> Access:
    """Directly, whatever proxy the pod uses for other addresses."""
    tls = TlsCache()

    def identify() -> ApiIdentity:
        context = tls.make(TlsFiles(authority=(_ACCOUNT / "ca.crt").read_bytes()))
        token = (_ACCOUNT / "token").read_text(encoding="utf-8").strip()
        return ApiIdentity(tls=context, authorization=f"Bearer {token}")

    return Access(
        host=environment["KUBERNETES_SERVICE_HOST"],
        port=int(environment.get("KUBERNETES_SERVICE_PORT", "443")),
        identify=identify,
        source="the service account of this pod",
    )


def load_kubeconfig(path: Path, environment: Environment) -> Access:
    path = path.absolute()
    entries = _read_entries(path)
    address = urlsplit(str(entries.cluster["server"]))
    if plugin := entries.user.get("exec"):
        if not isinstance(plugin, dict):
            raise Refused(f"The kubeconfig {path} has a credential plugin that is not an object")
        check_plugin(plugin, path)
    if entries.user.get("auth-provider"):
        raise Refused(
            f"The kubeconfig {path} uses an auth-provider, which kubectl no longer has: use a credential plugin"
        )
    is_tls = address.scheme == "https"
    host, port = address.hostname or "localhost", address.port or (443 if is_tls else 80)
    written = str(entries.cluster.get("proxy-url") or "")
    return Access(
        host=host,
        port=port,
        prefix=address.path.rstrip("/"),
        name=str(entries.cluster.get("tls-server-name") or ""),
        identify=_KubeconfigCredentials(path, entries).load,
        source=str(path),
        proxy=read_proxy(written, f"{path}: proxy-url") if written else choose_proxy(host, port, is_tls, environment),
    )


class _KubeconfigCredentials:
    """Those of the context that was current at the start, whichever is current now."""

    def __init__(self, path: Path, entries: KubeconfigEntries) -> None:
        self._path = path
        self._entries = entries
        self._seen = self._stamp()
        self._tls = TlsCache()

    def load(self) -> ApiIdentity:
        self._read_again()
        return load_identity(self._entries.cluster, self._entries.user, self._path.parent, self._tls)

    def _read_again(self) -> None:
        """If the file was written anew; what cannot be used is not taken over."""
        stamp = self._stamp()
        if stamp in (None, self._seen):
            return
        try:
            self._entries = _read_entries(self._path, self._entries.context)
            self._seen = stamp
        except Refused as error:
            log.warning("%s; using its previous content", error)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size


def _read_entries(path: Path, context: str = "") -> KubeconfigEntries:
    """Of the named context, else of the current one."""
    try:
        entries = find_entries(path.read_text(encoding="utf-8"), context)
        urlsplit(str(entries.cluster["server"]))
    except OSError as error:
        raise Refused(f"The kubeconfig {path} cannot be read: {error.strerror}") from error
    except Invalid as error:
        raise Refused(f"The kubeconfig {path} {error.issues[0].details}") from error
    except KeyError as error:
        raise Refused(f"The kubeconfig {path} has a cluster without a server") from error
    except ValueError as error:
        raise Refused(f"The kubeconfig {path} is not valid: {error}") from error
    return entries
