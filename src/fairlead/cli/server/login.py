"""`login`, `logout` and `whoami`, passwords and sessions.

The server on this machine needs no login: its credentials are in its data folder.
"""

import getpass
import time

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.server.sign_on import log_in_with_provider
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import record_setting
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import shown_time, span
from fairlead.client import Credentials, application, password
from fairlead.client.access.identity import claims
from fairlead.client.access.urls import quote

_SESSIONS = "/api/v1/me/sessions"
_USER_FLAGS = (
    Flag("user", "User name", short="u", aliases=("username",), placeholder="NAME"),
    Flag("password", "Password; you are asked if it is not given", short="p"),
    Flag("password-stdin", "Read the password from standard input, so that process lists do not show it", "boolean"),
    Flag("sso", "Sign on with the identity provider", "boolean"),
    Flag("browser", "With --sso: use a browser on this machine instead of a code", "boolean"),
)
_APPLICATION_FLAGS = (
    Flag("name", "Client id of the application", placeholder="ID", aliases=("client-id",)),
    Flag("secret", "Client secret; you are asked if it is not given", aliases=("client-secret",)),
)
_PIPE = "Pipe it in with --password-stdin."


def commands(noun: str) -> tuple[Command, ...]:
    if noun == "logout":
        return (Command("", "Log out", _logout, (Flag("everywhere", "End all your sessions", "boolean"),)),)
    if noun == "whoami":
        return (Command("", "Show the logged-in user and the server", _whoami, flags=OUTPUT),)
    return (
        Command("", "Log in with a password, or with --sso", _log_in_user, _USER_FLAGS),
        Command("user", "Log in with a password, or with --sso", _log_in_user, _USER_FLAGS),
        Command("application", "Log in as an application", _log_in_application, _APPLICATION_FLAGS, aliases=("app",)),
        Command("password", "Change your password; you are asked for both", _change_password),
        Command("reset", "Set a new password with the code that an administrator gave you", _reset, (), "CODE", 1, 1),
        Command("sessions", "List your sessions", _list_sessions, OUTPUT),
        Command("end", "End one of your sessions", _end_session, (), "SESSION", 1, 1),
    )


def _log_in_user(invocation: Invocation) -> int:
    if invocation.get("sso") or invocation.get("browser"):
        return log_in_with_provider(invocation)
    name = invocation.get("user") or _ask(invocation, "User name: ")
    secret = _piped(invocation) or invocation.get("password") or _ask_secret(invocation, "Password: ", _PIPE)
    return _log_in(invocation, password(name, secret), name)


def _log_in_application(invocation: Invocation) -> int:
    name = invocation.get("name") or _ask(invocation, "Application: ")
    secret = invocation.get("secret") or _ask_secret(invocation, "Secret: ", "Pass it with --secret.")
    return _log_in(invocation, application(name, secret), name)


def _log_in(invocation: Invocation, credentials: Credentials, name: str) -> int:
    """Log in and store the token; an address given with --url becomes the configured one."""
    session = ServerSession(invocation, logs_in=True)
    session.client.log_in(credentials)
    if invocation.get("url"):
        record_setting(invocation, "url", session.client.url)
    session.console.say(f"Logged in to {session.client.url} as {name}.")
    session.close()
    return OK


def _ask(invocation: Invocation, prompt: str) -> str:
    environment = invocation.environment
    if not environment.stdin.isatty():
        raise UsageError("There is no terminal to ask for the name. Pass it with --user.")
    environment.stderr.write(prompt)
    environment.stderr.flush()
    return environment.stdin.readline().strip()


def _ask_secret(invocation: Invocation, prompt: str, otherwise: str = "Run this command in a terminal.") -> str:
    environment = invocation.environment
    if not environment.stdin.isatty():
        raise UsageError(f"There is no terminal to ask for the {prompt.rstrip(': ').lower()}. {otherwise}")
    return getpass.getpass(prompt, environment.stderr)


def _piped(invocation: Invocation) -> str:
    """The password that was piped in with --password-stdin; empty without that flag."""
    if not invocation.get("password-stdin"):
        return ""
    secret = invocation.environment.stdin.readline().rstrip("\r\n")
    if not secret:
        raise UsageError("--password-stdin was given, but standard input is empty.")
    return secret


def _change_password(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    current = _ask_secret(invocation, "Current password: ")
    body = {"currentPassword": current, "newPassword": _ask_new(invocation)}
    session.client.request("POST", "/api/v1/me/password", body)
    session.console.say("Your password was changed. All your sessions have ended; log in again.")
    session.close()
    return OK


def _reset(invocation: Invocation) -> int:
    session = ServerSession(invocation, logs_in=True)
    body = {"code": invocation.names[0], "newPassword": _ask_new(invocation)}
    session.client.request_without_login("POST", "/api/v1/password-reset", body)
    session.console.say("Your password was set. Log in with it.")
    session.close()
    return OK


def _ask_new(invocation: Invocation) -> str:
    new = _ask_secret(invocation, "New password: ")
    if new != _ask_secret(invocation, "New password again: "):
        raise UsageError("The two new passwords differ; nothing was changed.")
    return new


def _list_sessions(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    rows = session.client.request("GET", _SESSIONS)["sessions"]
    columns = (
        TableColumn("SESSION", lambda row: row["id"]),
        TableColumn("SINCE", lambda row: shown_time(row["createdAt"])),
        TableColumn("FROM", lambda row: row["address"]),
        TableColumn("PROGRAM", lambda row: row["client"], shrinks=True),
        TableColumn("THIS", lambda row: "yes" if row["current"] else ""),
    )
    listing = Listing(columns, lambda row: str(row["id"]), "You have no sessions.")
    listing.show(session.console, chosen_format(invocation, session.settings), rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _end_session(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    session.client.request("DELETE", f"{_SESSIONS}/{quote(invocation.names[0])}")
    session.console.say("The session has ended.")
    session.close()
    return OK


def _logout(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    if invocation.get("everywhere"):
        session.client.request("DELETE", _SESSIONS)
    session.client.log_out()
    session.console.say(f"Logged out of {session.client.url}{' everywhere' if invocation.get('everywhere') else ''}.")
    session.close()
    return OK


def _whoami(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    token_claims = claims(session.client.token())
    facts = {
        "user": token_claims.get("preferred_username")
        or token_claims.get("username")
        or token_claims.get("email")
        or token_claims.get("sub"),
        "server": session.client.url,
        "expires": span(token_claims["exp"] - time.time()) if token_claims.get("exp") else None,
    }
    if not session.show(facts, str(facts["user"])):
        session.console.data(f"User:    {facts['user']}")
        session.console.data(f"Server:  {facts['server']}")
        if facts["expires"]:
            session.console.data(f"Token:   valid for {facts['expires']}")
    session.close()
    return OK
