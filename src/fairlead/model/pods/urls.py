"""Workloads' URLs in the words that engines and the API share: where one is, and which paths are the server's. Pure.

`control/serving/urls.py` says where URLs are; the proxy and the access endpoint answer at these paths, and an engine
that makes ways into its cluster leads them there.
"""

import re

import msgspec

#: Below a URL: where a one-time link signs its follower in.
SIGN_IN = "/.fairlead/sign-in"
#: On the API's port: where ingress controllers ask whether a request may pass; the query `url` names the URL it is for.
ACCESS = "/url-access"
#: By which of its headers they describe the request that they were sent.
DESCRIBING = (
    *("x-original-url", "x-original-method"),
    *("x-forwarded-uri", "x-forwarded-host", "x-forwarded-method"),
    # That another protocol is asked for is said to the next server only; this, which comes with it, to all.
    "sec-websocket-key",
)
#: What its answer says in the place of what the caller sent; a header that it leaves out is to be left out.
ANSWERED = ("Authorization", "Cookie", "X-Forwarded-User", "X-Forwarded-Prefix")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
#: The last label of a name is no number: that would be an address.
_HOST = re.compile(rf"(?:{_LABEL}\.)*(?=[^.]*[a-z]){_LABEL}")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


class UrlRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of a workload: a host's name and the beginning of the path, and the port behind it."""

    host: str
    prefix: str = ""
    port: int
    is_grpc: bool = False
    is_public: bool = False


class IngressSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How Ingress objects are made, where an operator wants them."""

    ingress_class: str
    #: Below it hosts are ours; what users choose elsewhere could be anybody's.
    domain: str
    #: The name by which the ingress controller reaches this server, and where its API and its proxy listen.
    server: str
    port: int
    proxy_port: int
    #: Whether the server speaks TLS there.
    is_tls: bool = False
    #: Whether the controller does, to those who come.
    has_certificate: bool = False

    def can_expose(self, url: UrlRoute) -> bool:
        """Whether an Ingress may lead to it: its host is ours, and its path is read by everybody in the same way."""
        is_ours = url.host == self.domain or url.host.endswith(f".{self.domain}")
        return is_ours and is_host(url.host) and _PREFIX.fullmatch(url.prefix) is not None


def is_host(name: str) -> bool:
    return len(name) <= 253 and _HOST.fullmatch(name) is not None
