"""TLS for the SDK's connections; imported by `connection` if an address starts with https."""

import socket
import ssl

from fairlead.client.connection import Trust
from fairlead.client.errors import Unreachable


def wrap(connected: socket.socket, host: str, trust: Trust) -> socket.socket:
    """Wrap the connection in TLS and check the server's certificate."""
    try:
        context = ssl.create_default_context(cafile=trust.certificate_file or trust.authority_file)
        if trust.certificate_file:
            # Exactly this certificate is trusted, whatever its names and its issuer are.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.check_hostname = False
        return context.wrap_socket(connected, server_hostname=host)
    except OSError as error:
        connected.close()
        raise Unreachable(f"No secure connection to {host}: {error}.") from error
