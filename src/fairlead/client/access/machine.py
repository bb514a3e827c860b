"""The shared server of this machine, to which people sign in as the account that they are, without a password."""

import json
import os
import socket
from collections.abc import Mapping
from typing import NamedTuple

#: Where a server listens that was started with `--machine-socket`, unless the variable says otherwise.
DEFAULT_SOCKET, VARIABLE = "/run/fairlead/machine.sock", "FAIRLEAD_MACHINE_SOCKET"
_SECONDS = 5.0


class MachineServer(NamedTuple):
    """A server that has signed us in, or why it has not."""

    url: str = ""
    certificate: str | None = None
    username: str = ""
    token: str = ""
    error: str = ""


def sign_in(environ: Mapping[str, str]) -> MachineServer | None:
    """Sign in to the shared server of this machine; None if there is none."""
    path = environ.get(VARIABLE) or DEFAULT_SOCKET
    # A client of the machine's own server must not trust a socket that anybody could have made.
    if not _is_trusted(path):
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(path)
            answer = json.loads(b"".join(iter(lambda: connection.recv(65_536), b"")))
    except (OSError, ValueError):
        return None
    return MachineServer(
        str(answer.get("url") or ""),
        str(answer.get("certificate") or "") or None,
        str(answer.get("username") or ""),
        str(answer.get("accessToken") or ""),
        str(answer.get("error") or ""),
    )


def _is_trusted(path: str) -> bool:
    """Whether the socket belongs to root or to us, in a folder that others cannot write to."""
    try:
        owners = {os.stat(path).st_uid, os.stat(os.path.dirname(path)).st_uid}
        mode = os.stat(os.path.dirname(path)).st_mode
    except OSError:
        return False
    return owners <= {0, os.getuid()} and (not mode & 0o002 or bool(mode & 0o1000))
