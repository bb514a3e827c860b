"""Users, applications and access keys: create, change, log out, delete. Called by the API.

A secret or password is generated here, returned once, and stored as a hash. Every change that invalidates tokens
increments the account's generation, which `authentication.py` compares at every request.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, page_of
from fairlead.control.machine_accounts import check_binding
from fairlead.control.people.callers import has_administrator, is_subject, rights_key
from fairlead.control.people.escalation import check_account_is_entrusted, check_account_rights
from fairlead.control.people.passwords import find_weakness
from fairlead.control.people.secret_hashes import DRAWN_COST, cost_for, hash_secret, is_secret
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.model.clock import DAY, Millis
from fairlead.model.errors import ComplianceIssue, Conflict, Forbidden, Invalid, NotFound
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY, Secret, user_scope_key
from fairlead.model.records.notifications import NotificationRule
from fairlead.model.records.people import ACCESS_KEY, RESERVED_NAMES, Caller, User
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import ACCESS_RULES, NOTIFICATION_RULES, SECRETS, USERS

MAX_KEYS = 20
#: How long a code to set a new password is valid.
RESET_LIFETIME: Millis = 1 * DAY
_MAIL = re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}\Z")
_CLIENT = re.compile(r"[a-z][-_a-z0-9]*[a-z0-9]\Z")
_LONGEST = 255
#: The resource of each type of account in access rules.
RESOURCES = {"user": "users", "app": "service-accounts", ACCESS_KEY: "access-keys"}
_TITLES = {"user": "user", "app": "service account", ACCESS_KEY: "access key"}

USER_FIELDS: dict[str, FilterField[User]] = {
    "username": FilterField(read=lambda user: user.name),
    "createdBy": FilterField(read=lambda user: user.created_by),
    "lastLogin": FilterField("time", read=lambda user: user.last_login_at),
    "creationTime": FilterField("time", read=lambda user: user.created_at),
    "lastUpdated": FilterField("time", read=lambda user: user.updated_at or user.created_at),
    "isLocal": FilterField(read=lambda user: str(user.is_local).lower()),
    "type": FilterField(read=lambda user: "local" if user.is_local else "sso"),
}


class CreatedAccount(NamedTuple):
    """A new account, or one with a new secret, and that secret in clear text."""

    account: User
    #: Empty for a user who signs on with the identity provider.
    secret: str


def find_accounts(context: Context, caller: Caller, type: str, request: ListRequest) -> Page[User]:
    operation = _operation(type, "administer" if type == ACCESS_KEY else "read")
    access.check_anywhere(caller, operation)
    accounts = [
        user for user in _accounts(context) if user.type == type and _is_within(context, caller, operation, user)
    ]
    return page_of(accounts, request, USER_FIELDS, lambda user: user.name)


def load_account(context: Context, caller: Caller, type: str, id: str, verb: str = "read") -> User:
    """An account by its id; for an access key the caller must be its owner, or the verb `administer`."""
    operation = _operation(type, verb)
    access.check_anywhere(caller, operation)
    user = context.directory.users.get(id)
    is_own = type == ACCESS_KEY and verb != "administer"
    if user is None or user.type != type or (is_own and user.owner_id != caller.id):
        raise NotFound(f"There is no {_TITLES[type]} with the id {id[:60]!r}")
    if not is_own and not _is_within(context, caller, operation, user):
        raise NotFound(f"There is no {_TITLES[type]} with the id {id[:60]!r}")
    if verb != "read" and id != caller.key_id and caller.id in (user.id, user.owner_id):
        refuse_access_key(caller)
    if not is_own and verb != "read":
        check_account_rights(context, caller, user)
        check_account_is_entrusted(context, caller, operation, user)
        _check_signs_on(caller, operation, user)
    return user


def _check_signs_on(caller: Caller, operation: str, user: User) -> None:
    """Raise Forbidden if a caller with rights in one department would lock somebody out of the whole installation.

    That is somebody who signs on with the identity provider. Its creator can delete an account that nobody
    has signed on to yet.
    """
    if user.type != "user" or user.is_local or access.is_allowed(caller, operation, INSTALLATION_SCOPE_KEY):
        return
    if operation == "users:delete" and not user.subject and user.created_by == caller.name:
        return
    raise Forbidden(
        f"{user.name} signs on with the identity provider; {caller.name} may not change the whole account, "
        "but can remove its access rules for their own department"
    )


def _operation(type: str, verb: str) -> str:
    """The access keys of others are administered by those who administer users."""
    return "users:update" if verb == "administer" else f"{RESOURCES[type]}:{verb}"


def _is_within(context: Context, caller: Caller, operation: str, user: User) -> bool:
    """Whether a caller may do this to an account.

    With the right for a department, to those who have rights there and nowhere else, and to new ones that they made
    themselves: whoever could set the password of an administrator would be one.
    """
    if access.is_allowed(caller, operation, INSTALLATION_SCOPE_KEY):
        return True
    owner = context.directory.users.get(user.owner_id, user)
    rules = context.directory.rules_of(owner)
    if not rules:
        return owner.created_by == caller.name
    return all(access.is_allowed(caller, operation, rights_key(rule.scope)) for rule in rules)


class UserInput(NamedTuple):
    mail: str
    machine_user: str = ""


async def create_user(context: Context, caller: Caller, input: UserInput, request_id: str = "") -> CreatedAccount:
    """Create a user with a password.

    If the caller may do that in one department only, users of the identity provider have none: the account waits for
    the person who signs on.
    """
    access.check_anywhere(caller, "users:create")
    if input.machine_user:
        access.check(caller, "users:create")
    mail = input.mail
    check_binding(context, input.machine_user)
    if len(mail) > _LONGEST or not _MAIL.match(mail):
        raise Invalid(issues=(ComplianceIssue("email", f"is '{mail[:80]}', which is not a mail address"),))
    name = mail.lower()
    # A password would keep the owner of the address from signing on, and would be known to somebody else.
    waits_for_sign_on = context.may_sign_on(name) and not access.is_allowed(
        caller, "users:create", INSTALLATION_SCOPE_KEY
    )
    password = "" if waits_for_sign_on else secrets.token_urlsafe(12)
    members = {"type": "user", "name": name, "machine_user": input.machine_user}
    return await _create(context, caller, members, password, request_id)


class MachineInput(NamedTuple):
    """A new service account or access key."""

    name: str
    #: None for never.
    expires_at: Millis | None = None


async def create_service_account(
    context: Context, caller: Caller, input: MachineInput, request_id: str = ""
) -> CreatedAccount:
    access.check_anywhere(caller, "service-accounts:create")
    _check_machine(context, input)
    if any(user.name == input.name and user.type == "user" for user in _accounts(context)):
        # What belongs to an account, such as its workloads and credentials, is found by its name.
        raise Conflict(f"A user named {input.name} already exists", ("name",))
    members = {"type": "app", "name": input.name, "expires_at": input.expires_at}
    return await _create(context, caller, members, secrets.token_urlsafe(32), request_id)


async def create_access_key(
    context: Context, caller: Caller, input: MachineInput, request_id: str = ""
) -> CreatedAccount:
    """A key with which programs act as the caller. Its client id is generated; its name is unique per user."""
    access.check(caller, "access-keys:create")
    refuse_access_key(caller)
    if caller.type != "user":
        raise Forbidden("Only users have access keys; a service account has its own client id and secret")
    _check_machine(context, input)
    name = input.name
    own = load_own_keys(context, caller)
    if len(own) >= MAX_KEYS:
        raise Invalid(
            issues=(ComplianceIssue("name", f"you have {MAX_KEYS} access keys, the maximum; delete one first"),)
        )
    if any(key.label == name for key in own):
        raise Conflict(f"You already have an access key named {name}", ("name",))
    client_id = f"key-{secrets.token_hex(12)}"
    members = {
        "type": ACCESS_KEY,
        "name": client_id,
        "label": name,
        "owner_id": caller.id,
        "expires_at": input.expires_at,
    }
    return await _create(context, caller, members, secrets.token_urlsafe(32), request_id)


def refuse_access_key(caller: Caller) -> None:
    """Raise Forbidden for a program with an access key: it gets nothing that outlives the key, and ends no session."""
    if caller.key_id:
        raise Forbidden(
            f"An access key cannot change the account, access keys or sessions of {caller.name}; log in without it"
        )


def load_own_keys(context: Context, caller: Caller) -> list[User]:
    access.check(caller, "access-keys:read")
    keys = (user for user in context.directory.users.values() if user.type == ACCESS_KEY)
    return sorted((key for key in keys if key.owner_id == caller.id), key=lambda key: (key.created_at, key.id))


def _check_machine(context: Context, input: MachineInput) -> None:
    name = input.name
    if input.expires_at is not None and input.expires_at <= context.clock():
        raise Invalid(issues=(ComplianceIssue("expiresAt", "is in the past"),))
    if name in RESERVED_NAMES:
        raise Invalid(issues=(ComplianceIssue("name", f"is '{name}', under which the server itself acts"),))
    if len(name) > _LONGEST or not _CLIENT.match(name):
        rule = "lower-case letters, digits, '-' and '_'; start with a letter, end with a letter or digit"
        raise Invalid(
            issues=(ComplianceIssue("name", f"is '{name[:80]}'; 2 to {_LONGEST} of these are allowed: {rule}"),)
        )


async def _create(
    context: Context, caller: Caller, members: dict[str, Any], secret: str, request_id: str
) -> CreatedAccount:
    now = context.clock()
    hashed = await asyncio.to_thread(hash_secret, secret, cost_for(members["type"])) if secret else ""
    user = User(
        id=context.new_id(),
        version=1,
        secret_hash=hashed,
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        **members,
    )
    title = _TITLES[user.type]
    step = RecordChange(
        USERS, user.id, user, "Created", f"{title.capitalize()} {user.name} was created by {caller.name}"
    )
    try:
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    except Conflict as error:
        if not error.columns:
            raise
        raise Conflict(f"A {title} named {user.name} already exists", error.columns) from None
    return CreatedAccount(user, secret)


async def renew_secret(context: Context, caller: Caller, type: str, id: str, request_id: str = "") -> CreatedAccount:
    """Generate a new secret or password; the old one and all tokens become invalid."""
    _check_password(load_account(context, caller, type, id, "update"))
    secret = secrets.token_urlsafe(12 if type == "user" else 32)
    hashed = await asyncio.to_thread(hash_secret, secret, cost_for(type))
    message = f"got a new secret from {caller.name}"
    request = AuditedRequest(caller, "renew-secret", request_id)
    return CreatedAccount(await _change(context, request, id, message, {"secret_hash": hashed}, locks_out=True), secret)


async def change_own_password(context: Context, caller: Caller, current: str, new: str, request_id: str = "") -> None:
    user = context.directory.users.get(caller.id)
    if user is None or user.type != "user":
        raise NotFound("Only users have a password; generate a new secret for a service account instead")
    _check_password(user)
    if not await asyncio.to_thread(is_secret, current, user.secret_hash):
        raise Invalid(issues=(ComplianceIssue("currentPassword", "is not the password of this account"),))
    weakness = find_weakness(new, user.name)
    if weakness:
        raise Invalid(issues=(ComplianceIssue("newPassword", weakness),))
    hashed = await asyncio.to_thread(hash_secret, new)
    request = AuditedRequest(caller, "change-password", request_id)
    await _change(context, request, user.id, "changed the password", {"secret_hash": hashed}, locks_out=True)


async def make_reset_code(context: Context, caller: Caller, id: str, request_id: str = "") -> CreatedAccount:
    """A code with which a user can set a new password once, within a day. The password stays valid until then."""
    _check_password(load_account(context, caller, "user", id, "update"))
    secret = secrets.token_urlsafe(32)
    hashed = await asyncio.to_thread(hash_secret, secret, DRAWN_COST)
    members = {"reset_hash": hashed, "reset_expires_at": context.clock() + RESET_LIFETIME}
    request = AuditedRequest(caller, "make-reset-code", request_id)
    user = await _change(context, request, id, f"got a reset code from {caller.name}", members, locks_out=False)
    return CreatedAccount(user, f"{id}.{secret}")


async def use_reset_code(context: Context, code: str, new: str, request_id: str = "") -> User:
    """Set the password of the user whom a reset code belongs to; ends all their sessions. The code is used up."""
    id, _, secret = code.partition(".")
    user: User | None = await context.store.get(USERS, id) if "\x00" not in id else None
    is_valid = user is not None and user.reset_hash and user.enabled and user.reset_expires_at > context.clock()
    if user is None or not is_valid or not await asyncio.to_thread(is_secret, secret, user.reset_hash):
        raise Invalid(issues=(ComplianceIssue("code", "is not valid, was used, or has expired; ask for a new one"),))
    weakness = find_weakness(new, user.name)
    if weakness:
        raise Invalid(issues=(ComplianceIssue("newPassword", weakness),))
    hashed = await asyncio.to_thread(hash_secret, new)
    used = user.reset_hash

    def setting(before: User) -> dict[str, Any]:
        if before.reset_hash != used:
            raise Invalid(issues=(ComplianceIssue("code", "was used at the same time; ask for a new one"),))
        return {"secret_hash": hashed, "reset_hash": "", "reset_expires_at": 0}

    request = AuditedRequest(Caller(user.name, user.id), "reset-password", request_id)
    return await change_account(context, request, id, "set a new password with a code", setting, locks_out=True)


def _check_password(account: User) -> None:
    """Raise Invalid for a user without a password."""
    if not account.is_local:
        raise Invalid(f"{account.name} signs on with the identity provider and has no password here")


async def log_out(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Log a user out: all tokens issued before become invalid."""
    if id != caller.id:
        load_account(context, caller, "user", id, "update")
    else:
        refuse_access_key(caller)
    request = AuditedRequest(caller, "log-out", request_id)
    await _change(context, request, id, f"was logged out by {caller.name}", {}, locks_out=True)


class AccountInput(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of an account; None leaves a member as it is."""

    enabled: bool | None = None
    groups: tuple[str, ...] | None = None
    #: An empty name unbinds.
    machine_user: str | None = None
    #: True hands the account to the person of that name who signs on next with the provider: it loses its password.
    sign_on: bool | None = None


async def update_account(
    context: Context, caller: Caller, type: str, id: str, input: AccountInput, request_id: str = ""
) -> User:
    before = load_account(context, caller, type, id, "update")
    if (input.groups, input.machine_user, input.sign_on) != (None, None, None):
        # These can give rights outside the scope of the caller.
        access.check(caller, _operation(type, "update"))
    check_binding(context, input.machine_user or "", id)
    if input.groups is not None and before.subject:
        raise Invalid(issues=(ComplianceIssue("groups", "come from the identity provider; change them there"),))
    given = msgspec.structs.asdict(msgspec.structs.replace(input, sign_on=None))
    members = {name: value for name, value in given.items() if value is not None}
    if input.sign_on:
        members |= {"secret_hash": "", "subject": "", "reset_hash": "", "reset_expires_at": 0}
    after = msgspec.structs.replace(before, **members)
    check_account_rights(context, caller, after)
    refuse_without_administrator(context, [after if user.id == id else user for user in _accounts(context)])
    request = AuditedRequest(caller, "update", request_id)
    return await _change(
        context,
        request,
        id,
        f"was changed by {caller.name}",
        members,
        locks_out=input.enabled is False or bool(input.sign_on),
    )


async def change_account(
    context: Context,
    request: AuditedRequest,
    id: str,
    message: str,
    changes: Callable[[User], dict[str, object]],
    *,
    locks_out: bool = False,
) -> User:
    """Write what `changes` makes of the newest record; to lock out ends all sessions and tokens."""

    async def attempt() -> User:
        before: User | None = await context.store.get(USERS, id)
        if before is None:
            raise NotFound(f"There is no account with the id {id[:60]!r}")
        ending: dict[str, Any] = {"generation": before.generation + 1, "login_sessions": ()} if locks_out else {}
        members = ending | changes(before)
        after = msgspec.structs.replace(before, version=before.version + 1, updated_at=context.clock(), **members)
        await record_steps(
            context, request, [RecordChange(USERS, id, after, "Updated", f"{before.name} {message}")], None
        )
        return after

    return await retry_on_conflict(attempt)


async def _change(
    context: Context, request: AuditedRequest, id: str, message: str, members: dict[str, Any], *, locks_out: bool
) -> User:
    return await change_account(context, request, id, message, lambda before: members, locks_out=locks_out)


async def end_session(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """End one session of the caller: its tokens become invalid."""
    refuse_access_key(caller)
    user: User | None = await context.store.get(USERS, caller.id)
    if user is None or all(one.id != id for one in user.login_sessions):
        raise NotFound(f"You have no session with the id {id[:60]!r}")

    def without(before: User) -> dict[str, object]:
        return {"login_sessions": tuple(one for one in before.login_sessions if one.id != id)}

    request = AuditedRequest(caller, "end-session", request_id)
    await change_account(context, request, user.id, "ended a session", without)


async def delete_account(
    context: Context, caller: Caller, type: str, id: str, verb: str = "delete", request_id: str = ""
) -> None:
    """Delete an account with all that belongs to it: keys, rules, credentials. Its workloads stay."""
    user = load_account(context, caller, type, id, verb)
    refuse_without_administrator(context, [other for other in _accounts(context) if other.id != id])
    message = f"{_TITLES[type].capitalize()} {user.name} was deleted by {caller.name}"
    steps = [RecordChange(USERS, id, None, "Deleted", message)]
    directory = context.directory
    steps += [
        RecordChange(USERS, key.id, None, "Deleted", message) for key in directory.users.values() if key.owner_id == id
    ]
    if type != ACCESS_KEY:
        steps += [
            RecordChange(ACCESS_RULES, rule.id, None, "Deleted", message)
            for rule in directory.access_rules.values()
            if rule.subject_type != "group" and is_subject(rule, user)
        ]
        own = Query(collection=SECRETS, where=(Where("place", Comparison.EQUAL, user_scope_key(user.name)),))
        credentials: list[Secret] = await context.store.find(own)
        steps += [RecordChange(SECRETS, secret.id, None, "Deleted", message) for secret in credentials]
        mine = Query(collection=NOTIFICATION_RULES, where=(Where("owner_id", Comparison.EQUAL, id),))
        notifications: list[NotificationRule] = await context.store.find(mine)
        steps += [RecordChange(NOTIFICATION_RULES, rule.id, None, "Deleted", message) for rule in notifications]
    await record_steps(context, AuditedRequest(caller, "delete", request_id), steps, None)


def _accounts(context: Context) -> Sequence[User]:
    return list(context.directory.users.values())


def refuse_without_administrator(
    context: Context, users: Iterable[User], rules: Iterable[AccessRule] | None = None
) -> None:
    """Raise Invalid if no enabled account would be administrator any more."""
    if not has_administrator(users, context.directory.access_rules.values() if rules is None else rules):
        raise Invalid("This is the last administrator of the installation; make somebody else administrator first")
