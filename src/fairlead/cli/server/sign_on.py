"""`login --sso`: sign on with the identity provider that the server uses.

The terminal shows a code to enter at the provider, on any device. If the provider has no device flow, a browser on this
machine signs on, and the server redirects it to a local port with a one-time code.
"""

import base64
import hashlib
import secrets
import socket
import time
import webbrowser
from urllib.parse import parse_qs, urlencode, urlsplit

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import record_setting
from fairlead.client import Credentials
from fairlead.client.access.identity import claims
from fairlead.client.errors import NotLoggedIn

_PATH = "/api/v1/sign-on"
#: Seconds to wait for the browser.
_BROWSER_SECONDS = 600.0
_DONE = b"You are logged in. Close this page and go back to the terminal.\n"


def log_in_with_provider(invocation: Invocation) -> int:
    session = ServerSession(invocation, logs_in=True)
    _, offered = session.client.request_without_login("GET", _PATH)
    if not offered["enabled"]:
        raise NotLoggedIn(f"{session.client.url} has no identity provider configured; log in with a password.")
    if offered["hasDeviceFlow"] and not invocation.get("browser"):
        _use_code(session)
    else:
        _use_browser(session, offered["startPath"])
    if invocation.get("url"):
        record_setting(invocation, "url", session.client.url)
    session.console.say(f"Logged in to {session.client.url} as {claims(session.client.token()).get('sub')}.")
    session.close()
    return OK


def _use_code(session: ServerSession) -> None:
    _, device = session.client.request_without_login("POST", f"{_PATH}/device")
    session.console.complain(f"Open {device['verificationUriComplete'] or device['verificationUri']}")
    session.console.complain(f"and enter the code {device['userCode']}")
    deadline = time.monotonic() + device["expiresIn"]
    while time.monotonic() < deadline:
        status, answer = session.client.request_without_login(
            "POST", f"{_PATH}/device/token", {"handle": device["handle"]}
        )
        if status == 200:
            session.client.store_token(answer)
            return
        time.sleep(device["interval"])
    raise NotLoggedIn("Nobody entered the code in time; run the command again.")


def _use_browser(session: ServerSession, start_path: str) -> None:
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode("ascii")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_BROWSER_SECONDS)
        query = urlencode({"port": listener.getsockname()[1], "challenge": challenge})
        url = f"{session.client.url}{start_path}?{query}"
        session.console.complain(f"Open {url}")
        session.console.complain(f"on this machine. The page must show the code {_comparison_code(challenge)}")
        if session.invocation.environment.stdin.isatty():
            webbrowser.open(url)
        code = _receive_code(listener)
    session.client.log_in(Credentials("exchange_token", (("code", code), ("codeVerifier", verifier))))


def _comparison_code(challenge: str) -> str:
    """The code that the page shows too; the server computes it in the same way."""
    digest = hashlib.sha256(challenge.encode()).hexdigest()[:8].upper()
    return f"{digest[:4]}-{digest[4:]}"


def _receive_code(listener: socket.socket) -> str:
    """The one-time code that the browser brings; other requests are answered with 404."""
    deadline = time.monotonic() + _BROWSER_SECONDS
    while time.monotonic() < deadline:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            break
        with connection:
            connection.settimeout(10.0)
            try:
                target = connection.recv(65_536).split(b" ", 2)[1].decode("ascii")
                code = parse_qs(urlsplit(target).query).get("code", [""])[0]
                status = b"200 OK" if code else b"404 Not Found"
                text = _DONE if code else b""
                head = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n" % (status, len(text))
                connection.sendall(head + b"Connection: close\r\n\r\n" + text)
            except (OSError, IndexError, ValueError):
                continue
        if code:
            return code
    raise NotLoggedIn("The sign-on was not finished in time; run the command again.")
