"""Sessions of users who signed on with the provider: while they are used, the provider confirms them every minute.

`application.py` calls `confirm` before each request, and streams every second. The provider exchanges the refresh token
of the session for a new ID token, or refuses it: then the session ends. Of several servers, the one that writes the
record first asks the provider.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import msgspec

from fairlead.control.context import Context
from fairlead.control.people.accounts import change_account
from fairlead.control.people.sign_on.id_tokens import BadProviderToken
from fairlead.control.people.sign_on.provider import ProviderFailure, ProviderRefusal, ProviderUnavailable
from fairlead.control.people.tokens import REFRESH_SECONDS
from fairlead.control.records import AuditedRequest
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Conflict, NotFound, Unauthenticated, Unavailable
from fairlead.model.records.people import Caller, LoginSession, ProviderSession, User
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import PROVIDER_SESSIONS

log = logging.getLogger("fairlead.sign_on")
#: How long a confirmation is valid, and how soon a provider that was unavailable is asked again.
CONFIRMATION_LIFETIME: Millis = 45 * SECOND
RETRY: Millis = 15 * SECOND
#: How long sessions stay valid while the provider is unavailable.
GRACE: Millis = 3600 * SECOND
#: How long a refresh token is kept after the last confirmation: longer than any session lasts without one.
TOKEN_LIFETIME: Millis = 2 * REFRESH_SECONDS * SECOND
_MAX_KNOWN = 20_000

#: Confirms the person of a refresh token; returns the next refresh token.
Confirm = Callable[[str, str], Awaitable[str]]


class ProviderSessions:
    def __init__(self, context: Context, confirm: Confirm) -> None:
        self._context = context
        self._confirm = confirm
        #: By session, when the provider is to be asked next; None for sessions that it knows nothing about.
        self._due: dict[str, Millis | None] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        #: Sessions for which the provider's last answer was a failure.
        self._failed: set[str] = set()

    async def record(self, user: User, session: LoginSession, refresh_token: str) -> None:
        """Keep the refresh token of a new session, encrypted. Those of sessions that ended long ago are deleted."""
        now = self._context.clock()
        expired = await self._find_expired(now)
        entry = ProviderSession(
            id=session.id,
            version=1,
            user_id=user.id,
            sealed=self._context.vault.seal({"refresh": refresh_token}, session.id),
            expires_at=now + TOKEN_LIFETIME,
            checked_at=now,
            confirmed_at=now,
        )
        deletions = (Delete(PROVIDER_SESSIONS, session.id) for session in expired)
        await self._context.store.commit(Change(writes=(Put(PROVIDER_SESSIONS, entry), *deletions)))
        self._remember(session.id, now + CONFIRMATION_LIFETIME)

    async def confirm(self, caller: Caller) -> bool:
        """Ask the provider if that is due; returns whether it was. Raises Unauthenticated if the session has ended."""
        id = caller.session_id
        due = self._due.get(id, 0)
        if due is None or due > self._context.clock():
            return False
        lock = self._locks.setdefault(id, asyncio.Lock())
        try:
            async with lock:
                due = self._due.get(id, 0)
                if due is None or due > self._context.clock():
                    return True
                await self._confirm_now(caller)
                return True
        finally:
            if not lock.locked():
                self._locks.pop(id, None)

    async def _confirm_now(self, caller: Caller) -> None:
        context, id = self._context, caller.session_id
        try:
            entry = await context.store.get(PROVIDER_SESSIONS, id)
        except Unavailable:
            return
        if entry is None:
            self._remember(id, None)
            return
        now = context.clock()
        if now - entry.checked_at < CONFIRMATION_LIFETIME:
            self._remember(id, entry.checked_at + CONFIRMATION_LIFETIME)
            return
        claimed = msgspec.structs.replace(entry, version=entry.version + 1, checked_at=now)
        try:
            await context.store.commit(Change(writes=(Put(PROVIDER_SESSIONS, claimed),)))
        except (Conflict, Unavailable):
            # Another server asks, or the answer could not be recorded.
            self._remember(id, now + 2 * SECOND)
            return
        await self._ask(caller, claimed)

    async def _ask(self, caller: Caller, entry: ProviderSession) -> None:
        now = self._context.clock()
        try:
            token = self._context.vault.open(entry.sealed, entry.id)["refresh"]
            next_token = await self._confirm(entry.user_id, token)
        except (ProviderRefusal, BadProviderToken) as error:
            await self._end(caller, str(error))
            raise Unauthenticated(f"The provider ended this session ({error}); log in again") from error
        except ProviderUnavailable as error:
            log.warning("The session of %s is not confirmed: %s", caller.name, error)
            if isinstance(error, ProviderFailure) and entry.id in self._failed:
                await self._end(caller, str(error))
                raise Unauthenticated(f"The provider does not confirm this session ({error}); log in again") from error
            await self._ask_again_soon(entry, now, has_failed=isinstance(error, ProviderFailure))
            if now - entry.confirmed_at > GRACE:
                raise Unauthenticated(
                    f"{error}. Sessions end if the provider is unavailable for more than an hour"
                ) from error
            return
        self._failed.discard(entry.id)
        sealed = self._context.vault.seal({"refresh": next_token}, entry.id) if next_token != token else entry.sealed
        after = msgspec.structs.replace(entry, version=entry.version + 1, sealed=sealed, confirmed_at=now)
        after = msgspec.structs.replace(after, expires_at=now + TOKEN_LIFETIME)
        try:
            await self._context.store.commit(Change(writes=(Put(PROVIDER_SESSIONS, after),)))
        except Conflict:
            log.warning("The session of %s was confirmed by two servers at once", caller.name)
        self._remember(entry.id, now + CONFIRMATION_LIFETIME)

    async def _ask_again_soon(self, entry: ProviderSession, now: Millis, *, has_failed: bool) -> None:
        (self._failed.add if has_failed else self._failed.discard)(entry.id)
        self._remember(entry.id, now + RETRY)
        checked_at = now - CONFIRMATION_LIFETIME + RETRY
        with contextlib.suppress(Conflict, Unavailable):
            after = msgspec.structs.replace(entry, version=entry.version + 1, checked_at=checked_at)
            await self._context.store.commit(Change(writes=(Put(PROVIDER_SESSIONS, after),)))

    async def _end(self, caller: Caller, why: str) -> None:
        def without(before: User) -> dict[str, object]:
            return {"login_sessions": tuple(each for each in before.login_sessions if each.id != caller.session_id)}

        request = AuditedRequest(caller, "end-session")
        with contextlib.suppress(NotFound):
            await change_account(self._context, request, caller.id, f"was signed out by the provider: {why}", without)
        await self._context.store.commit(Change(writes=(Delete(PROVIDER_SESSIONS, caller.session_id),)))
        self._due.pop(caller.session_id, None)
        self._failed.discard(caller.session_id)

    async def _find_expired(self, now: Millis) -> list[ProviderSession]:
        where = (Where("expires_at", Comparison.BELOW, now),)
        return await self._context.store.find(Query(collection=PROVIDER_SESSIONS, where=where, limit=100))

    def _remember(self, id: str, due: Millis | None) -> None:
        if len(self._due) >= _MAX_KNOWN:
            self._due.clear()
        self._due[id] = due
