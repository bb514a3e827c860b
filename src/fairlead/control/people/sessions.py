"""The sessions of a user: list them, and end one. Called by the API; `sign_ins.py` records them."""

from fairlead.control.context import Context
from fairlead.control.people.accounts import change_account
from fairlead.control.records import AuditedRequest
from fairlead.model.errors import NotFound
from fairlead.model.records.organization import Caller, SignIn, User
from fairlead.store.collections import USERS


def load_own_sessions(context: Context, caller: Caller) -> list[SignIn]:
    """The caller's sessions that have not expired, newest first."""
    user = context.directory.users.get(caller.id)
    now = context.clock()
    return [one for one in reversed(user.sign_ins) if one.expires_at > now] if user else []


async def end_session(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """End one session of the caller: its tokens become invalid."""
    user: User | None = await context.store.get(USERS, caller.id)
    if user is None or all(one.id != id for one in user.sign_ins):
        raise NotFound(f"You have no session with the id {id[:60]!r}")

    def without(before: User) -> dict[str, object]:
        return {"sign_ins": tuple(one for one in before.sign_ins if one.id != id)}

    request = AuditedRequest(caller, "end-session", request_id)
    await change_account(context, request, user.id, "ended a session", without)
