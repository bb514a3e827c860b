"""The server's certificate, from PEM files that cert-manager or an administrator renews while the server runs.

`app` loads it for the API, `proxy/server.py` for the URLs of workloads.
"""

import logging
import os
import ssl

log = logging.getLogger(__name__)


class ServerCertificate:
    """A certificate whose files are read again if they have changed when a client connects."""

    def __init__(self, certificate: str, key: str = "") -> None:
        self._files = (certificate, key or None)
        self._contexts: list[ssl.SSLContext] = []
        self._seen = self._stamp()

    def make_context(self) -> ssl.SSLContext:
        """A context for a listener. If you replace its `sni_callback`, call `refresh` there."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._files)
        context.sni_callback = lambda *_: self.refresh()
        self._contexts.append(context)
        return context

    def refresh(self) -> None:
        """Load the files again if they have changed; the next connection gets the new certificate."""
        stamp = self._stamp()
        if stamp in (None, self._seen):
            return
        try:
            # Tried in a separate context first, because a certificate and a key that do not match would break this one.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            for context in self._contexts:
                context.load_cert_chain(*self._files)
        except OSError as error:
            log.warning("The renewed certificate in %s cannot be loaded: %s", self._files[0], error)
            return
        self._seen = stamp
        log.info("Loaded the renewed certificate from %s", self._files[0])

    def _stamp(self) -> tuple[tuple[int, int], ...] | None:
        try:
            stats = [os.stat(file) for file in self._files if file]
        except OSError:
            return None
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)


def load_tls(certificate: str, key: str) -> ssl.SSLContext | None:
    """The context of a listener; None without a certificate."""
    return ServerCertificate(certificate, key).make_context() if certificate else None
