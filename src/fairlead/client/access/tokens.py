"""Access tokens: how to get one, and the file that stores it until it expires.

The file is readable by its owner only and holds one entry per server address.
"""

import json
import os
from typing import NamedTuple

from fairlead.client.errors import ClientError
from fairlead.client.json_object import Json

#: A token is renewed this many seconds before it expires, so that it does not expire during a request.
_EARLY = 30.0


class Credentials(NamedTuple):
    """Credentials: the grant's name and its members, as in the token request."""

    grant: str
    fields: tuple[tuple[str, str], ...]

    def request(self) -> dict[str, str]:
        return {"grantType": self.grant, **dict(self.fields)}


def application(name: str, secret: str) -> Credentials:
    return Credentials("client_credentials", (("clientID", name), ("clientSecret", secret)))


def password(username: str, secret: str) -> Credentials:
    return Credentials("password", (("username", username), ("password", secret)))


def renewal(refresh_token: str) -> Credentials:
    return Credentials("refresh_token", (("refreshToken", refresh_token),))


class Token(NamedTuple):
    access: str
    refresh: str = ""
    #: Seconds since 1970; 0 if the server reported no expiry.
    expires_at: float = 0.0

    def is_fresh(self, now: float) -> bool:
        return not self.expires_at or now < self.expires_at - _EARLY


def read_token(answer: Json, now: float) -> Token:
    """The token in the answer to a token request."""
    lifetime = answer.get("expiresIn")
    return Token(
        str(answer.get("accessToken") or ""),
        str(answer.get("refreshToken") or ""),
        now + float(lifetime) if lifetime else 0.0,
    )


class TokenFile:
    """Tokens by server address in one JSON file. A damaged or unreadable file is treated as empty."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, url: str) -> Token | None:
        entry = self._load_all().get(url)
        if not isinstance(entry, dict) or not isinstance(entry.get("access"), str):
            return None
        return Token(entry["access"], str(entry.get("refresh") or ""), float(entry.get("expiresAt") or 0))

    def record(self, url: str, token: Token | None) -> None:
        """Store the token, or delete the stored one."""
        entries = self._load_all()
        if token is not None:
            entries[url] = {"access": token.access, "refresh": token.refresh, "expiresAt": token.expires_at}
        elif entries.pop(url, None) is None:
            return
        write_private(self.path, json.dumps(entries, indent=1))

    def _load_all(self) -> dict[str, object]:
        try:
            with open(self.path, encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def write_private(path: str, text: str) -> None:
    """Replace a file atomically; only its owner can read it."""
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror or error}.") from error
