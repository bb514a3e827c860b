"""Addresses, path segments and queries, and which certificates are trusted: what is computed before a request."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairlead.client.errors import ClientError

#: The type of query parameters; lists are joined by commas, None is omitted.
QueryValue = str | int | bool | Sequence[str] | None

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Address(NamedTuple):
    """The address of a server. `prefix` is the path that it serves below, usually empty."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class Trust(NamedTuple):
    """Which certificates are trusted: those of an authority or of the machine's authorities, or a single one."""

    authority_file: str | None = None
    certificate_file: str | None = None


#: Trust the authorities of this machine.
MACHINES_OWN = Trust()


def read_address(url: str) -> Address:
    """Parse a URL; the default scheme is http."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "http", url.strip()
    if scheme not in _DEFAULT_PORTS:
        raise ClientError(f"'{url}' is not a server address: it must start with http:// or https://.")
    authority, _, path = rest.partition("/")
    host, port = _split_authority(authority.rpartition("@")[2], _DEFAULT_PORTS[scheme], url)
    return Address(scheme, host, port, f"/{path}".rstrip("/"))


def _split_authority(authority: str, default_port: int, url: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, _, after = authority[1:].partition("]")
        port = after.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
    if not host or not (port.isdecimal() or port == ""):
        raise ClientError(f"'{url}' is not a server address.")
    return host, int(port) if port else default_port


def quote(text: str) -> str:
    """Percent-encode a path segment or a query value."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def render_query(query: Mapping[str, QueryValue]) -> str:
    """The query part of a URL; commas inside list items are encoded, commas between items are not."""
    parts = []
    for name, value in query.items():
        if value is None or value == [] or value == ():
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str | int):
            text = quote(str(value))
        else:
            text = ",".join(quote(item) for item in value)
        parts.append(f"{name}={text}")
    return "?" + "&".join(parts) if parts else ""
