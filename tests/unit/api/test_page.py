"""The page's files at /ui/: which file answers, in which encoding, how long it is kept, and what it may load."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.api.http.errors import HttpError
from fairlead.api.http.operation import Call
from fairlead.api.http.routing import Router
from fairlead.api.page import page_operations


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "assets").mkdir(parents=True)
    for name in ("index.html", "assets/app-1234.js"):
        for suffix in ("", ".br", ".gz"):
            (folder / f"{name}{suffix}").write_text(name + suffix)
    (tmp_path / "secret").write_text("secret")
    return folder


def get(folder: Path, path: str, encodings: str = "") -> Response:
    headers = [(b"accept-encoding", encodings.encode())]
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}
    operation, values = Router(page_operations(folder)).find("GET", path)
    call = Call(cast(Any, None), operation, Request(scope), "")
    call.path = values
    return asyncio.run(cast(Any, operation.run(call)))


@pytest.mark.parametrize("path", ["/ui/", "/ui/workloads", "/ui/workloads/1234/logs", "/ui/../secret"])
def test_every_path_of_the_page_shows_the_page(built: Path, path: str) -> None:
    found = cast(Any, get(built, path))
    assert (found.status_code, found.path) == (200, str(built / "index.html"))
    assert found.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("encodings", "want_suffix", "want_encoding"),
    [
        ("", "", None),
        ("gzip, deflate, br", ".br", "br"),
        ("gzip;q=1.0", ".gz", "gzip"),
        ("identity", "", None),
        ("br;q=0, GZIP;q=0.5", ".gz", "gzip"),
        ("br; q=0.0, gzip;q=0", "", None),
    ],
)
def test_files_come_in_the_best_encoding(
    built: Path, encodings: str, want_suffix: str, want_encoding: str | None
) -> None:
    found = cast(Any, get(built, "/ui/assets/app-1234.js", encodings))
    assert found.path == str(built / f"assets/app-1234.js{want_suffix}")
    assert found.headers.get("content-encoding") == want_encoding
    assert found.headers["content-type"].startswith("text/javascript")
    assert found.headers["vary"] == "accept-encoding"
    assert "immutable" in found.headers["cache-control"]


@pytest.mark.parametrize("path", ["/ui/assets/gone.js", "/ui/assets/../../secret"])
def test_a_file_that_is_not_there_is_not_the_page(built: Path, path: str) -> None:
    with pytest.raises(HttpError) as raised:
        get(built, path)
    assert raised.value.status == 404


def test_the_page_runs_its_own_scripts_only(built: Path) -> None:
    policy = get(built, "/ui/").headers["content-security-policy"]
    allowed = {word for part in policy.split(";") for word in part.split()[1:]}
    assert policy.startswith("default-src 'none';")
    assert allowed == {"'none'", "'self'", "data:"}


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_short_addresses_lead_to_the_page(built: Path, path: str) -> None:
    found = get(built, path)
    assert (found.status_code, found.headers["location"]) == (307, "/ui/")


def test_without_a_page_it_says_how_to_build_it(tmp_path: Path) -> None:
    found = get(tmp_path / "absent", "/ui/workloads")
    assert found.status_code == 200
    assert b"fairlead ui" in found.body
    assert found.headers["content-security-policy"].startswith("default-src 'none';")
