"""Tokens of this installation: what is in them, how they are signed and read, and the requests for them.

Called by `authentication.py` and `sign_on/`. Each installation signs with its own key: tokens are valid nowhere else.
"""

import hashlib
import json
import secrets
from pathlib import Path

import jwt
import msgspec

from fairlead.control.keys import write_private
from fairlead.model.clock import Clock, Millis
from fairlead.model.errors import Invalid, Unauthenticated
from fairlead.model.records.people import User

ACCESS_SECONDS = 86_400
REFRESH_SECONDS = 30 * 86_400


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A request for tokens, from either of the two interfaces."""

    grant_type: str
    client_id: str = ""
    client_secret: str = ""
    username: str = ""
    password: str = ""
    refresh_token: str = ""
    #: A token of the identity provider; or the one-time code of a sign-on, and the secret that belongs to it.
    external_token: str = ""
    code: str = ""
    code_verifier: str = ""
    #: The program, as it calls itself.
    client: str = ""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    access_token: str
    refresh_token: str
    id_token: str
    expires_in: int


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a token: the account, its generation when the token was issued, and the expiry."""

    account_id: str
    generation: int
    expires: Millis
    #: The access key that it was issued for, if any, and that key's generation.
    key_id: str = ""
    key_generation: int = 0
    #: The session that it was issued for, if any, and when.
    session_id: str = ""
    issued: Millis = 0


class BadCredentials(Invalid):
    """Name and secret do not match, or the refresh token is not valid here."""

    code = "bad-credentials"


class UnsupportedGrant(Invalid):
    """A grant type that this server does not support."""

    code = "unsupported-grant"


class Signer:
    """Signs and reads tokens of one installation."""

    def __init__(self, key: bytes, installation: str, clock: Clock, access_seconds: int = ACCESS_SECONDS) -> None:
        self._key = key
        self._clock = clock
        self._jws = jwt.PyJWS(algorithms=["HS256"])
        self.issuer = f"fairlead/{installation}"
        self.fingerprint = hashlib.sha256(key).hexdigest()[:16]
        self.access_seconds = access_seconds

    def sign(self, user: User, use: str, seconds: int, key: User | None = None, session_id: str = "") -> str:
        now = self._clock() // 1000
        claims: dict[str, object] = {
            "iss": self.issuer,
            "sub": user.name,
            "uid": user.id,
            "typ": user.type,
            "gen": user.generation,
            "use": use,
            "groups": list(user.groups),
            "iat": now,
            "exp": now + seconds,
            "jti": secrets.token_hex(8),
        }
        if key is not None:
            claims |= {"key": key.id, "kgn": key.generation}
        if session_id:
            claims["sid"] = session_id
        return self._jws.encode(_plain(claims), self._key, algorithm="HS256", headers={"typ": "JWT"})

    def read(self, token: str, use: str) -> AccessToken:
        """The content of the token; raises `Unauthenticated` if it is not valid here."""
        try:
            payload = self._jws.decode(token, self._key, algorithms=["HS256"])
            claims = json.loads(payload)
            content = AccessToken(
                account_id=str(claims["uid"]),
                generation=int(claims.get("gen", 0)),
                expires=int(claims["exp"]) * 1000,
                key_id=str(claims.get("key", "")),
                key_generation=int(claims.get("kgn", 0)),
                session_id=str(claims.get("sid", "")),
                issued=int(claims.get("iat", 0)) * 1000,
            )
            valid = claims["iss"] == self.issuer and claims["use"] == use and content.expires > self._clock()
        except (jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
            raise Unauthenticated("The token was not issued by this installation") from error
        if not valid:
            raise Unauthenticated("The token has expired or is for another use; log in again")
        return content


def _plain(claims: dict[str, object]) -> bytes:
    """The claims as JSON whose base64url has neither `-` nor `_`.

    NVIDIA's client reads the expiry with a decoder for plain base64, which drops those two characters and then fails.
    ASCII text makes them only from `>`, `?`, `~` and DEL, so these are escaped.
    """
    text = json.dumps(claims, separators=(",", ":"))
    for character in ">?~\x7f":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("ascii")


def load_signer(folder: Path, installation: str, clock: Clock, access_seconds: int = ACCESS_SECONDS) -> Signer:
    """The signer with this data folder's key, which is generated on the first call and never leaves the folder."""
    keys = folder / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = keys / "signing.key"
    if not path.exists():
        write_private(path, secrets.token_hex(32).encode("ascii"))
    return Signer(path.read_bytes(), installation, clock, access_seconds)
