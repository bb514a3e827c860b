"""Tokens in their file, and what they say of their owner."""

import base64
import json
import stat
from pathlib import Path

from fairlead.client.access.identity import claims
from fairlead.client.access.tokens import Token, TokenFile, application, password, read_token


def test_a_token_is_kept_per_address(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path / "deep" / "tokens.json"))
    assert file.load("http://a") is None
    file.record("http://a", Token("one", "again", 5.0))
    file.record("http://b", Token("two"))
    assert file.load("http://a") == Token("one", "again", 5.0)
    file.record("http://a", None)
    assert file.load("http://a") is None
    assert file.load("http://b") == Token("two")


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    TokenFile(str(path)).record("http://a", Token("one"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_file_counts_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for content in ("{", "[]", '{"http://a": 1}', '{"http://a": {"access": 3}}'):
        path.write_text(content)
        assert TokenFile(str(path)).load("http://a") is None


def test_a_token_is_renewed_before_it_expires() -> None:
    token = read_token({"accessToken": "x", "expiresIn": 100}, 1000.0)
    assert token.is_fresh(1069.0)
    assert not token.is_fresh(1071.0)
    assert read_token({"accessToken": "x"}, 1000.0).is_fresh(1e12)


def test_the_token_request() -> None:
    assert application("a", "b").request() == {"grantType": "client_credentials", "clientID": "a", "clientSecret": "b"}
    assert password("a", "b").request() == {"grantType": "password", "username": "a", "password": "b"}


def test_claims() -> None:
    body = base64.urlsafe_b64encode(json.dumps({"sub": "me"}).encode()).decode().rstrip("=")
    assert claims(f"head.{body}.signature") == {"sub": "me"}
    for text in ("", "a.b", "a.!!.c", "a.bnVsbA.c"):
        assert claims(text) == {}
