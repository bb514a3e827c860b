"""The way to an API server that asks who we are: credentials that expire and are renewed, and proxies in between.

Servers, proxies and credential plugins are real: TLS on loopback, and programs that a kubeconfig names.
"""

import asyncio
import base64
import contextlib
import datetime
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster.certificates import Authority, make_authority, sign, write_pair
from fairlead.engines.kubernetes.client.api import Api, CredentialsRefused
from fairlead.engines.kubernetes.client.connection import ServerPlace, connect
from fairlead.engines.kubernetes.client.identity import ApiIdentity
from fairlead.engines.kubernetes.client.kubeconfig import Access, load_access
from fairlead.engines.kubernetes.client.websocket import WebSocket
from fairlead.model.errors import Refused

DEADLINE = 60.0
PLUGIN = "client.authentication.k8s.io/v1"


class Listener:
    """A server on loopback whose connections all end with it."""

    def __init__(self) -> None:
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @contextlib.asynccontextmanager
    async def listening(self, context: ssl.SSLContext | None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            ending, self._writers = self._writers, set()
            for writer in ending:
                writer.transport.abort()
            for writer in ending:
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self.serve(reader, writer)
        writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class Gate(Listener):
    """An API server with TLS that answers only those whom it accepts: by token, or by the name on a certificate."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.authority: Authority = make_authority()
        write_pair(folder, "ca", self.authority.certificate, self.authority.key)
        self.sign("server", ["127.0.0.1", "cluster.example"])
        self.accepted: set[str] = set()
        #: Who asked, whether accepted or not, and on how many connections.
        self.asked: list[str] = []
        self.connections = 0

    def sign(self, name: str, hosts: list[str] | None = None) -> None:
        for end in ("crt", "key"):
            (self.folder / f"{name}.{end}").unlink(missing_ok=True)
        sign(self.folder, self.authority, name, hosts or [])

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.folder / "ca.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        async with self.listening(context):
            yield

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        names = [pair[0] for pair in (writer.get_extra_info("peercert") or {}).get("subject", ())]
        certified = dict(names).get("commonName", "")
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            sent = [line.partition(": ")[2] for line in head.split("\r\n") if line.startswith("Authorization: ")]
            who = sent[0] if sent else certified
            self.asked.append(who)
            status = "200 OK" if who in self.accepted else "401 Unauthorized"
            if "Upgrade: websocket" in head and who in self.accepted:
                status = "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket"
            body = b'{"kind": "Status", "message": "Unauthorized"}' if status.startswith("401") else b"{}"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


class Way(Listener):
    """A proxy of HTTP that opens tunnels, to wherever they lead to."""

    def __init__(self, login: str = "", context: ssl.SSLContext | None = None, status: int = 200) -> None:
        super().__init__()
        self._login = login
        self._context = context
        self._status = status
        #: What tunnels were asked for, and where they all lead.
        self.targets: list[str] = []
        self.leads_to = 0

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self.listening(self._context):
            yield

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.targets.append(head.split(" ")[1])
        is_welcome = not self._login or f"Proxy-Authorization: {self._login}\r\n" in head
        writer.write(f"HTTP/1.1 {self._status if is_welcome else 407} X\r\n\r\n".encode())
        if self._status == 200 and is_welcome:
            there, back = await asyncio.open_connection("127.0.0.1", self.leads_to)
            self._writers.add(back)
            await asyncio.gather(pass_on(reader, back), pass_on(there, writer))


async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(65_536):
            target.write(piece)
            await target.drain()
    target.close()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def write_kubeconfig(gate: Gate, user: dict[str, Any], server: str = "", **cluster: Any) -> Path:
    path = gate.folder / "kubeconfig"
    where = {"server": server or f"https://127.0.0.1:{gate.port}", "certificate-authority": "ca.crt", **cluster}
    written = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": where}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(json.dumps(written))
    return path


def open_api(path: Path, environment: dict[str, str] | None = None, patience: float = DEADLINE) -> Api:
    return Api(load_access(str(path), environment or {}), patience)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(DEADLINE):
            await test()

    asyncio.run(within())


def write_plugin(gate: Gate, **more: Any) -> dict[str, Any]:
    """A program that prints what is in `credential.json`, and notes each of its runs with what it was told."""
    program = gate.folder / "plugin.py"
    program.write_text(
        "import os, pathlib, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "with open(here / 'runs', 'a') as file: file.write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
        "sys.stdout.write((here / 'credential.json').read_text())\n"
    )
    return {"apiVersion": PLUGIN, "command": sys.executable, "args": [str(program)], **more}


def issue(gate: Gate, seconds: float = 0.0, **status: str) -> None:
    """What the plugin issues next; it expires after these seconds, if any."""
    if seconds:
        expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps({"apiVersion": PLUGIN, "kind": "ExecCredential", "status": status})
    (gate.folder / "credential.json").write_text(text)


def runs_of(gate: Gate) -> list[Any]:
    return [json.loads(line) for line in (gate.folder / "runs").read_text().splitlines()]


def test_a_token_of_a_plugin_is_kept_until_it_is_refused_and_then_issued_again(gate: Gate) -> None:
    async def ask() -> None:
        issue(gate, token="first")
        async with gate.open():
            api = open_api(write_kubeconfig(gate, {"exec": write_plugin(gate)}))
            gate.accepted = {"Bearer first"}
            for _ in range(3):
                await api.get("/x")
            assert len(runs_of(gate)) == 1
            # The first one expires at the server, which says so to whoever uses it.
            gate.accepted = {"Bearer second"}
            issue(gate, token="second")
            api._identity_since = 0.0
            assert await api.get("/x") == b"{}"
            api.close()
        assert gate.asked == ["Bearer first"] * 4 + ["Bearer second"]
        assert len(runs_of(gate)) == 2
        assert gate.connections == 1

    run(ask)


def test_a_plugin_runs_again_before_what_it_issued_expires(gate: Gate) -> None:
    async def ask() -> None:
        # Renewed 10 s early, so this one after 2 s, which is the shortest time.
        issue(gate, seconds=11, token="first")
        gate.accepted = {"Bearer first", "Bearer second"}
        async with gate.open():
            api = open_api(write_kubeconfig(gate, {"exec": write_plugin(gate)}))
            await api.get("/x")
            issue(gate, seconds=3600, token="second")
            while gate.asked[-1] != "Bearer second":
                await api.get("/x")
            await api.get("/x")
            api.close()
        assert len(runs_of(gate)) == 2
        assert set(gate.asked) == {"Bearer first", "Bearer second"}

    run(ask)


def test_a_plugin_issues_certificates_and_gets_facts_about_the_cluster(gate: Gate) -> None:
    async def ask() -> None:
        for name in ("first", "second"):
            gate.sign(name)

        def certify(name: str) -> None:
            files = {"clientCertificateData": f"{name}.crt", "clientKeyData": f"{name}.key"}
            issue(gate, 0.0, **{member: (gate.folder / file).read_text() for member, file in files.items()})

        certify("first")
        gate.accepted = {"first"}
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
        async with gate.open():
            plugin = write_plugin(gate, provideClusterInfo=True)
            api = open_api(write_kubeconfig(gate, {"exec": plugin}, extensions=[extension]))
            await api.get("/x")
            gate.accepted = {"second"}
            certify("second")
            api._identity_since = 0.0
            await api.get("/x")
            api.close()
        assert gate.asked == ["first", "first", "second"]
        told = runs_of(gate)[0]["spec"]
        assert told["interactive"] is False
        assert told["cluster"]["server"] == f"https://127.0.0.1:{gate.port}"
        assert told["cluster"]["config"] == {"audience": "x"}
        authority = base64.b64decode(told["cluster"]["certificate-authority-data"])
        assert authority == (gate.folder / "ca.crt").read_bytes()

    run(ask)


def test_a_watch_and_a_session_renew_refused_credentials_too(gate: Gate) -> None:
    async def ask() -> None:
        issue(gate, token="old")
        gate.accepted = {"Bearer new"}
        async with gate.open():
            for kind in ("watch", "session"):
                issue(gate, token="old")
                api = open_api(write_kubeconfig(gate, {"exec": write_plugin(gate)}))
                await api._identify()
                issue(gate, token="new")
                api._identity_since = 0.0
                if kind == "watch":
                    async with api.stream("/x") as pieces:
                        assert b"".join([piece async for piece in pieces]) == b"{}"
                else:
                    (await WebSocket.open(api, "/x", (), ("v5.channel.k8s.io",))).close()
                api.close()
        assert gate.asked == ["Bearer old", "Bearer new"] * 2

    run(ask)


def test_credentials_that_stay_refused_count_as_a_server_that_is_away(gate: Gate) -> None:
    """Nothing is known about any object then, so nothing must be taken for failed."""

    async def ask() -> None:
        told: list[str] = []
        issue(gate, token="expired")
        async with gate.open():
            path = write_kubeconfig(gate, {"exec": write_plugin(gate)})
            api = open_api(path, patience=0.1)
            api.notify_away = lambda: told.append(api.unreachable_reason)
            for _ in range(3):
                with pytest.raises(CredentialsRefused, match="renew them"):
                    await api.get("/x")
            with pytest.raises(CredentialsRefused):
                async with api.stream("/x"):
                    pass
            # Asked several times, but no program runs for each of them.
            assert len(gate.asked) > 3
            assert len(runs_of(gate)) <= 2
            gate.accepted = {"Bearer expired"}
            await api.get("/x")
            api.close()
        where = f"the cluster's API server at 127.0.0.1:{gate.port} refuses Fairlead"
        assert told == [f"{where}: the credentials of {path} are not accepted (Unauthorized); renew them", ""]

    run(ask)


@pytest.mark.parametrize("renewed", ["token file", "kubeconfig", "client certificate"])
def test_files_that_are_written_anew_are_read_again(gate: Gate, renewed: str) -> None:
    token = gate.folder / "token"

    def write(name: str) -> Path:
        if renewed == "client certificate":
            gate.sign("client")
            gate.sign(name)
            for end in ("crt", "key"):
                (gate.folder / f"{name}.{end}").replace(gate.folder / f"client.{end}")
            return write_kubeconfig(gate, {"client-certificate": "client.crt", "client-key": "client.key"})
        token.write_text(f"{name}\n")
        return write_kubeconfig(gate, {"tokenFile": "token"} if renewed == "token file" else {"token": name})

    async def ask() -> None:
        prefix = "" if renewed == "client certificate" else "Bearer "
        async with gate.open():
            api = open_api(write("first"))
            gate.accepted = {f"{prefix}first"}
            await api.get("/x")
            gate.accepted = {f"{prefix}second"}
            write("second")
            # No minute passes: the refusal tells.
            api._identity_since = 0.0
            await api.get("/x")
            api.close()
        assert [gate.asked[0], gate.asked[-1]] == [f"{prefix}first", f"{prefix}second"]

    run(ask)


def test_credentials_that_cannot_be_renewed_are_used_as_long_as_they_are_accepted(gate: Gate) -> None:
    async def ask() -> None:
        issue(gate, token="good")
        gate.accepted = {"Bearer good"}
        async with gate.open():
            api = open_api(write_kubeconfig(gate, {"exec": write_plugin(gate)}), patience=0.2)
            await api.get("/x")
            (gate.folder / "credential.json").write_text("the cloud is down")
            api._identity_until = 0.0
            await api.get("/x")
            gate.accepted = set()
            api._identity_since = 0.0
            with pytest.raises(
                ConnectionError, match=r"not accepted \(Unauthorized\), and cannot be renewed: the command .* issued no"
            ):
                await api.get("/x")
            api.close()

    run(ask)


def test_another_current_context_does_not_change_who_we_are(gate: Gate) -> None:
    async def ask() -> None:
        gate.accepted = {"Bearer mine"}
        async with gate.open():
            path = write_kubeconfig(gate, {"token": "mine"})
            api = open_api(path)
            await api.get("/x")
            written = json.loads(path.read_text())
            written["current-context"] = "elsewhere"
            written["contexts"].append({"name": "elsewhere", "context": {"cluster": "here", "user": "other"}})
            written["users"].append({"name": "other", "user": {"token": "another"}})
            path.write_text(json.dumps(written))
            api._identity_until = 0.0
            await api.get("/x")
            # Nor does a file that is being written.
            path.write_text("{")
            api._identity_until = 0.0
            await api.get("/x")
            api.close()
        assert set(gate.asked) == {"Bearer mine"}

    run(ask)


@pytest.mark.parametrize(
    ("user", "want"),
    [
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}, "v1alpha1; known are v1"),
        ({"exec": {"apiVersion": PLUGIN, "command": "x", "interactiveMode": "Always"}}, "needs a terminal"),
        ({"auth-provider": {"name": "gcp"}}, "use a credential plugin"),
    ],
    ids=["an old plugin", "a plugin that asks", "no plugin yet"],
)
def test_what_could_never_work_is_refused_at_the_start(gate: Gate, user: dict[str, Any], want: str) -> None:
    with pytest.raises(Refused, match=want):
        load_access(str(write_kubeconfig(gate, user)), {})


@pytest.mark.parametrize(
    ("plugin", "said", "want"),
    [
        ({"command": "no-such-plugin", "installHint": "Install it."}, None, "No such file.*Install it"),
        ({"command": "./plugin", "args": []}, "#!/bin/sh\necho not logged in >&2; exit 3\n", "code 3: not logged in"),
        ({"command": "./plugin", "args": []}, "#!/bin/sh\necho '{}'\n", "issued no credentials"),
        (
            {"command": "./plugin", "args": []},
            '#!/bin/sh\necho \'{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "x"}}\'\n',
            "its apiVersion is client.authentication.k8s.io/v1beta1, not",
        ),
        (
            {"command": "./plugin", "args": []},
            f'#!/bin/sh\necho \'{{"apiVersion": "{PLUGIN}", "status": {{}}}}\'\n',
            "neither a token nor a certificate",
        ),
    ],
    ids=["missing", "failed", "not a credential", "another version", "empty"],
)
def test_a_plugin_that_issues_nothing_is_named_with_its_reason(
    gate: Gate, plugin: dict[str, Any], said: str | None, want: str
) -> None:
    if said:
        program = gate.folder / "plugin"
        program.write_text(said)
        program.chmod(0o755)
    access = load_access(str(write_kubeconfig(gate, {"exec": {**write_plugin(gate), **plugin}})), {})
    with pytest.raises(ConnectionError, match=want):
        access.identify()


def test_a_proxy_of_the_kubeconfig_leads_to_the_server(gate: Gate) -> None:
    """Also to a name that only the proxy can resolve, and with another name on the certificate."""
    login = "Basic " + base64.b64encode(b"me:p@ss").decode()

    async def ask() -> None:
        way = Way(login)
        gate.accepted = {"Bearer t"}
        async with gate.open(), way.open():
            way.leads_to = gate.port
            names = {"proxy-url": f"http://me:p%40ss@127.0.0.1:{way.port}", "tls-server-name": "cluster.example"}
            api = open_api(write_kubeconfig(gate, {"token": "t"}, "https://inside.invalid:6443", **names))
            assert await api.get("/x") == b"{}"
            async with api.stream("/x") as pieces:
                assert b"".join([piece async for piece in pieces]) == b"{}"
            api.close()
        assert way.targets == ["inside.invalid:6443"] * 2

    run(ask)


def test_a_proxy_that_speaks_tls_itself(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(gate.folder / "ca.crt"))

    async def ask() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(gate.folder / "server.crt", gate.folder / "server.key")
        way = Way(context=context)
        gate.accepted = {"Bearer t"}
        async with gate.open(), way.open():
            way.leads_to = gate.port
            path = write_kubeconfig(gate, {"token": "t"}, "https://cluster.example")
            api = open_api(path, {"HTTPS_PROXY": f"https://127.0.0.1:{way.port}"})
            assert await api.get("/x") == b"{}"
            api.close()
        assert way.targets == ["cluster.example:443"]

    run(ask)


def test_a_proxy_that_opens_no_tunnel_is_named_with_its_answer(gate: Gate) -> None:
    async def ask() -> None:
        way = Way(status=403)
        async with way.open():
            path = write_kubeconfig(gate, {"token": "t"}, "https://cluster.example")
            api = open_api(path, {"https_proxy": f"127.0.0.1:{way.port}"}, patience=0.2)
            want = f"the proxy 127.0.0.1:{way.port} does not connect to cluster.example:443: HTTP/1.1 403 X"
            with pytest.raises(ConnectionRefusedError, match=want):
                await api.get("/x")
            assert want in api.unreachable_reason

    run(ask)


def test_a_cluster_that_was_away_is_used_again_when_it_is_back(gate: Gate) -> None:
    """The pauses between tries stay short, however long it takes."""

    async def ask() -> None:
        gate.accepted = {"Bearer t"}
        async with gate.open():
            api = open_api(write_kubeconfig(gate, {"token": "t"}))
            await api.get("/x")
        api.close()
        noticed = asyncio.Event()
        api.notify_away = noticed.set
        away = asyncio.create_task(api.get("/x"))
        await noticed.wait()
        async with gate.open():
            assert await away == b"{}"
            assert api.unreachable_reason == ""
            api.close()

    run(ask)


def test_a_server_without_tls_needs_no_identity() -> None:
    async def ask() -> None:
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(OSError, match=r"111|refused|connect"):
                await connect(ServerPlace("127.0.0.1", 1), None, 5)
            with pytest.raises(OSError, match=r"111|refused|connect"):
                await Api(Access(host="127.0.0.1", port=1, identify=ApiIdentity), 0.1).get("/x")

    run(ask)
