"""Authentication: logins, tokens, and the accounts of a first start.

Called by `api/people/auth.py` for every request and by `app` at the start. Secrets are stored only as salted scrypt
hashes, and nothing here logs. Each installation signs tokens with its own key, so they are valid nowhere else.
"""

import asyncio
import hashlib
import secrets
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from fairlead.control.bootstrap import ensure_same_on_all_servers
from fairlead.control.context import Context
from fairlead.control.keys import write_private
from fairlead.control.people.current_rights import find_caller
from fairlead.control.people.login_sessions import new_session, record_sign_in
from fairlead.control.people.secret_hashes import cost_for, hash_of_nobody, hash_secret, is_secret
from fairlead.control.people.sign_on.sign_on import SignedOnUser, SignOn
from fairlead.control.people.throttle import SignInThrottle
from fairlead.control.people.tokens import (
    REFRESH_SECONDS,
    AccessToken,
    BadCredentials,
    Grant,
    Signer,
    Tokens,
    UnsupportedGrant,
)
from fairlead.control.role_table import ADMINISTRATOR_ROLE
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Conflict, Invalid, Unauthenticated
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.records.people import ACCESS_KEY, Caller, LoginSession, User
from fairlead.store.base import Change, Comparison, Put, Query, Store, Where
from fairlead.store.collections import ACCESS_RULES, USERS

#: The file in the data folder with the accounts of the first start.
CREDENTIALS = "credentials.json"
ADMINISTRATOR = "admin@fairlead.local"
APPLICATION = "fairlead"
_BOOTSTRAP = "bootstrap"
#: For so long after a sign-in, a server may not yet know the session that another server has recorded.
NEW_SESSION: Millis = 10 * SECOND
#: How long a verified secret is remembered, so that a client that logs in for every request stays fast.
REMEMBER: Millis = 300 * SECOND
MAX_REMEMBERED = 4096


class AccountCredentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first accounts in clear text, written once to a file that only its owner can read."""

    username: str
    password: str
    client_id: str
    client_secret: str
    cluster_id: str


class Authenticator:
    """Issues tokens and identifies callers by them. One per server."""

    def __init__(self, context: Context, signer: Signer, sign_on: SignOn | None = None) -> None:
        #: None if no identity provider is configured.
        self.sign_on = sign_on
        self._context = context
        self._store = context.store
        self._directory = context.directory
        self._signer = signer
        self._clock = context.clock
        self._verified: dict[tuple[str, str, bytes], Millis] = {}
        #: By use and token: its content, its caller, and the revision of the directory for which that holds.
        self._callers: dict[tuple[str, str], tuple[AccessToken, Caller, int]] = {}
        self._hashing = asyncio.Semaphore(2)
        self._throttle = SignInThrottle(context.clock)

    def caller_of(self, token: str, use: str = "access") -> Caller:
        """The caller of a token, with the permissions that the access rules give now.

        The signature is checked once, the expiry every time, and the account whenever accounts or projects have
        changed. So a token is invalid as soon as its account is deleted, disabled or gets another password.
        """
        known = self._callers.get((use, token))
        revision = self._directory.revision
        if known is None or known[2] != revision:
            content = self._signer.read(token, use) if known is None else known[0]
            self._callers.pop((use, token), None)
            caller, is_settled = self._load_caller(content, was_settled=known is not None)
            known = (content, caller, revision)
            if len(self._callers) >= MAX_REMEMBERED:
                self._callers.clear()
            if is_settled:
                self._callers[use, token] = known
        if known[0].expires <= self._clock():
            self._callers.pop((use, token), None)
            raise Unauthenticated("The token has expired; log in again")
        return known[1]

    async def open_session(self, account_id: str, use: str, seconds: int, origin: tuple[str, str]) -> str:
        """A token for this use in a new session of the account; `origin` is the client's address and program."""
        session = new_session(self._context, seconds * SECOND, *origin)
        is_recorded = await record_sign_in(self._context, account_id, session)
        return self.sign_for(account_id, use, seconds, session.id if is_recorded else "")

    def sign_for(self, account_id: str, use: str, seconds: int, session_id: str = "") -> str:
        """A token for an account that is valid only for this use, and as long as the session, if it has one."""
        user = self._directory.users.get(account_id)
        if user is None or not user.enabled:
            raise Unauthenticated("The account was deleted or disabled")
        return self._signer.sign(user, use, seconds, session_id=session_id)

    def sign_like(self, caller: Caller, use: str, seconds: int) -> str:
        """A token for another use that ends no later than what the caller signed in with: its session or access key."""
        users = self._directory.users
        user, key = users.get(caller.id), users.get(caller.key_id)
        session = next((one for one in user.login_sessions if one.id == caller.session_id), None) if user else None
        if user is None or not user.enabled or (caller.key_id and key is None):
            raise Unauthenticated("The account was deleted or disabled")
        ends = [one.expires_at for one in (session, key) if one is not None and one.expires_at is not None]
        seconds = min((seconds, *((end - self._clock()) // SECOND for end in ends)))
        if seconds <= 0:
            raise Unauthenticated("The session or access key has expired; log in again")
        return self._signer.sign(user, use, seconds, key, caller.session_id)

    @property
    def issuer(self) -> str:
        """The issuer in our own tokens."""
        return self._signer.issuer

    def _load_caller(self, token: AccessToken, *, was_settled: bool) -> tuple[Caller, bool]:
        """The caller, and whether that holds until the directory changes; `was_settled`: it held before a change."""
        users = self._directory.users
        user, key = users.get(token.account_id), users.get(token.key_id)
        is_good = user is not None and user.enabled and user.generation == token.generation
        if token.key_id:
            is_good = is_good and key is not None and key.generation == token.key_generation
        if user is None or not is_good:
            raise Unauthenticated("The account of this token was deleted, disabled or changed; log in again")
        is_settled = not token.session_id or any(one.id == token.session_id for one in user.login_sessions)
        if not is_settled and (was_settled or self._clock() - token.issued > NEW_SESSION):
            raise Unauthenticated("This session was ended; log in again")
        caller = find_caller(self._directory, user)
        return msgspec.structs.replace(caller, session_id=token.session_id, key_id=token.key_id), is_settled

    async def issue(self, grant: Grant, address: str = "") -> Tokens:
        """Tokens for a grant from a client's address.

        Raises `BadCredentials`, `UnsupportedGrant`, `Invalid` for missing members, or `TooMuch` after many failures.
        """
        key: User | None = None
        session: LoginSession | None = None
        if grant.grant_type in ("app_token", "client_credentials"):
            _require(("clientId", grant.client_id), ("clientSecret", grant.client_secret))
            user = await self._log_in("app", grant.client_id, grant.client_secret, address)
            if user.expires_at is not None and user.expires_at <= self._clock():
                raise BadCredentials("This access key or service account has expired; ask for a new one")
            await record_sign_in(self._context, user.id)
            if user.type == ACCESS_KEY:
                key, user = user, await self._owner(user)
        elif grant.grant_type == "password":
            user = await self.verify_password(grant.username, grant.password, address)
            session = new_session(self._context, REFRESH_SECONDS * SECOND, address, grant.client)
        elif grant.grant_type == "refresh_token":
            user, key, session = await self._refresh(grant.refresh_token)
        elif grant.grant_type in ("external_token_exchange", "exchange_token"):
            return await self._issue_by_provider(grant, address)
        else:
            raise UnsupportedGrant(
                f"The grant type {grant.grant_type!r} is not supported; "
                "use client_credentials, app_token, password, refresh_token or external_token_exchange"
            )
        if session is not None and not await record_sign_in(self._context, user.id, session):
            session = None
        return self._sign(user, key, session)

    async def _issue_by_provider(self, grant: Grant, address: str) -> Tokens:
        """Tokens for a token of the provider, or for the one-time code of a sign-on."""
        if self.sign_on is None:
            raise UnsupportedGrant(
                f"The grant type {grant.grant_type!r} needs sign-on with a provider, which is not set up on this server"
            )
        if grant.grant_type == "exchange_token":
            _require(("code", grant.code), ("codeVerifier", grant.code_verifier))
            signed_on = await self.sign_on.redeem(grant.code, grant.code_verifier)
            return await self.issue_signed_on(signed_on, (address, grant.client))
        _require(("externalToken", grant.external_token))
        user, expires_at = await self.sign_on.exchange(grant.external_token)
        await record_sign_in(self._context, user.id)
        return self._sign_briefly(user, expires_at)

    async def issue_signed_on(self, signed_on: SignedOnUser, origin: tuple[str, str]) -> Tokens:
        """Tokens in a new session of a user who has just signed on with the provider."""
        user, refresh_token = signed_on
        if self.sign_on is None:
            raise UnsupportedGrant("Sign-on with a provider is not set up on this server")
        started = await self.sign_on.open_session(user, refresh_token, REFRESH_SECONDS, origin)
        if started.is_lasting:
            return self._sign(user, None, started.session)
        return self._sign_briefly(user, started.session.expires_at, started.session.id)

    async def confirm_session(self, caller: Caller) -> bool:
        """Ask the identity provider about the caller's session, if that is due; raises Unauthenticated if it has ended.

        Returns whether rights may have changed.
        """
        if self.sign_on is None or not caller.session_id:
            return False
        return await self.sign_on.sessions.confirm(caller)

    async def verify_password(self, username: str, password: str, address: str) -> User:
        """The user with this name and password; raises as `issue` does."""
        _require(("username", username), ("password", password))
        return await self._log_in("user", username, password, address)

    def issue_for(self, user: User) -> Tokens:
        """Tokens for a user whom the operating system has identified."""
        return self._sign(user, None)

    def _sign(self, user: User, key: User | None, session: LoginSession | None = None) -> Tokens:
        """Tokens, none of which outlives the access key or service account."""
        seconds = self._signer.access_seconds
        refreshing = max(seconds, REFRESH_SECONDS)
        ends = (key or user).expires_at
        if ends is not None:
            left = max(1, (ends - self._clock()) // SECOND)
            seconds, refreshing = min(seconds, left), min(refreshing, left)
        id = session.id if session else ""
        return Tokens(
            access_token=self._signer.sign(user, "access", seconds, key, id),
            refresh_token=self._signer.sign(user, "refresh", refreshing, key, id),
            id_token=self._signer.sign(user, "id", seconds, key, id),
            expires_in=seconds,
        )

    def _sign_briefly(self, user: User, expires_at: Millis, session_id: str = "") -> Tokens:
        """Tokens that end with what they were issued for, and cannot be refreshed."""
        seconds = max(1, min(self._signer.access_seconds, (expires_at - self._clock()) // SECOND))
        return Tokens(
            access_token=self._signer.sign(user, "access", seconds, session_id=session_id),
            refresh_token="",
            id_token=self._signer.sign(user, "id", seconds, session_id=session_id),
            expires_in=seconds,
        )

    async def _owner(self, key: User) -> User:
        """The owner of an access key; raises BadCredentials if the owner is deleted or disabled."""
        user: User | None = await self._store.get(USERS, key.owner_id)
        if user is None or not user.enabled:
            raise BadCredentials("The user of this access key was deleted or disabled")
        return user

    async def _refresh(self, token: str) -> tuple[User, User | None, LoginSession | None]:
        if not token:
            raise Invalid("The grant refresh_token needs a refreshToken")
        try:
            content = self._signer.read(token, "refresh")
        except Unauthenticated as error:
            raise BadCredentials("The refresh token is not valid or has expired; log in again") from error
        user: User | None = await self._store.get(USERS, content.account_id)
        key: User | None = await self._store.get(USERS, content.key_id) if content.key_id else None
        is_good = user is not None and user.enabled and user.generation == content.generation
        if content.key_id:
            is_good = is_good and key is not None and key.generation == content.key_generation
        sessions = {one.id: one for one in user.login_sessions} if user is not None else {}
        session = sessions.get(content.session_id)
        if user is None or not is_good or (content.session_id and session is None):
            raise BadCredentials("The account of this refresh token was deleted, disabled or changed; log in again")
        if session is not None:
            await self._confirm_refresh(user, session)
            expires_at = self._clock() + REFRESH_SECONDS * SECOND
            session = msgspec.structs.replace(session, expires_at=expires_at)
        return user, key, session

    async def _confirm_refresh(self, user: User, session: LoginSession) -> None:
        """A session that is only ever refreshed must end too when the identity provider ends it."""
        try:
            await self.confirm_session(Caller(user.name, user.id, session_id=session.id))
        except Unauthenticated as error:
            raise BadCredentials(str(error)) from error

    async def _log_in(self, type: str, name: str, secret: str, address: str) -> User:
        user = await load_user(self._store, type, name)
        if user is None and type == "app":
            user = await load_user(self._store, ACCESS_KEY, name)
        key = (user.id, user.secret_hash, hashlib.sha256(secret.encode()).digest()) if user else None
        if not self._is_remembered(key):
            async with self._hashing:
                # Others may have signed in with the same secret, or failed, while this one waited.
                if not self._is_remembered(key):
                    self._throttle.check(type, name, address)
                    hashed = user.secret_hash if user and user.secret_hash else hash_of_nobody(type)
                    matches = await asyncio.to_thread(is_secret, secret, hashed)
                    if key is None or not matches:
                        self._throttle.record_failure(type, name, address)
                        raise _wrong_credentials()
                    self._remember(key)
        if user is None or not user.enabled:
            raise _wrong_credentials()
        self._throttle.record_success(type, name)
        return user

    def _is_remembered(self, key: tuple[str, str, bytes] | None) -> bool:
        return key is not None and self._verified.get(key, 0) > self._clock()

    def _remember(self, key: tuple[str, str, bytes]) -> None:
        if len(self._verified) >= MAX_REMEMBERED:
            self._verified.clear()
        self._verified[key] = self._clock() + REMEMBER


def _wrong_credentials() -> BadCredentials:
    return BadCredentials("No enabled account has this name and secret; check both")


def _require(*members: tuple[str, str]) -> None:
    missing = [name for name, value in members if not value]
    if missing:
        raise Invalid(f"The request lacks {' and '.join(missing)}")


async def load_user(store: Store, type: str, name: str) -> User | None:
    if "\x00" in name:
        return None
    where = (Where("type", Comparison.EQUAL, type), Where("name", Comparison.EQUAL, name))
    users: list[User] = await store.find(Query(collection=USERS, where=where, limit=1))
    return users[0] if users else None


async def ensure_accounts(context: Context, folder: Path, cluster_id: str) -> AccountCredentials | None:
    """Create the first administrator and application, and write them to `credentials.json`.

    Called at every start. Returns the credentials in clear text if it created them, else None. Existing accounts are
    left alone. The file is written before the accounts, so that no crash leaves an account whose secret nobody knows.
    """
    if await load_user(context.store, "user", ADMINISTRATOR) is not None:
        await _ensure_rules(context)
        return None
    password, client_secret = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
    credentials: AccountCredentials | None = AccountCredentials(
        username=ADMINISTRATOR,
        password=password,
        client_id=APPLICATION,
        client_secret=client_secret,
        cluster_id=cluster_id,
    )
    write_private(folder / CREDENTIALS, msgspec.json.format(msgspec.json.encode(credentials)) + b"\n")
    now = context.clock()
    accounts = (("user", ADMINISTRATOR, password), ("app", APPLICATION, client_secret))
    users = tuple(_first_user(type, name, secret, now) for type, name, secret in accounts)
    writes = [Put(USERS, user) for user in users]
    writes += [Put(ACCESS_RULES, rule) for rule in _first_rules(context, users)]
    try:
        await context.store.commit(Change(writes=tuple(writes)))
    except Conflict:
        # Another server on the same database created the accounts; its data folder has the secrets.
        (folder / CREDENTIALS).unlink(missing_ok=True)
        credentials = None
    await context.directory.load()
    return credentials


def _first_user(type: str, name: str, secret: str, now: Millis) -> User:
    return User(
        id=str(uuid.uuid4()),
        version=1,
        type=type,
        name=name,
        secret_hash=hash_secret(secret, cost_for(type)),
        created_at=now,
        created_by=_BOOTSTRAP,
    )


def _first_rules(context: Context, users: Iterable[User]) -> list[AccessRule]:
    """The first accounts are administrators of everything."""
    scope = Scope("tenant", str(context.directory.cluster.tenant_id))
    return [
        AccessRule(
            id=str(number),
            version=1,
            subject_id=user.name,
            subject_type=user.type,
            role_id=ADMINISTRATOR_ROLE.id,
            scope=scope,
            created_at=context.clock(),
            created_by=_BOOTSTRAP,
        )
        for number, user in enumerate(users, 1)
    ]


async def _ensure_rules(context: Context) -> None:
    """Create the rules of a database from a version without access rules, whose accounts could do everything."""
    if context.directory.access_rules:
        return
    rules = _first_rules(context, context.directory.users.values())
    with suppress(Conflict):
        await context.store.commit(Change(writes=tuple(Put(ACCESS_RULES, rule) for rule in rules)))
    await context.directory.load()


async def agree_on_key(context: Context, fingerprint: str) -> None:
    """Raise Refused unless all servers on this database sign with the same key."""
    refusal = (
        "This database belongs to an installation with another signing key: copy the folder `keys` from the data "
        "folder of its first server into this data folder, so that both accept the same tokens"
    )
    await ensure_same_on_all_servers(context, "key_fingerprint", fingerprint, refusal)
