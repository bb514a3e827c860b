"""TLS for the SDK's connections; imported by `channel` if an address starts with https."""

import socket
import ssl

from fairlead.client.access.urls import Trust
from fairlead.client.errors import Unreachable

#: OpenSSL's numbers for certificates whose issuer is not known: none, self-signed, self-signed in the chain, first one.
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})


def make_context(trust: Trust) -> ssl.SSLContext:
    """How a server's certificate is checked; raises Unreachable if a file of certificates cannot be read."""
    try:
        context = ssl.create_default_context(cafile=trust.certificate_file or trust.authority_file)
    except OSError as error:
        file = trust.certificate_file or trust.authority_file
        raise Unreachable(f"No secure connection: {file} is not a readable file of certificates ({error}).") from error
    if trust.certificate_file:
        # Exactly this certificate is trusted, whatever its names and its issuer are.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False
    return context


def wrap(connected: socket.socket, host: str, trust: Trust) -> socket.socket:
    """Wrap the connection in TLS and check the server's certificate."""
    try:
        return make_context(trust).wrap_socket(connected, server_hostname=host)
    except (OSError, Unreachable) as error:
        connected.close()
        if isinstance(error, Unreachable):
            raise
        raise Unreachable(f"No secure connection to {host}: {error}.{_advise(error)}") from error


def _advise(error: OSError) -> str:
    """What to do about a certificate of an authority that this machine does not know."""
    if not isinstance(error, ssl.SSLCertVerificationError) or error.verify_code not in _UNKNOWN_AUTHORITY:
        return ""
    return " If you trust the server, store its authority's certificate and run `fairlead config set ca-file FILE`."
