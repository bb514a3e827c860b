"""Sign-on with Dex, a real provider of identities: a browser, a terminal, a script, and groups that change there.

It needs no cluster. `make test-operators` runs it because Dex is built from its Go module, which takes minutes once.
"""

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests

from deploy.cluster import build
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until

pytestmark = pytest.mark.operators
ANN, PASSWORD = "ann@example.com", "correct horse"
SECRET = "dex knows it too"
_ANN: dict[str, Any] = {"email": ANN, "password": PASSWORD, "id": "ann-1", "groups": ["lab"]}


class Dex:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "dex.json"
        self.log = folder / "dex.txt"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.issuer = f"http://{self.address}/dex"
        self.people: list[dict[str, Any]] = [_ANN]
        self.clients: list[dict[str, Any]] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, server_url: str) -> None:
        build.build(("dex",))
        redirects = [f"{server_url}/sign-on/callback", "/dex/device/callback"]
        self.clients = [
            {"id": "fairlead", "name": "Fairlead", "secret": SECRET, "redirectURIs": redirects},
            {"id": "other", "name": "Another", "secret": SECRET, "redirectURIs": redirects},
        ]
        self._write()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(build.place_of("dex")), str(self.file)], stderr=log)
        until(self._answers, "Dex")

    def change(self, groups: list[str] | None) -> None:
        """Give Ann other groups, or remove her."""
        self.people = [{**_ANN, "groups": groups}] if groups is not None else []
        self._write()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)

    def _write(self) -> None:
        config = {"issuer": self.issuer, "address": self.address}
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps({**config, "clients": self.clients, "people": self.people}))
        draft.replace(self.file)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.issuer}/.well-known/openid-configuration", timeout=5).ok
        except requests.ConnectionError:
            return False


class Browser:
    """Follows redirects and fills in Dex's form."""

    def __init__(self) -> None:
        self.session = requests.Session()

    def log_in_at(self, url: str) -> requests.Response:
        page = self.session.get(url, timeout=30)
        assert page.ok, page.text
        action = re.search(r'<form method="post" action="([^"]+)"', page.text)
        assert action, page.text
        target = urljoin(page.url, action[1].replace("&amp;", "&"))
        return self.session.post(target, {"login": ANN, "password": PASSWORD}, timeout=30)


@pytest.fixture(scope="module")
def dex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dex, Server]]:
    folder = tmp_path_factory.mktemp("dex")
    (folder / "secret").write_text(SECRET)
    dex = Dex(folder)
    flags = ("--oidc-issuer", dex.issuer, "--oidc-client-id", "fairlead")
    more = ("--oidc-client-secret-file", str(folder / "secret"), "--oidc-domain", "example.com")
    # The provider is away while the server starts.
    server = Server(folder / "data", *flags, *more).start()
    try:
        server.log_in()
        dex.start(server.url)
        yield dex, server
    finally:
        dex.stop()
        server.close()


def groups_of(server: Server) -> list[str]:
    users = server.call("GET", "/api/v1/users").json
    return next((list(user["groups"]) for user in users if user["username"] == ANN), [])


def test_a_browser_signs_on(dex: tuple[Dex, Server]) -> None:
    _, server = dex
    browser = Browser()
    page = browser.log_in_at(f"{server.url}/sign-on/start?page=/ui/workloads")
    assert page.url == f"{server.url}/ui/workloads", page.text
    who = browser.session.get(f"{server.url}/api/v1/session", timeout=30).json()
    assert who["username"] == ANN
    assert groups_of(server) == ["lab"]


def test_groups_follow_the_provider_and_a_removed_person_is_signed_out(dex: tuple[Dex, Server]) -> None:
    """Within a minute, while the session is used."""
    provider, server = dex
    browser = Browser()
    browser.log_in_at(f"{server.url}/sign-on/start")

    def status() -> int:
        return browser.session.get(f"{server.url}/api/v1/me/sessions", timeout=30).status_code

    assert status() == 200
    try:
        provider.change(["lab", "night-shift"])
        until(lambda: status() == 200 and groups_of(server) == ["lab", "night-shift"], "new groups", 75)
        provider.change(None)
        until(lambda: status() == 401, "the end of the session", 75)
    finally:
        provider.change(["lab"])


def test_the_command_line_signs_on_with_a_code(dex: tuple[Dex, Server], tmp_path: Path) -> None:
    _, server = dex
    caller = Caller(tmp_path / "none")
    login = caller.start("login", "--sso", "--url", server.url)
    try:
        assert login.stderr is not None
        address = login.stderr.readline().split()[-1]
        code = login.stderr.readline().split()[-1]
        assert parse_qs(urlsplit(address).query)["user_code"] == [code]
        browser = Browser()
        form = browser.session.get(address, timeout=30)
        action = re.search(r'<form method="POST" action="([^"]+)"', form.text, re.IGNORECASE)
        assert action, form.text
        target = urljoin(form.url, action[1])
        asked = browser.session.post(target, {"user_code": code}, timeout=30, allow_redirects=False)
        done = browser.log_in_at(urljoin(target, asked.headers["location"]))
        assert done.ok, done.text
        _, err = login.communicate(timeout=60)
    finally:
        login.kill()
    assert login.returncode == 0, err
    assert f"as {ANN}" in err
    assert ANN in caller.ok("whoami", FAIRLEAD_URL=server.url)


def test_the_command_line_signs_on_with_a_browser(dex: tuple[Dex, Server], tmp_path: Path) -> None:
    _, server = dex
    caller = Caller(tmp_path / "none")
    login = caller.start("login", "--sso", "--browser", "--url", server.url)
    try:
        assert login.stderr is not None
        address = login.stderr.readline().split()[-1]
        code = login.stderr.readline().split()[-1]
        browser = Browser()
        page = browser.log_in_at(address)
        assert code in page.text
        approval = re.search(r'name="approval" value="([^"]+)"', page.text)
        assert approval, page.text
        done = browser.session.post(f"{server.url}/sign-on/approve", {"approval": approval[1]}, timeout=30)
        assert "You are logged in" in done.text
        _, err = login.communicate(timeout=60)
    finally:
        login.kill()
    assert login.returncode == 0, err
    assert ANN in caller.ok("whoami", FAIRLEAD_URL=server.url)


@pytest.mark.parametrize(("client", "want"), [("fairlead", 200), ("other", 400)])
def test_a_script_exchanges_a_token_that_is_for_this_client(dex: tuple[Dex, Server], client: str, want: int) -> None:
    provider, server = dex
    redirect = f"{server.url}/sign-on/callback"
    query = f"client_id={client}&redirect_uri={redirect}&response_type=code&scope=openid+email+groups&state=x"
    browser = Browser()
    page = browser.log_in_at(f"{provider.issuer}/auth?{query}")
    code = parse_qs(urlsplit(page.url).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect}
    tokens = requests.post(f"{provider.issuer}/token", form, auth=(client, SECRET), timeout=30).json()
    body = {"grantType": "external_token_exchange", "externalToken": tokens["id_token"]}
    answer = requests.post(f"{server.url}/api/v1/token", json=body, timeout=30)
    assert answer.status_code == want, answer.text


def test_dex_is_a_process_of_this_test(dex: tuple[Dex, Server]) -> None:
    """It is the provider itself that answered above, not something in its place."""
    process = dex[0].process
    assert process is not None
    assert os.readlink(f"/proc/{process.pid}/exe") == str(build.place_of("dex"))
