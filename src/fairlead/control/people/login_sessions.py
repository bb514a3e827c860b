"""Records login sessions of users, and when service accounts and access keys were used last; lists sessions.

Called by the authenticator and the API; `accounts.py` ends a session. A session is part of the user's record, which
every server keeps in memory.
"""

import msgspec

from fairlead.control.context import Context
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Conflict, Unavailable
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller, LoginSession, User
from fairlead.store.base import Change, Put
from fairlead.store.collections import USERS

#: The most sessions of one user; a further sign-in ends the oldest.
MAX_SESSIONS = 50
#: How exactly the last use of an account is recorded.
PRECISION: Millis = 60 * SECOND
_TRIES = 20
_LONGEST = 200


async def record_sign_in(context: Context, user_id: str, session: LoginSession | None = None) -> bool:
    """Write the time of a sign-in and its session, if any; returns whether the session is in the user's record.

    While the store cannot be written, people can still sign in; such a session is not listed.
    """
    for _ in range(_TRIES):
        user: User | None = await context.store.get(USERS, user_id)
        now = context.clock()
        if user is None or (session is None and now - (user.last_login_at or 0) < PRECISION):
            return False
        sessions = tuple(
            one for one in user.login_sessions if one.expires_at > now and (session is None or one.id != session.id)
        )
        login_sessions = sessions if session is None else (*sessions, session)[-MAX_SESSIONS:]
        after = msgspec.structs.replace(
            user, version=user.version + 1, last_login_at=now, login_sessions=login_sessions
        )
        event = Event(at=now, subject=USERS.name, subject_id=user.id, reason="SignedIn", source="control")
        try:
            await context.store.commit(Change(writes=(Put(USERS, after),), events=(event,)))
        except Conflict:
            continue
        except Unavailable:
            return False
        await context.directory.refresh([(USERS.name, user.id)])
        return True
    return False


def new_session(context: Context, lifetime: Millis, address: str, client: str) -> LoginSession:
    now = context.clock()
    return LoginSession(
        id=context.new_id(), created_at=now, expires_at=now + lifetime, address=address, client=client[:_LONGEST]
    )


def load_own_sessions(context: Context, caller: Caller) -> list[LoginSession]:
    """The caller's sessions that have not expired, newest first."""
    user = context.directory.users.get(caller.id)
    now = context.clock()
    return [one for one in reversed(user.login_sessions) if one.expires_at > now] if user else []
