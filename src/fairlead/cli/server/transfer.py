"""`move`, `export` and `import`: organization, people, assets, templates, policies and waiting workloads, from one
server to another."""

import getpass
import os

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.input_files import read_json_file, read_text
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import next_command
from fairlead.cli.terminal.progress import Progress
from fairlead.client import Client, ClientError, NotLoggedIn, Trust, application
from fairlead.client.access.tokens import Credentials, write_private
from fairlead.client.transfer.bundle import Bundle, load, render_bundle
from fairlead.client.transfer.reader import PHASES, Reader
from fairlead.client.transfer.report import LOST, UNCHANGED, Report
from fairlead.client.transfer.transfer import write_bundle
from fairlead.client.transfer.workloads import find_unrunnable
from fairlead.client.transfer.writer import Writer

_WORKLOADS = Flag(
    "workloads",
    "Which workloads: those that wait, all that have not ended, or none",
    choices=tuple(PHASES),
    default="waiting",
)
_SECRETS = Flag(
    "secrets",
    "JSON file with values of credentials and secrets by name; - is standard input",
    placeholder="FILE",
)
_WRITE = (
    Flag("dry-run", "Show what would be written, and write nothing", "boolean"),
    Flag("update", "Also change node pools, departments and projects that exist", "boolean"),
    _SECRETS,
)
_LOGIN = (
    Flag("client-id", "Client id of a service account there", placeholder="ID"),
    Flag("client-secret-file", "File with its secret; - is standard input", placeholder="FILE"),
    Flag("ca-file", "File with the certificate authority of that server", placeholder="FILE"),
)
_TO = Flag("to", "Address of the other server", placeholder="URL")
_COPY = Flag("copy", "Leave waiting workloads of this server waiting", "boolean")
_OTHER_LOGIN = "Check --client-id and --client-secret-file: they must belong to a service account of that server."
_DETAILS = """Existing objects are not changed, so the command can be run again.
Passwords and values of secrets are never read: users and service accounts get
new ones, which are shown once, and --secrets gives the values of credentials
and secrets, such as {"wandb": {"key": "..."}}. Everything that was not carried
over is listed. Data of volumes is not moved."""


def commands(noun: str) -> tuple[Command, ...]:
    if noun == "move":
        summary = "Move everything from this server to another"
        return (Command("", summary, _move, (_TO, *_LOGIN, *_WRITE, _WORKLOADS, _COPY), details=_DETAILS),)
    if noun == "export":
        return (
            Command("", "Export everything that `move` would move to a file", _export, (_WORKLOADS,), "FILE", 1, 1),
        )
    runai = "Import everything from a Run:ai server, over its REST interface"
    return (
        Command(
            "runai",
            runai,
            _import_runai,
            (*_LOGIN, *_WRITE, _WORKLOADS),
            details=f"--url is the address of Run:ai; this server is the configured one.\n\n{_DETAILS}",
        ),
        Command("file", "Read what `export` wrote", _import_file, _WRITE, "FILE", 1, 1, details=_DETAILS),
    )


def _move(invocation: Invocation) -> int:
    if not invocation.get("to"):
        raise UsageError("Name the other server with --to URL.")
    session = ServerSession(invocation)
    target = _other_server(session, invocation.get("to"))
    _check_different(session.client, target)
    bundle = _read(session, session.client)
    source = None if invocation.get("copy") else session.client
    return _write(session, target, bundle, source)


def _check_different(source: Client, target: Client) -> None:
    if {row["uuid"] for row in source.clusters()} & {row["uuid"] for row in target.clusters()}:
        raise ClientError(f"{target.url} is the same server as {source.url}.")


def _export(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    bundle = _read(session, session.client)
    if invocation.names[0] == "-":
        session.console.data(render_bundle(bundle))
    else:
        path = os.path.join(invocation.environment.folder, os.path.expanduser(invocation.names[0]))
        write_private(path, render_bundle(bundle) + "\n")
        session.console.say("The file has no passwords and no values of secrets; only you can read it.")
    for line in bundle.lines():
        session.console.say(f"Not exported: {line}.")
    session.close()
    return OK


def _import_file(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    path = invocation.names[0]
    return _write(session, session.client, load(read_text(invocation, path), path), None)


def _import_runai(invocation: Invocation) -> int:
    url = invocation.get("url")
    if not url or not invocation.get("client-id"):
        raise UsageError("Name the Run:ai server with --url URL, and a service account there with --client-id ID.")
    # The server of this session is the configured one, or that of this machine.
    here = {name: value for name, value in invocation.parsed.values.items() if name != "url"}
    own = invocation._replace(parsed=invocation.parsed._replace(values=here))
    session = ServerSession(own)
    source = _other_server(session, url)
    try:
        session.client.token()
    except NotLoggedIn as error:
        raise NotLoggedIn(str(error), f"Log in with `{next_command(own, 'login')}`.") from error
    _check_different(source, session.client)
    bundle = _read(session, source)
    return _write(session, session.client, bundle, None)


def _read(session: ServerSession, source: Client) -> Bundle:
    with Progress(session.console, f"Reading from {source.url}") as progress:
        return Reader(source, progress.show).read(session.invocation.get("workloads", "waiting"))


def _other_server(session: ServerSession, url: str) -> Client:
    """A client of the other server: as the given service account, or with the login that is stored for its address."""
    invocation = session.invocation
    name = invocation.get("client-id")
    if not name:
        return _logged_in(session.connect(url))
    secret = _read_secret(invocation)
    trust = Trust(invocation.get("ca-file"))
    client = Client(url, credentials=application(name, secret), trust=trust)
    try:
        client.token()
    except NotLoggedIn:
        # Versions before 2.23 know applications only.
        older = Credentials("app_token", (("AppId", name), ("AppSecret", secret)))
        client = Client(url, credentials=older, trust=trust)
        try:
            client.token()
        except NotLoggedIn as again:
            raise NotLoggedIn(f"{url} does not accept the client id and secret: {again}", _OTHER_LOGIN) from again
    return client


def _logged_in(client: Client) -> Client:
    """A client of a server at which we are logged in. Logging in there would make it the server of this session."""
    try:
        client.token()
    except NotLoggedIn as error:
        raise UsageError(
            f"You are not logged in to {client.url}. Give a service account of that server with --client-id ID and "
            "--client-secret-file FILE; `fairlead service-account create NAME` there prints both."
        ) from error
    return client


def _read_secret(invocation: Invocation) -> str:
    path = invocation.get("client-secret-file")
    if path:
        return read_text(invocation, path).strip()
    if not invocation.environment.stdin.isatty():
        raise UsageError("Give the secret with --client-secret-file FILE.")
    return getpass.getpass(f"Secret of {invocation.get('client-id')}: ", invocation.environment.stderr)


def _write(session: ServerSession, target: Client, bundle: Bundle, source: Client | None) -> int:
    invocation = session.invocation
    path = invocation.get("secrets")
    secrets = read_json_file(invocation, path) if path else {}
    writer = Writer(target, bundle, is_dry=bool(invocation.get("dry-run")), updates=bool(invocation.get("update")))
    for line in find_unrunnable(bundle.workloads, str(writer.scopes.cluster.get("engine"))):
        session.console.complain(f"Not carried over: {line}.")
    with Progress(session.console, f"Writing to {target.url}") as progress:
        writer.on_step = progress.show
        report = write_bundle(writer, bundle, secrets, source)
    _show(session, report)
    target.close()
    session.close()
    return OK


def _show(session: ServerSession, report: Report) -> None:
    console = session.console
    console.data(report.render())
    differing = [line for line in report.of(UNCHANGED) if line.why]
    if differing:
        console.data("\n".join(["", "Exists already and differs:", *(f"  {line}" for line in differing)]))
    if report.secrets:
        console.data("\nNew passwords and secrets, shown only now:")
        console.data("\n".join(f"  {kind} {name}: {secret}" for kind, name, secret in report.secrets))
    if report.of(LOST) and not report.is_dry:
        console.say("Fix what can be fixed, then run the same command again; it does not change the rest.")
