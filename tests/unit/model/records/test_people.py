"""Records of people that earlier versions have stored."""

import msgspec

from fairlead.model.records.people import LoginSession, User

#: As the store keeps it.
STORED = (
    b'{"id":"u1","version":3,"type":"user","name":"ada@example.com","secret_hash":"x","created_at":1,'
    b'"sign_ins":[{"id":"s1","created_at":2,"expires_at":9,"client":"curl"}]}'
)


def test_sessions_keep_their_stored_name() -> None:
    user = msgspec.json.decode(STORED, type=User)
    assert user.login_sessions == (LoginSession(id="s1", created_at=2, expires_at=9, client="curl"),)
    assert msgspec.json.encode(user) == STORED
