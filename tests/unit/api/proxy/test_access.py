"""Which headers of a request a workload gets."""

from types import SimpleNamespace
from typing import cast

from fairlead.api.proxy.access import UrlGate
from fairlead.api.proxy.messages import read_request
from fairlead.control.people.authentication import Authenticator
from fairlead.control.serving.urls import Route, UrlLocation, UrlRegistry, UrlSettings
from fairlead.model.records.people import Caller

ROUTE = Route(workload_id="w", project_id="1", owner="workload w", location=UrlLocation("w.localhost", "/x"), port=80)


def seen(*lines: str) -> dict[bytes, bytes]:
    gate = UrlGate(
        cast(Authenticator, SimpleNamespace(issuer="us")),
        cast(UrlRegistry, SimpleNamespace(settings=UrlSettings())),
        lambda: 0,
    )
    head = "\r\n".join(["POST /x HTTP/1.1", "Host: w.localhost", *lines, "", ""]).encode()
    return dict(gate.cleaned_request(read_request(head), ROUTE, Caller("ada", "1"), "10.0.0.9"))


def test_a_client_cannot_remove_what_the_proxy_says_of_it() -> None:
    ours = {
        b"x-forwarded-user": b"ada",
        b"x-forwarded-for": b"10.0.0.9",
        b"x-forwarded-host": b"w.localhost",
        b"x-forwarded-proto": b"http",
        b"x-forwarded-prefix": b"/x",
    }
    names = ", ".join(name.decode() for name in ours)
    headers = seen(f"Connection: {names}, x-own", "X-Forwarded-User: root", "X-Own: 1", "X-Other: 2")
    assert headers == {b"host": b"w.localhost", b"x-other": b"2", **ours}


def test_a_client_cannot_remove_what_ends_a_body() -> None:
    headers = seen("Connection: host, content-length", "Content-Length: 3")
    assert (headers[b"host"], headers[b"content-length"]) == (b"w.localhost", b"3")
