"""TLS for the SDK's connections; loaded by `connection` when an address begins with https."""

import socket
import ssl

from fairlead.client.errors import Unreachable


def wrap(connected: socket.socket, host: str, authority_file: str | None) -> socket.socket:
    """The connection inside TLS, the server's certificate checked against `authority_file` or the machine's own."""
    try:
        context = ssl.create_default_context(cafile=authority_file)
        return context.wrap_socket(connected, server_hostname=host)
    except OSError as error:
        connected.close()
        raise Unreachable(f"No safe connection to {host}: {error}.") from error
