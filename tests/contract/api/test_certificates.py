"""The server's certificate while it is renewed, and the trust that servers of an installation have in each other."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deploy.cluster.certificates import make_authority, sign
from fairlead.api.http.certificates import load_tls
from fairlead.api.http.forward import make_peer_context

DEADLINE = 60.0


def renew(folder: Path) -> bytes:
    """A certificate of a company's authority in `tls.crt` without the authority; returns it as it is sent."""
    for name in ("tls.crt", "tls.key"):
        (folder / name).unlink(missing_ok=True)
    sign(folder, make_authority(), "tls", ["fairlead.tools.svc"])
    return ssl.PEM_cert_to_DER_cert((folder / "tls.crt").read_text())


async def fetch_certificate(port: int, trust: ssl.SSLContext | None = None) -> bytes:
    context = trust
    if context is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opened = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="fairlead.tools.svc")
    try:
        certificate: bytes = opened[1].get_extra_info("ssl_object").getpeercert(binary_form=True)
        return certificate
    finally:
        opened[1].close()
        with contextlib.suppress(OSError):
            await opened[1].wait_closed()


@contextlib.asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    tls = load_tls(str(folder / "tls.crt"), str(folder / "tls.key"))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with asyncio.timeout(DEADLINE):
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    async def ask() -> None:
        first = renew(tmp_path)
        async with listening(tmp_path) as port:
            assert await fetch_certificate(port) == first
            second = renew(tmp_path)
            # The connection that finds the new files has begun with the old one.
            await fetch_certificate(port)
            assert await fetch_certificate(port) == second

    asyncio.run(ask())


def test_a_certificate_that_does_not_fit_its_key_is_not_used(tmp_path: Path) -> None:
    async def ask() -> None:
        first = renew(tmp_path)
        key = (tmp_path / "tls.key").read_bytes()
        async with listening(tmp_path) as port:
            second = renew(tmp_path)
            right = (tmp_path / "tls.key").read_bytes()
            (tmp_path / "tls.key").write_bytes(key)
            for _ in range(3):
                assert await fetch_certificate(port) == first
            (tmp_path / "tls.key").write_bytes(right)
            await fetch_certificate(port)
            assert await fetch_certificate(port) == second

    asyncio.run(ask())


def test_servers_trust_the_certificate_that_they_share_and_no_other(tmp_path: Path) -> None:
    async def ask() -> None:
        shared = renew(tmp_path)
        async with listening(tmp_path) as port:
            assert await fetch_certificate(port, make_peer_context(str(tmp_path / "tls.crt"))) == shared
            other = tmp_path / "other"
            other.mkdir()
            renew(other)
            with pytest.raises(ssl.SSLCertVerificationError):
                await fetch_certificate(port, make_peer_context(str(other / "tls.crt")))

    asyncio.run(ask())
