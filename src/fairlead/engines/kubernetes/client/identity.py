"""What proves to the API server who we are: certificates, tokens, and commands that issue them. All of them expire.

`api.py` loads an identity when it needs one, when the one it has gets old, and when the API server refuses it (401).
Files are read again each time; a command runs only when what it issued expires or is refused, as with client-go.
"""

import base64
import datetime
import json
import logging
import math
import os
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairlead.model.errors import Refused

log = logging.getLogger(__name__)
#: Seconds for which certificates and tokens from files are used before the files are read again.
RELOAD_SECONDS = 60.0
#: Seconds before its expiry that a credential is renewed, and the shortest time for which it is used.
_EARLY_SECONDS, _SHORTEST_SECONDS = 10.0, 2.0
#: Less than a request may take.
_COMMAND_SECONDS = 25.0
#: What client-go understands.
_PLUGIN_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_ADVICE = "see https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
Members = Mapping[str, Any]


class ApiIdentity(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    #: None for plain HTTP. The same object as before if neither authority nor certificate has changed.
    tls: ssl.SSLContext | None = None
    #: The header of every request; empty if the certificate says who we are.
    authorization: str = ""
    #: Seconds until it should be loaded again; infinite if only a refusal tells.
    lasts: float = RELOAD_SECONDS


Identify = Callable[[], ApiIdentity]


class TlsFiles(msgspec.Struct, frozen=True):
    """The content that a TLS context is made of."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    is_unverified: bool = False


class TlsCache:
    """Makes a context only if its content has changed, so that connections are kept otherwise."""

    def __init__(self) -> None:
        self._files: TlsFiles | None = None
        self._context: ssl.SSLContext | None = None

    def make(self, files: TlsFiles) -> ssl.SSLContext:
        if self._context is None or files != self._files:
            self._context, self._files = _make_context(files), files
        return self._context


def _make_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=files.authority.decode() if files.authority else None)
    if files.is_unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.certificate and files.key:
        # OpenSSL reads certificate and key from a file only.
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(files.certificate + b"\n" + files.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def read_member(members: Members, name: str, folder: Path) -> bytes:
    """Content that a kubeconfig has in it (`name-data`), or the name of its file."""
    if members.get(f"{name}-data"):
        return base64.b64decode(members[f"{name}-data"])
    return (folder / members[name]).read_bytes() if members.get(name) else b""


def load_identity(cluster: Members, user: Members, folder: Path, tls: TlsCache) -> ApiIdentity:
    """From the entries of a kubeconfig in this folder; raises OSError if something cannot be read or run now."""
    issued = run_plugin(user["exec"], cluster, folder) if user.get("exec") else Issued()
    context = None
    if str(cluster["server"]).startswith("https:"):
        files = TlsFiles(
            authority=read_member(cluster, "certificate-authority", folder),
            certificate=issued.certificate or read_member(user, "client-certificate", folder),
            key=issued.key or read_member(user, "client-key", folder),
            is_unverified=bool(cluster.get("insecure-skip-tls-verify")),
        )
        context = tls.make(files)
    lasts = issued.lasts if user.get("exec") else RELOAD_SECONDS
    return ApiIdentity(tls=context, authorization=_authorization(user, folder, issued.token), lasts=lasts)


def _authorization(user: Members, folder: Path, issued: str) -> str:
    token = issued or str(user.get("token") or "")
    if user.get("tokenFile"):
        token = (folder / user["tokenFile"]).read_text(encoding="utf-8").strip()
        if not token:
            raise ConnectionError(f"the token file {folder / user['tokenFile']} of the kubeconfig is empty")
    if token:
        return f"Bearer {token}"
    if "username" in user and "password" in user:
        return "Basic " + base64.b64encode(f"{user['username']}:{user['password']}".encode()).decode()
    return ""


class Issued(msgspec.Struct, frozen=True):
    """What a credential plugin issued."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    lasts: float = math.inf


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime.datetime | None = None


class _Credential(msgspec.Struct, rename="camel"):
    status: _Status
    api_version: str = ""


def check_plugin(plugin: Members, source: Path) -> None:
    """Refuse what could never work."""
    version = plugin.get("apiVersion")
    if version not in _PLUGIN_VERSIONS:
        raise Refused(f"The kubeconfig {source} has a credential plugin of version {version}; known are v1 and v1beta1")
    if plugin.get("interactiveMode") == "Always":
        raise Refused(f"The credential plugin of the kubeconfig {source} needs a terminal (interactiveMode: Always)")


def run_plugin(plugin: Members, cluster: Members, folder: Path) -> Issued:
    """Run a credential plugin, as cloud providers have them; raises OSError if it issues nothing now."""
    version, command = plugin["apiVersion"], _find_command(plugin["command"], folder)
    spec: dict[str, object] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _describe_cluster(cluster, folder)
    credential_request = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {item["name"]: item["value"] for item in plugin.get("env") or ()}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(credential_request)}
    try:
        done = subprocess.run(
            [command, *map(str, plugin.get("args") or ())],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
        )
        if done.returncode:
            error_output = done.stderr.decode(errors="replace").strip()[-500:]
            raise ConnectionError(f"it ended with code {done.returncode}: {error_output or 'no message'}")
        return _read_issued(msgspec.json.decode(done.stdout, type=_Credential), version)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, ValueError) as error:
        hint = (
            f". {plugin['installHint']}" if isinstance(error, FileNotFoundError) and plugin.get("installHint") else ""
        )
        # Handled like a server that does not answer: the next try may succeed.
        why = f"the command {plugin['command']!r} of the kubeconfig issued no credentials: {error}{hint}"
        raise ConnectionError(why) from error


def _find_command(command: str, folder: Path) -> str:
    """A path is relative to the kubeconfig; a plain name is looked up as a shell does."""
    if os.sep in command:
        return str(folder / command)
    return shutil.which(command) or command


def _read_issued(credential: _Credential, version: str) -> Issued:
    if credential.api_version != version:
        raise ValueError(f"its apiVersion is {credential.api_version or 'missing'}, not {version}; {_ADVICE}")
    status = credential.status
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise ValueError(f"its status has neither a token nor a certificate with its key; {_ADVICE}")
    lasts = math.inf
    if status.expiration_timestamp is not None:
        seconds_left = status.expiration_timestamp.timestamp() - time.time()
        lasts = max(_SHORTEST_SECONDS, seconds_left - _EARLY_SECONDS)
    certificate, key = status.client_certificate_data.encode(), status.client_key_data.encode()
    return Issued(status.token, certificate, key, lasts)


def _describe_cluster(cluster: Members, folder: Path) -> dict[str, object]:
    """As client-go tells a plugin that asks for it with provideClusterInfo."""
    same = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
    members = {name: cluster[name] for name in same if name in cluster}
    if authority := read_member(cluster, "certificate-authority", folder):
        members["certificate-authority-data"] = base64.b64encode(authority).decode()
    configured = [
        item for item in cluster.get("extensions") or () if item["name"] == "client.authentication.k8s.io/exec"
    ]
    return {**members, **({"config": configured[0]["extension"]} if configured else {})}
