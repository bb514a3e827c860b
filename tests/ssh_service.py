"""A real SSH server for tests that fetch over SSH; it lets in one key, as root."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.contract.storage_engine import call


@contextlib.contextmanager
def ssh_service(folder: Path, host: str) -> Iterator[tuple[str, str]]:
    """Its address, and the key; its own files are in `folder`."""
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    for above in (folder, folder.parent):
        above.chmod(0o755)
    with socket.create_server((host, 0)) as found:
        port = found.getsockname()[1]
    lines = {
        "Port": port,
        "ListenAddress": host,
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "yes",
        "PidFile": folder / "pid",
    }
    (folder / "config").write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    call("/usr/sbin/sshd", "-f", folder / "config")
    try:
        yield f"ssh://root@{host}:{port}", (folder / "user").read_text()
    finally:
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
