"""The server on this machine: the files in its data folder say where it is and how to log in."""

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from fairlead.client.access.tokens import Credentials, application

LOCK = "server.lock"
#: The lock that a running server holds.
HOLDER = "holder.lock"
#: The command line of the server in the background, before its own flags. In a new data folder it is a personal server.
BACKGROUND = ("serve", "--background")
#: The file in a data folder with the mode and the flags of its server; the server writes it.
RECORD = "settings.json"

#: Flags of `serve` whose value is a path, or may be one.
PATH_FLAGS = frozenset(
    {
        *(
            "--tls-certificate",
            "--tls-key",
            "--database",
            "--nodes",
            "--machine-socket",
            "--backup-dir",
            "--audit-export",
        ),
        *(
            "--metrics-token-file",
            "--oidc-client-secret-file",
            "--oidc-ca-file",
            "--smtp-password-file",
            "--kubeconfig",
        ),
    }
)


class LocalServer(NamedTuple):
    url: str
    pid: int
    log: str
    version: str
    started_at: str
    #: File with its certificate; None without TLS.
    certificate: str | None = None
    engine: str = ""
    #: Whether every job runs as the owner of the server.
    personal: bool = False
    #: What its operator has to mend so that it can run everything.
    warnings: tuple[str, ...] = ()


def load_local(folder: str) -> LocalServer | None:
    """The server that the data folder names, if its process is still running."""
    content = _load(os.path.join(folder, "server.json"))
    pid = content.get("pid")
    if not content.get("url") or not isinstance(pid, int) or not is_alive(pid):
        return None
    return LocalServer(
        str(content["url"]),
        pid,
        str(content.get("log") or os.path.join(folder, "logs", "server.log")),
        str(content.get("version") or ""),
        str(content.get("startedAt") or ""),
        str(content.get("certificate") or "") or None,
        str(content.get("engine") or ""),
        content.get("personal") is True,
        _texts(content.get("warnings")),
    )


def load_credentials(folder: str) -> Credentials | None:
    """The credentials that the server's first start has written for its owner."""
    content = _load(os.path.join(folder, "credentials.json"))
    if not content.get("clientId") or not content.get("clientSecret"):
        return None
    return application(str(content["clientId"]), str(content["clientSecret"]))


def is_alive(pid: int) -> bool:
    """Whether that process is a running server, and not another program that has the number now."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            # A zombie has no command line.
            return b"serve" in file.read().split(b"\0")
    except FileNotFoundError:
        return not os.path.isdir("/proc/self") and exists(pid)
    except OSError:
        return True


def load_flags(folder: str) -> list[str]:
    """The flags that the server of this data folder was started with last."""
    return list(_texts(_load(os.path.join(folder, RECORD)).get("flags")))


def _texts(content: object) -> tuple[str, ...]:
    return tuple(map(str, content)) if isinstance(content, list) else ()


def read_flag(flags: Sequence[str], name: str) -> str | None:
    """The value of a flag of `serve` among those that it was started with: `--name value` or `--name=value`."""
    for at, flag in enumerate(flags):
        if flag == name:
            return flags[at + 1] if at + 1 < len(flags) else None
        if flag.startswith(f"{name}="):
            return flag[len(name) + 1 :]
    return None


def make_paths_absolute(flags: Sequence[str]) -> list[str]:
    """Flags of `serve` with paths that hold in every folder: the next start may be in another one."""
    absolute: list[str] = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        if absolute and absolute[-1] in PATH_FLAGS:
            flag = _absolute(flag)
        elif equals and name in PATH_FLAGS:
            flag = f"{name}={_absolute(value)}"
        absolute.append(flag)
    return absolute


def _absolute(value: str) -> str:
    """A path as an absolute one; a URL, and `syslog`, stay as they are."""
    is_path = value and "://" not in value and value != "syslog"
    return os.path.abspath(value) if is_path else value


def is_personal_folder(folder: str) -> bool:
    """Whether the server of this data folder is personal, as it is in a new folder."""
    return _load(os.path.join(folder, RECORD)).get("personal") is not False


def is_in_background(pid: int) -> bool:
    """Whether the server was started in the background, so that it can be restarted from here."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return BACKGROUND[-1].encode() in file.read().split(b"\0")
    except OSError:
        return False


def exists(pid: int) -> bool:
    """Whether a process has that number, even if it is a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _load(path: str) -> dict[str, object]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
