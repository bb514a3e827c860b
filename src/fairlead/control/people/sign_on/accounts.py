"""The accounts of users who sign on with the provider: created at the first sign-on, then found by the provider's id.

Called by `sign_on.py`. The provider's id of the person decides, not the name: a name can be given to somebody else. A
local account with a password is never taken over, unless an administrator allows it (`signOn` of a user).
"""

import msgspec

from fairlead.control.context import Context
from fairlead.control.people.sign_on.id_tokens import BadProviderToken, ProvidedIdentity
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.model.records.people import RESERVED_NAMES, Caller, User
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import USERS

CREATED_BY = "sign-on"


async def ensure_user(context: Context, issuer: str, identity: ProvidedIdentity) -> User:
    """The account of this person, with the groups of the identity; raises BadProviderToken if they may not sign on."""

    async def attempt() -> User:
        user = await _find(context, _subject_of(issuer, identity), identity.username)
        if user is None:
            return await _create(context, issuer, identity)
        if not user.enabled:
            raise BadProviderToken("Your account here is disabled; ask an administrator")
        return await _update(context, user, issuer, identity)

    return await retry_on_conflict(attempt)


def _subject_of(issuer: str, identity: ProvidedIdentity) -> str:
    return f"{issuer} {identity.subject}"


async def _find(context: Context, subject: str, name: str) -> User | None:
    """By the provider's id. Otherwise one of that name that waits for its first sign-on."""
    known = next((user for user in context.directory.users.values() if user.subject == subject), None)
    if known is not None:
        stored: User | None = await context.store.get(USERS, known.id)
        return stored
    where = (Where("type", Comparison.EQUAL, "user"), Where("name", Comparison.EQUAL, name))
    users: list[User] = await context.store.find(Query(collection=USERS, where=where, limit=1))
    if not users:
        return None
    if users[0].subject == subject:
        return users[0]
    if users[0].subject:
        raise BadProviderToken(f"{name} belongs to another person of the provider; ask an administrator")
    if users[0].secret_hash:
        raise BadProviderToken(
            f"{name} has a local account with a password; sign in with it, or ask an administrator to "
            f"hand it over (fairlead user sign-on {name})"
        )
    return users[0]


async def _create(context: Context, issuer: str, identity: ProvidedIdentity) -> User:
    _check_new_name(context, identity.username)
    now = context.clock()
    user = User(
        id=context.new_id(),
        version=1,
        type="user",
        name=identity.username,
        secret_hash="",
        created_at=now,
        created_by=CREATED_BY,
        updated_at=now,
        groups=identity.groups or (),
        subject=_subject_of(issuer, identity),
        groups_at=identity.issued_at,
    )
    message = f"User {user.name} was created at the first sign-on"
    await _record(context, user, "create", "Created", message)
    return user


def _check_new_name(context: Context, name: str) -> None:
    """Raise BadProviderToken for a name that would give the rights or the records of another account.

    Access rules can name an account by its id, and records name their creator. Some providers let people choose
    their name.
    """
    accounts = context.directory.users
    is_machine = any(one.name == name for one in accounts.values() if one.type != "user")
    if name in accounts or is_machine or name in RESERVED_NAMES:
        raise BadProviderToken(f"{name} is the name or id of another account; ask an administrator")


async def _update(context: Context, user: User, issuer: str, identity: ProvidedIdentity) -> User:
    """Bind the account and set its groups, unless they come from a newer token already."""
    groups, groups_at = user.groups, user.groups_at
    if identity.groups is not None and identity.issued_at >= user.groups_at:
        groups, groups_at = identity.groups, identity.issued_at
    subject = _subject_of(issuer, identity)
    if (groups, subject) == (user.groups, user.subject):
        return user
    after = msgspec.structs.replace(
        user, version=user.version + 1, updated_at=context.clock(), groups=groups, groups_at=groups_at, subject=subject
    )
    await _record(context, after, "update", "Updated", f"{user.name} was updated at a sign-on")
    return after


async def _record(context: Context, user: User, operation: str, reason: str, message: str) -> None:
    request = AuditedRequest(Caller(user.name, user.id), operation)
    await record_steps(context, request, [RecordChange(USERS, user.id, user, reason, message)], None)
