"""The server of this machine: the files in its data folder that say where it is and how to log in."""

import json
import os
from typing import Any, NamedTuple

from fairlead.client import Credentials, application

LOCK = "server.lock"
#: Held by a server for as long as it lives.
HOLDER = "holder.lock"
#: How the server in the background is called; its own flags come behind. A new data folder becomes a personal server's.
BACKGROUND = ("serve", "--background")
#: Where a data folder remembers the mode and the flags of its server; written by the server.
RECORD = "settings.json"


class LocalServer(NamedTuple):
    url: str
    pid: int
    log: str
    version: str
    started_at: str
    #: The file of the certificate that it shows; None without TLS.
    certificate: str | None = None
    engine: str = ""
    #: Whether every job runs as the owner of the server.
    personal: bool = False


def load_local(folder: str) -> LocalServer | None:
    """The server that the data folder tells of, if its process still lives."""
    found = _load(os.path.join(folder, "server.json"))
    if not found.get("url") or not isinstance(found.get("pid"), int) or not is_alive(found["pid"]):
        return None
    return LocalServer(
        str(found["url"]),
        found["pid"],
        str(found.get("log") or os.path.join(folder, "logs", "server.log")),
        str(found.get("version") or ""),
        str(found.get("startedAt") or ""),
        str(found.get("certificate") or "") or None,
        str(found.get("engine") or ""),
        found.get("personal") is True,
    )


def load_credentials(folder: str) -> Credentials | None:
    """What the server's first start left for its owner to log in with."""
    found = _load(os.path.join(folder, "credentials.json"))
    if not found.get("clientId") or not found.get("clientSecret"):
        return None
    return application(str(found["clientId"]), str(found["clientSecret"]))


def is_alive(pid: int) -> bool:
    """Whether that process is a server that runs: a number that went to another program since does not count."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            # A process that ended and that nobody has asked about yet has no words any more.
            return b"serve" in file.read().split(b"\0")
    except FileNotFoundError:
        return not os.path.isdir("/proc/self") and exists(pid)
    except OSError:
        return True


def load_flags(folder: str) -> list[str]:
    """The flags with which the server of this data folder was started last."""
    flags = _load(os.path.join(folder, RECORD)).get("flags")
    return [str(flag) for flag in flags] if isinstance(flags, list) else []


def is_in_background(pid: int) -> bool:
    """Whether this command started that server, so that it may also start it again."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return BACKGROUND[-1].encode() in file.read().split(b"\0")
    except OSError:
        return False


def exists(pid: int) -> bool:
    """Whether there is any process of that number, be it one that has ended and was not yet taken note of."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
