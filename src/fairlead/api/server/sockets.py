"""The listening sockets of a server and their URLs. Called by `app` only."""

import ipaddress
import socket
import ssl
from collections.abc import Collection

from fairlead.model.errors import Refused


def listen(
    host: str, wanted: int | None, default: int, *, is_secured: bool, reserved: Collection[int] = ()
) -> socket.socket:
    """A listening socket on the given port, else on the default port, or on any free one if that is taken.

    Beyond loopback it needs TLS or --insecure. `reserved` are ports that were kept for this server while it was down.
    """
    if not is_loopback(host) and not is_secured:
        raise Refused(
            f"Listening on {host} without TLS would expose tokens: give --tls-certificate and "
            "--tls-key, or --insecure if a proxy in front of it uses TLS"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = (default, 0) if wanted is None else (wanted,)
    for port in ports:
        # asyncio sends small answers without delay only if the socket names its protocol. Otherwise every request but
        # the first on a connection is answered 40 ms late.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if port in reserved:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind((host, port))
            # Another server that starts at the same time may have bound it too, and listened first.
            sock.listen(1024)
        except OSError as error:
            sock.close()
            if port == ports[-1]:
                raise Refused(f"Cannot listen on port {port} of {host}: {error.strerror}") from error
            continue
        return sock
    raise Refused(f"Cannot listen on any port of {host}")


def reserve(listening: socket.socket) -> socket.socket:
    """A socket that is bound to the same port and does not listen, for another process to keep.

    As long as it is open, only processes of this user that ask for it can listen there. Clients are refused at once
    while nobody does; a kept socket that listens would let them wait.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved = socket.socket(listening.family, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # Connections that ended a moment ago still count as users of the port, unless this asks for their addresses too.
    # It must not go on asking: whoever asks the same could listen there.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(listening.getsockname())
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return reserved


def check_certificate(certificate: str, key: str) -> None:
    """Raise Refused if there is a certificate and it cannot be loaded."""
    if not certificate:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key or None)
    except OSError as error:
        files = " and ".join(filter(None, (certificate, key)))
        raise Refused(f"The certificate cannot be loaded from {files}: {error}") from error


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_of(sock: socket.socket, *, is_tls: bool) -> str:
    host, port = sock.getsockname()[:2]
    scheme = "https" if is_tls else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
