"""Address and credentials of the API server: from a kubeconfig, or from the service account of our own pod.

Read once by `configuration.py`. Tokens from files and commands are read again when they are old.
"""

import base64
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from fairlead.model.errors import Refused

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Seconds for which a token from a file or a command is used before it is read again.
TOKEN_SECONDS = 60.0
_COMMAND_SECONDS = 30.0
GiveToken = Callable[[], str]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    #: The prefix of every path; usually empty.
    prefix: str = ""
    #: None for plain HTTP.
    tls: ssl.SSLContext | None
    #: Returns a bearer token; empty if a certificate identifies us.
    token: GiveToken
    #: The file it was read from, for messages.
    source: str = ""
    #: User name and password in base64, as old local proxies use them; usually empty.
    basic: str = ""


def load_access(kubeconfig: str, environment: "os._Environ[str] | dict[str, str]", home: Path | None = None) -> Access:
    """From the file that was named, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Of several files in $KUBECONFIG, which kubectl would merge, the first is read.
    """
    listed = environment.get("KUBECONFIG", "")
    # The server passes the variable as if it were the flag.
    named = listed.split(os.pathsep)[0] if kubeconfig in ("", listed) else kubeconfig
    if named:
        return load_kubeconfig(Path(named))
    if environment.get("KUBERNETES_SERVICE_HOST") and (_ACCOUNT / "token").exists():
        return _load_account(environment)
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return load_kubeconfig(usual)
    raise Refused(
        f"No cluster is configured: use --kubeconfig, set KUBECONFIG, create {usual}, "
        "or run in a pod with a service account"
    )


def _load_account(environment: "os._Environ[str] | dict[str, str]") -> Access:
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    return Access(
        host=environment["KUBERNETES_SERVICE_HOST"],
        port=int(environment.get("KUBERNETES_SERVICE_PORT", "443")),
        tls=context,
        token=lambda: (_ACCOUNT / "token").read_text(encoding="utf-8").strip(),
        source="the service account of this pod",
    )


def load_kubeconfig(path: Path) -> Access:
    try:
        config: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"] if context.get("user") else {}
    except OSError as error:
        raise Refused(f"The kubeconfig {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise Refused(f"The kubeconfig {path} is not valid YAML: {' '.join(str(error).split())}") from error
    except KeyError as error:
        raise Refused(f"The kubeconfig {path} has no usable context: {error} is missing") from error
    except (TypeError, StopIteration) as error:
        raise Refused(f"The kubeconfig {path} has no usable context, cluster or user") from error
    address = urlsplit(cluster["server"])
    folder = path.absolute().parent
    is_tls = address.scheme == "https"
    basic = f"{user['username']}:{user['password']}" if "username" in user and "password" in user else ""
    return Access(
        host=address.hostname or "localhost",
        port=address.port or (443 if is_tls else 80),
        prefix=address.path.rstrip("/"),
        tls=_tls(cluster, user, folder) if is_tls else None,
        token=_token(user, folder),
        source=str(path),
        basic=base64.b64encode(basic.encode()).decode() if basic else "",
    )


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _tls(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> ssl.SSLContext:
    authority = _bytes(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _bytes(user, "client-certificate", folder)
    key = _bytes(user, "client-key", folder)
    if certificate and key:
        # OpenSSL reads certificate and key from a file only.
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _bytes(members: dict[str, Any], name: str, folder: Path) -> bytes:
    if members.get(f"{name}-data"):
        return base64.b64decode(members[f"{name}-data"])
    return (folder / members[name]).read_bytes() if members.get(name) else b""


def _token(user: dict[str, Any], folder: Path) -> GiveToken:
    if user.get("tokenFile"):
        return lambda: (folder / user["tokenFile"]).read_text(encoding="utf-8").strip()
    if user.get("exec"):
        return lambda: _run_plugin(user["exec"])
    return lambda: str(user.get("token", ""))


def _run_plugin(plugin: dict[str, Any]) -> str:
    """The token of a credential plugin, as cloud providers have them."""
    environment = {**os.environ, **{item["name"]: item["value"] for item in plugin.get("env") or ()}}
    asked = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(asked)
    command = [plugin["command"], *(plugin.get("args") or ())]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=True
        )
        return str(json.loads(done.stdout)["status"].get("token", ""))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        # Handled like a server that does not answer: the next try may succeed.
        raise ConnectionError(
            f"the command {plugin['command']!r} of the kubeconfig returned no token: {error}"
        ) from error
