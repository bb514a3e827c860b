"""The documentation's files at /docs: what is found, what is not, and what a page may load."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.api.documentation import documentation_operations
from fairlead.api.http.errors import HttpError
from fairlead.api.http.operation import Call
from fairlead.api.http.routing import Router


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "guide").mkdir(parents=True)
    (site / "index.html").write_text("front")
    (site / "guide" / "index.html").write_text("guide")
    (site / "llms.txt").write_text("pages")
    (tmp_path / "secret").write_text("secret")
    return site


def get(site: Path, path: str) -> Response:
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    operation, values = Router(documentation_operations(site)).find("GET", path)
    call = Call(cast(Any, None), operation, Request(scope), "")
    call.path = values
    return asyncio.run(cast(Any, operation.run(call)))


@pytest.mark.parametrize(
    ("path", "want_file"),
    [("/docs/", "index.html"), ("/docs/guide/", "guide/index.html"), ("/docs/llms.txt", "llms.txt")],
)
def test_found(site: Path, path: str, want_file: str) -> None:
    found = cast(Any, get(site, path))
    assert (found.status_code, found.path) == (200, str(site / want_file))


@pytest.mark.parametrize(("path", "want_place"), [("/docs", "/docs/"), ("/docs/guide", "/docs/guide/")])
def test_folders_end_with_a_slash(site: Path, path: str, want_place: str) -> None:
    found = get(site, path)
    assert (found.status_code, found.headers["location"]) == (307, want_place)


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/nothing/", "/docs/../secret", "/docs//secret", "/docs/a\0b"])
def test_not_found(site: Path, path: str) -> None:
    with pytest.raises(HttpError) as raised:
        get(site, path)
    assert raised.value.status == 404


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    policy = get(site, "/docs/").headers["content-security-policy"]
    allowed = {word for part in policy.split(";") for word in part.split()[1:]}
    assert policy.startswith("default-src 'none';")
    assert allowed == {"'none'", "'self'", "'unsafe-inline'", "data:"}


def test_without_a_site_the_front_page_says_how_to_build_it(tmp_path: Path) -> None:
    found = get(tmp_path / "absent", "/docs/")
    assert found.status_code == 200
    assert b"make docs" in found.body
    assert found.headers["content-security-policy"].startswith("default-src 'none';")
    with pytest.raises(HttpError):
        get(tmp_path / "absent", "/docs/guide/")
