"""The HTTP proxy on the way to the API server: which one, and the tunnel through it.

As with kubectl: `proxy-url` of the kubeconfig, else HTTPS_PROXY unless NO_PROXY names the server. `connection.py` opens
connections.
"""

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from fairlead.model.errors import Refused

_PORTS = {"http": 80, "https": 443}


class HttpProxy(msgspec.Struct, frozen=True):
    host: str
    port: int
    is_tls: bool = False
    #: Its own header, from the user name and password in its URL; usually empty.
    authorization: str = ""


def read_proxy(url: str, where: str) -> HttpProxy:
    """`where` says who names it."""
    text = url if "://" in url else f"http://{url}"
    try:
        address = urlsplit(text)
        port = address.port or _PORTS.get(address.scheme, 0)
    except ValueError as error:
        raise Refused(f"{where}: {url!r} is not a valid URL of a proxy: {error}") from error
    if address.scheme not in _PORTS or not address.hostname:
        raise Refused(
            f"{where}: {url!r} is not a proxy that Fairlead can use; give http://HOST:PORT or https://HOST:PORT"
        )
    login = ""
    if address.username is not None:
        credentials = f"{unquote(address.username)}:{unquote(address.password or '')}"
        login = "Basic " + base64.b64encode(credentials.encode()).decode()
    return HttpProxy(address.hostname, port, address.scheme == "https", login)


def choose_proxy(host: str, port: int, is_tls: bool, environment: Mapping[str, str]) -> HttpProxy | None:
    """What the environment says for this server; a server on this machine is reached directly."""

    def read(name: str) -> str:
        return environment.get(name, "") or environment.get(name.lower(), "")

    url = read("HTTPS_PROXY") if is_tls else ""
    if not url or _is_local(host) or is_exempt(host, port, read("NO_PROXY")):
        return None
    return read_proxy(url, "HTTPS_PROXY")


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def is_exempt(host: str, port: int, listed: str) -> bool:
    """Whether the list has the host, a domain above it, or its network; `HOST:PORT` exempts one port."""
    address = _address(host)
    for entry in filter(None, (part.strip().lower() for part in listed.split(","))):
        name, separator, wanted = entry.rpartition(":")
        if separator and wanted.isdecimal() and (":" not in name or name.startswith("[")):
            if int(wanted) != port:
                continue
            entry = name.strip("[]")
        if entry == "*" or entry == host:
            return True
        if address is not None:
            if _has_address(entry, address):
                return True
        elif host.endswith("." + entry.removeprefix("*").removeprefix(".")):
            return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _has_address(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


async def open_tunnel(
    proxy: HttpProxy, host: str, port: int, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection through the proxy to that address; raises OSError if the proxy does not open one."""
    tls = ssl.create_default_context() if proxy.is_tls else None
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port, ssl=tls, limit=limit)
    try:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", "User-Agent: fairlead"]
        if proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.transport.abort()
        raise ConnectionResetError(f"the proxy {proxy.host}:{proxy.port} closed the connection") from error
    except BaseException:
        writer.transport.abort()
        raise
    if answer.split(" ")[1:2] != ["200"]:
        writer.transport.abort()
        raise ConnectionRefusedError(f"the proxy {proxy.host}:{proxy.port} does not connect to {target}: {answer}")
    return reader, writer
