"""Signs in whoever connects to a local socket: the kernel says which account of this machine the other side runs as.

Created by `app`. The answer is one JSON object with tokens and the server's address, or with an error; nothing is read
from the connection.
"""

import asyncio
import contextlib
import logging
import os
import pwd
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec

from fairlead.control.people.tokens import Tokens
from fairlead.model.errors import FairleadError, Refused

logger = logging.getLogger("fairlead.api")
_PEER = struct.Struct("3i")
_SECONDS = 5.0


class SignInAnswer(msgspec.Struct, rename="camel", omit_defaults=True):
    url: str = ""
    #: File with the server's certificate; empty without TLS.
    certificate: str = ""
    username: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expires_in: int = 0
    error: str = ""


class MachineSocket:
    """`sign_in` gives the name and the tokens of the user of an account."""

    def __init__(self, path: str, url: str, certificate: str, sign_in: Callable[[str], tuple[str, Tokens]]) -> None:
        self._path = path
        self._url = url
        self._certificate = certificate
        self._sign_in = sign_in
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen; every account of the machine may connect. A socket that a killed server left behind is replaced."""
        try:
            self._make_folder()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            self._server = await asyncio.start_unix_server(self._answer, self._path)
            os.chmod(self._path, 0o666)  # noqa: S103 - every account may connect, and the kernel says which it is
        except OSError as error:
            raise Refused(f"Cannot listen on the machine socket {self._path}: {error.strerror}") from error

    def _make_folder(self) -> None:
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            os.mkdir(folder)
            os.chmod(folder, 0o755)  # noqa: S103 - whatever the server's umask is, people must get to the socket
        for place in [folder, *map(str, Path(folder).parents)]:
            if not os.stat(place).st_mode & stat.S_IXOTH:
                raise Refused(
                    f"Nobody could sign in at the machine socket {self._path}: the folder {place} is closed to other"
                    f" accounts. Open it (chmod o+x {place}), or choose another path for --machine-socket"
                )

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                writer.write(msgspec.json.encode(self._make_answer(writer.get_extra_info("socket"))))
                await writer.drain()
        writer.close()

    def _make_answer(self, connection: socket.socket) -> SignInAnswer:
        _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        try:
            account = pwd.getpwuid(uid).pw_name
        except KeyError:
            return SignInAnswer(error=f"This machine has no account with the id {uid}")
        try:
            name, tokens = self._sign_in(account)
        except FairleadError as error:
            logger.warning("Sign-in of the account %s failed: %s", account, error)
            return SignInAnswer(error=error.message)
        return SignInAnswer(
            url=self._url,
            certificate=self._certificate,
            username=name,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_in=tokens.expires_in,
        )
