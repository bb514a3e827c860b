"""Carries one message to where a rule wants it: a signed webhook, Slack, or mail. Called from threads.

A webhook of an ordinary user must not reach the server's own network: its host is resolved once, every address is
checked, and the connection goes to a checked address. Redirects are not followed. Raises OSError if a message did not
arrive.
"""

import contextlib
import email.message
import hmac
import http.client
import json
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from fairlead.control.notifications.settings import NotificationSettings, is_allowed_address

_SECONDS = 10.0
#: A receiver that sends its answer byte by byte is cut off after so many seconds.
_MAX_SECONDS = 20.0
_PORTS = {"http": 80, "https": 443}


class Message(NamedTuple):
    """A delivery with the secrets of its rule."""

    id: str
    at_seconds: int
    #: The URL of a webhook, or the mail address; and the key that signs.
    target: str
    key: str
    body: str


def send_webhook(settings: NotificationSettings, message: Message) -> None:
    signature = sign(message.key, message.at_seconds, message.body)
    headers = {"X-Fairlead-Delivery": message.id, "X-Fairlead-Signature": signature}
    _post(settings, message.target, message.body.encode(), headers)


def send_slack(settings: NotificationSettings, message: Message) -> None:
    text = json.loads(message.body)["text"]
    # Text of users must not address whole channels.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    _post(settings, message.target, json.dumps({"text": escaped}).encode(), {})


def send_mail(settings: NotificationSettings, message: Message) -> None:
    members = json.loads(message.body)
    mail = email.message.EmailMessage()
    mail["From"], mail["To"] = settings.smtp_from, message.target
    mail["Subject"] = f"{members['workload'] or members['project']}: {members['event']}"
    mail["Message-ID"] = f"<{message.id}@fairlead>"
    mail.set_content(members["text"])
    parts = urlsplit(settings.smtp_url)
    if not parts.hostname:
        raise OSError("No mail server is set (--smtp-url)")
    try:
        with _connect_mail(parts.scheme, parts.hostname, parts.port) as server:
            if parts.username and not isinstance(server.sock, ssl.SSLSocket):
                raise OSError("The mail server offers no TLS (STARTTLS); the password is not sent without it")
            if parts.username:
                with open(settings.smtp_password_file, encoding="utf-8") as file:
                    server.login(unquote(parts.username), file.read().strip())
            server.send_message(mail)
    except smtplib.SMTPException as error:
        raise OSError(f"The mail server refused the mail: {error}") from error


def _connect_mail(scheme: str, host: str, port: int | None) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port or 465, timeout=_SECONDS, context=context)
    server = smtplib.SMTP(host, port or 25, timeout=_SECONDS)
    server.ehlo()
    if server.has_extn("starttls"):
        server.starttls(context=context)
    return server


SENDERS: dict[str, Callable[[NotificationSettings, Message], None]] = {
    "webhook": send_webhook,
    "slack": send_slack,
    "email": send_mail,
}


def sign(key: str, at_seconds: int, body: str) -> str:
    """The header `X-Fairlead-Signature`: the time, and the HMAC-SHA256 of time, a dot and body."""
    digest = hmac.new(key.encode(), f"{at_seconds}.{body}".encode(), "sha256").hexdigest()
    return f"t={at_seconds},v1={digest}"


def resolve(settings: NotificationSettings, url: str) -> tuple[str, str, int]:
    """Host, a checked address of it, and the port; raises OSError if the host is private and not allowed."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS[parts.scheme]
    addresses = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    refused = [one for one in addresses if not is_allowed_address(settings, host, one.partition("%")[0])]
    if refused or not addresses:
        raise OSError(f"{host} is in a private network; the operator can allow it with --notify-allow {host}")
    return host, addresses[0], port


def _post(settings: NotificationSettings, url: str, body: bytes, headers: dict[str, str]) -> None:
    host, address, port = resolve(settings, url)
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    connection.sock = socket.create_connection((address, port), _SECONDS)
    deadline = threading.Timer(_MAX_SECONDS, _cut, (connection,))
    deadline.start()
    try:
        if parts.scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=host)
        path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        if not 200 <= answer.status < 300:
            raise OSError(f"{host} answered {answer.status}")
    except http.client.HTTPException as error:
        raise OSError(f"{host} does not answer like a web server: {error!r}") from error
    finally:
        deadline.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError):
        connection.sock.shutdown(socket.SHUT_RDWR)
