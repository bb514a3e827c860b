"""Sign-on with Keycloak, a second real provider: a browser, a script, groups that change, and a disabled person.

It needs no cluster, but Java. `make test-operators` runs it where Java is installed: Keycloak is downloaded once from
Maven Central.
"""

import hashlib
import html
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from deploy.cluster.build import CACHE
from tests.e2e.server import Server, until
from tests.kubernetes.test_sign_on_dex import ANN, groups_of

pytestmark = pytest.mark.operators
VERSION, DIGEST = "26.0.7", "25353b74613bcf72db67f8addbd88d832c705a69333091a16573d249d665fe21"
URL = f"https://repo1.maven.org/maven2/org/keycloak/keycloak-quarkus-dist/{VERSION}/keycloak-quarkus-dist-{VERSION}.zip"
PASSWORD, SECRET = "correct horse", "keycloak knows it too"
ADMINISTRATOR = ("root", "root of keycloak")
#: As `docs/sign-on.md` advises: no group paths, and no scope `groups`.
_GROUPS = {
    "name": "groups",
    "protocol": "openid-connect",
    "protocolMapper": "oidc-group-membership-mapper",
    "config": {"claim.name": "groups", "full.path": "false", "id.token.claim": "true", "userinfo.token.claim": "true"},
}


def _person(name: str, groups: list[str], *, is_verified: bool = True) -> dict[str, Any]:
    return {
        "username": name,
        "email": f"{name}@example.com",
        "emailVerified": is_verified,
        "enabled": True,
        "firstName": name,
        "lastName": "Lee",
        "groups": groups,
        # Everybody has it unless people are imported: without it, Keycloak gives no lasting refresh tokens.
        "realmRoles": ["offline_access"],
        "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
    }


def _client(id: str, redirect: str) -> dict[str, Any]:
    return {
        "clientId": id,
        "secret": SECRET,
        "redirectUris": [redirect],
        "directAccessGrantsEnabled": True,
        "defaultClientScopes": ["basic", "profile", "email"],
        "optionalClientScopes": ["offline_access"],
        "protocolMappers": [_GROUPS],
    }


class Keycloak:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.port, self.management = (free.getsockname()[1] for free in (one, other))
        self.url = f"http://127.0.0.1:{self.port}"
        self.issuer = f"{self.url}/realms/lab"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, server_url: str) -> None:
        home = self.folder / f"keycloak-{VERSION}"
        with zipfile.ZipFile(_download()) as archive:
            archive.extractall(self.folder)
        clients = [_client(id, f"{server_url}/sign-on/callback") for id in ("fairlead", "other")]
        people = [_person("ann", ["/lab"]), _person("mal", [], is_verified=False)]
        realm = {"realm": "lab", "enabled": True, "sslRequired": "none", "clients": clients, "users": people}
        (home / "data" / "import").mkdir(parents=True)
        groups = [{"name": "lab"}, {"name": "night-shift"}]
        (home / "data" / "import" / "lab.json").write_text(json.dumps({**realm, "groups": groups}))
        environment = {
            **os.environ,
            "KC_BOOTSTRAP_ADMIN_USERNAME": ADMINISTRATOR[0],
            "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMINISTRATOR[1],
            "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
            # It starts once for a few requests: less compiling takes half of the time.
            "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
        }
        listening = (f"--http-port={self.port}", f"--http-management-port={self.management}", "--http-host=127.0.0.1")
        command = ["sh", str(home / "bin" / "kc.sh"), "start-dev", "--import-realm", *listening]
        with open(self.folder / "keycloak.txt", "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        until(self._answers, "Keycloak", 600)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)

    def tokens(self, client: str, name: str = "ann") -> dict[str, Any]:
        form = {"grant_type": "password", "username": name, "password": PASSWORD, "scope": "openid"}
        answer = requests.post(f"{self.issuer}/protocol/openid-connect/token", form, auth=(client, SECRET), timeout=30)
        assert answer.ok, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def administer(self, method: str, path: str, body: Any = None) -> Any:
        """A request to Keycloak's own administration."""
        name, password = ADMINISTRATOR
        form = {"grant_type": "password", "client_id": "admin-cli", "username": name, "password": password}
        got = requests.post(f"{self.url}/realms/master/protocol/openid-connect/token", form, timeout=30).json()
        headers = {"Authorization": f"Bearer {got['access_token']}"}
        answer = requests.request(method, f"{self.url}/admin/realms/lab{path}", json=body, headers=headers, timeout=30)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "keycloak.txt").read_text()
        try:
            return requests.get(f"{self.issuer}/.well-known/openid-configuration", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False


def _download() -> Path:
    """The distribution, in the cache of the machine."""
    place = CACHE / f"keycloak-{VERSION}.zip"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        with urllib.request.urlopen(URL, timeout=60) as answer, open(draft, "wb") as file:
            shutil.copyfileobj(answer, file)
        draft.replace(place)
    with open(place, "rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == DIGEST, f"{place} is not what was published"
    return place


@pytest.fixture(scope="module")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Keycloak, Server]]:
    folder = tmp_path_factory.mktemp("keycloak")
    (folder / "secret").write_text(SECRET)
    keycloak = Keycloak(folder)
    scopes = ("--oidc-scopes", "openid email profile offline_access")
    flags = ("--oidc-issuer", keycloak.issuer, "--oidc-client-id", "fairlead", *scopes)
    server = Server(folder / "data", *flags, "--oidc-client-secret-file", str(folder / "secret")).start()
    try:
        server.log_in()
        keycloak.start(server.url)
        yield keycloak, server
    finally:
        keycloak.stop()
        server.close()


def log_in_at(url: str) -> requests.Session:
    """A browser that follows redirects and fills in Keycloak's form."""
    session = requests.Session()
    page = session.get(url, timeout=60)
    action = re.search(r'<form id="kc-form-login"[^>]* action="([^"]+)"', page.text)
    assert action, page.text
    # The page marks its cookies as secure, which browsers accept on this machine.
    for cookie in session.cookies:
        cookie.secure = False
    done = session.post(html.unescape(action[1]), {"username": "ann", "password": PASSWORD}, timeout=60)
    assert done.ok, done.text
    return session


def test_a_browser_signs_on_and_follows_the_provider(keycloak: tuple[Keycloak, Server]) -> None:
    """Groups, and that a person is disabled, take effect within a minute while the session is used."""
    provider, server = keycloak
    browser = log_in_at(f"{server.url}/sign-on/start")
    assert browser.get(f"{server.url}/api/v1/session", timeout=30).json()["username"] == ANN
    assert groups_of(server) == ["lab"]

    def status() -> int:
        return browser.get(f"{server.url}/api/v1/me/sessions", timeout=30).status_code

    ann = provider.administer("GET", "/users?username=ann&exact=true")[0]["id"]
    night = next(group["id"] for group in provider.administer("GET", "/groups") if group["name"] == "night-shift")
    provider.administer("PUT", f"/users/{ann}/groups/{night}")
    until(lambda: status() == 200 and groups_of(server) == ["lab", "night-shift"], "new groups", 75)
    person = provider.administer("GET", f"/users/{ann}")
    provider.administer("PUT", f"/users/{ann}", {**person, "enabled": False})
    until(lambda: status() == 401, "the end of the session", 75)
    provider.administer("PUT", f"/users/{ann}", person)


@pytest.mark.parametrize(
    ("client", "name", "kind", "want"),
    [
        pytest.param("fairlead", "ann", "id_token", 200, id="its own client"),
        pytest.param("other", "ann", "id_token", 400, id="another client"),
        pytest.param("fairlead", "ann", "access_token", 400, id="a token for Keycloak's account console"),
        pytest.param("fairlead", "mal", "id_token", 400, id="an address that is not verified"),
    ],
)
def test_a_script_exchanges_a_token(
    keycloak: tuple[Keycloak, Server], client: str, name: str, kind: str, want: int
) -> None:
    provider, server = keycloak
    body = {"grantType": "external_token_exchange", "externalToken": provider.tokens(client, name)[kind]}
    answer = requests.post(f"{server.url}/api/v1/token", json=body, timeout=30)
    assert answer.status_code == want, answer.text
