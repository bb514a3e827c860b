"""TLS for the SDK's connections; loaded by `connection` when an address begins with https."""

import socket
import ssl

from fairlead.client.connection import Trust
from fairlead.client.errors import Unreachable


def wrap(connected: socket.socket, host: str, trust: Trust) -> socket.socket:
    """The connection inside TLS, the server's certificate checked."""
    try:
        context = ssl.create_default_context(cafile=trust.certificate_file or trust.authority_file)
        if trust.certificate_file:
            # It is this very one, whatever names stand in it and whoever signed it.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.check_hostname = False
        return context.wrap_socket(connected, server_hostname=host)
    except OSError as error:
        connected.close()
        raise Unreachable(f"No safe connection to {host}: {error}.") from error
