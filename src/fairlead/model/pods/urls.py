"""The URLs of workloads: the types that engines and the API share, and the paths that the server reserves.

`control/serving/urls.py` assigns URLs. The proxy and the access endpoint serve these paths, and an engine that creates
Ingress objects points them there.
"""

import re

import msgspec

#: The path below a URL at which a one-time link signs a user in.
SIGN_IN = "/.fairlead/sign-in"
#: The path of the API at which ingress controllers ask whether a request may pass; the query `url` names the URL.
ACCESS = "/url-access"
#: The headers in which they describe the original request.
DESCRIBING = (
    *("x-original-url", "x-original-method"),
    *("x-forwarded-uri", "x-forwarded-host", "x-forwarded-method"),
    # `Upgrade` is a hop-by-hop header, which controllers do not forward; this header comes with it.
    "sec-websocket-key",
)
#: The headers that its response replaces; one that it leaves out must be removed from the request.
ANSWERED = ("Authorization", "Cookie", "X-Forwarded-User", "X-Forwarded-Prefix")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
#: The last label of a host name is not a number: that would be an address.
_HOST = re.compile(rf"(?:{_LABEL}\.)*(?=[^.]*[a-z]){_LABEL}")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


class UrlRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a workload: host name, path prefix, and the port behind it."""

    host: str
    prefix: str = ""
    port: int
    is_grpc: bool = False
    is_public: bool = False


class IngressSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How Ingress objects are created, if the operator enables them."""

    ingress_class: str
    #: The domain whose hosts are ours; hosts that users choose elsewhere could belong to anybody.
    domain: str
    #: The name by which the ingress controller reaches this server, and where its API and its proxy listen.
    server: str
    port: int
    proxy_port: int
    #: Whether the server speaks TLS there.
    is_tls: bool = False
    #: Whether the ingress controller serves TLS.
    has_certificate: bool = False

    def can_expose(self, url: UrlRoute) -> bool:
        """Whether an Ingress may expose it: its host is ours, and all controllers read its path in the same way."""
        is_ours = url.host == self.domain or url.host.endswith(f".{self.domain}")
        return is_ours and is_host(url.host) and _PREFIX.fullmatch(url.prefix) is not None


def is_host(name: str) -> bool:
    return len(name) <= 253 and _HOST.fullmatch(name) is not None
