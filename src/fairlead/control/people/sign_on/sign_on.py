"""Sign-on with the provider, for browsers, for programs on a terminal, and for scripts that have a token.

Called by `api/people/sign_on.py` and by the authenticator. A browser is redirected to the provider and returns with a
code; what this server must remember meanwhile is in a sealed cookie. A terminal shows a code that is entered on any
device (device flow), or opens a browser on its own machine and receives a one-time code on a local port.
"""

import hmac
import secrets
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from fairlead.control.context import Context
from fairlead.control.people.login_sessions import new_session, record_sign_in
from fairlead.control.people.sign_on.accounts import ensure_user
from fairlead.control.people.sign_on.id_tokens import BadProviderToken, ProvidedIdentity, read_identity, verify_token
from fairlead.control.people.sign_on.pkce import challenge_of
from fairlead.control.people.sign_on.provider import Provider, ProviderRefusal, ProviderTokens
from fairlead.control.people.sign_on.provider_sessions import ProviderSessions
from fairlead.control.people.sign_on.sealed import SealedValues
from fairlead.control.people.sign_on.settings import SignOnSettings, may_sign_on
from fairlead.control.people.throttle import RequestThrottle
from fairlead.model.clock import SECOND, Millis
from fairlead.model.errors import Invalid, TooMuch, Unavailable
from fairlead.model.records.people import LoginSession, User
from fairlead.store.collections import USERS

#: How long a user may take at the provider; how long a one-time code for a program is valid.
STATE_LIFETIME: Millis = 600 * SECOND
CODE_LIFETIME: Millis = 60 * SECOND
#: The longest session if the provider gives no refresh token, so that the session cannot be confirmed.
UNCONFIRMED: Millis = 3600 * SECOND
#: How many sign-ons one address may start or finish at once, and after which time it may one more. Each is a request to
#: the provider, which may refuse this server if there are too many. Several people may share an address.
SIGN_ON_BURST, SIGN_ON_INTERVAL = 60, 2 * SECOND
#: The same for the questions of terminals whether their user has signed on.
POLL_BURST, POLL_INTERVAL = 100, SECOND // 5
_MAX_REMEMBERED = 20_000
_STATE, _CODE, _DEVICE, _APPROVAL = "sign-on state", "sign-on code", "sign-on device", "sign-on approval"


class ProgramRequest(NamedTuple):
    """A program on the browser's machine that wants to be signed on: its port there, and the hash of its secret."""

    port: int
    challenge: str


class SignOnStart(NamedTuple):
    """Where the browser goes, and what it keeps meanwhile."""

    url: str
    cookie: str


class SignedOnUser(NamedTuple):
    """A user whom the provider has just identified, and the provider's refresh token; empty if it gave none."""

    user: User
    refresh_token: str


class FinishedSignOn(NamedTuple):
    """The sign-on of a browser: the user, and what it was for."""

    user: User
    refresh_token: str
    #: The page to show.
    page: str
    program: ProgramRequest | None


class SessionStart(NamedTuple):
    session: LoginSession
    #: Whether it can be confirmed at the provider, and so may last.
    is_lasting: bool


class PendingDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What a terminal shows, and how it asks for the result."""

    handle: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class SignOn:
    def __init__(self, context: Context, settings: SignOnSettings) -> None:
        self.settings = settings
        self._context = context
        self._provider = Provider(settings, context.clock)
        self._sealed = SealedValues(context.vault, context.clock)
        self.sessions = ProviderSessions(context, self._confirm)
        self._sign_ons = RequestThrottle(context.clock, SIGN_ON_BURST, SIGN_ON_INTERVAL)
        self._polls = RequestThrottle(context.clock, POLL_BURST, POLL_INTERVAL)
        #: By the provider's id of a person, when the newest token that this server has seen was issued. An account
        #: records that only with a change of its groups.
        self._newest: dict[str, Millis] = {}

    # Browsers

    async def start(self, redirect_uri: str, page: str = "", program: ProgramRequest | None = None) -> SignOnStart:
        metadata = await self._provider.metadata()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        members = {"state": state, "nonce": nonce, "verifier": verifier, "redirect": redirect_uri, "page": page}
        if program is not None:
            members |= {"port": str(program.port), "challenge": program.challenge}
        mark = "&" if "?" in metadata.authorization_endpoint else "?"
        url = f"{metadata.authorization_endpoint}{mark}{urlencode(query)}"
        return SignOnStart(url, self._sealed.seal(_STATE, STATE_LIFETIME, **members))

    async def finish(self, cookie: str, query: dict[str, str], address: str) -> FinishedSignOn:
        """Finish a sign-on with the query of the browser's request; raises BadProviderToken or TooMuch."""
        values = self._sealed.open(_STATE, cookie)
        state = query.get("state", "")
        if values is None or not hmac.compare_digest(values["state"].encode(), state.encode()):
            raise BadProviderToken("This sign-on was not started in this browser, or took too long; start it again")
        self._check_pace(address)
        if not self._sealed.use_once(values):
            raise BadProviderToken("This sign-on was finished already; start it again")
        metadata = await self._provider.metadata()
        issuer = query.get("iss")
        if (issuer is not None or metadata.authorization_response_iss_parameter_supported) and (
            issuer != self.settings.issuer
        ):
            raise BadProviderToken("The answer to this sign-on came from another provider; start it again")
        if "error" in query:
            raise BadProviderToken(f"The provider refused the sign-on: {query['error'][:100]}")
        try:
            tokens = await self._provider.exchange_code(query.get("code", ""), values["redirect"], values["verifier"])
        except ProviderRefusal as refusal:
            raise BadProviderToken(f"The provider refused the code of this sign-on ({refusal})") from refusal
        user = await self._ensure_user(await self._identify(tokens, values["nonce"]))
        program = ProgramRequest(int(values["port"]), values["challenge"]) if "port" in values else None
        return FinishedSignOn(user, tokens.refresh_token, values["page"], program)

    # Programs on the browser's machine

    def seal_approval(self, finished: FinishedSignOn, program: ProgramRequest) -> str:
        """What the page sends back if the user approves the sign-on of the program."""
        return self._sealed.seal(
            _APPROVAL,
            STATE_LIFETIME,
            user=finished.user.id,
            refresh=finished.refresh_token,
            port=str(program.port),
            challenge=program.challenge,
        )

    def approve(self, approval: str) -> str:
        """The URL that gives the program its one-time code; raises BadProviderToken."""
        values = self._sealed.open(_APPROVAL, approval)
        if values is None or not self._sealed.use_once(values):
            raise BadProviderToken("This sign-on was finished already or took too long; start it again")
        members = {name: values[name] for name in ("user", "refresh", "challenge")}
        code = self._sealed.seal(_CODE, CODE_LIFETIME, **members)
        return f"http://127.0.0.1:{int(values['port'])}/?{urlencode({'code': code})}"

    async def redeem(self, code: str, verifier: str) -> SignedOnUser:
        """Who a one-time code was issued for; `verifier` is the secret whose hash started the sign-on."""
        values = self._sealed.open(_CODE, code)
        is_verified = values is not None and hmac.compare_digest(values["challenge"], challenge_of(verifier))
        if values is None or not is_verified or not self._sealed.use_once(values):
            raise BadProviderToken("The code is not valid, was used, or has expired; log in again")
        return SignedOnUser(await self._load(values["user"]), values["refresh"])

    # Terminals

    async def start_device(self, address: str) -> PendingDevice:
        self._check_pace(address)
        try:
            device = await self._provider.start_device()
        except ProviderRefusal as refusal:
            raise Invalid(f"The provider refused to start the sign-on: {refusal}") from refusal
        lifetime = min(max(device.expires_in, 30), 1800)
        return PendingDevice(
            handle=self._sealed.seal(_DEVICE, lifetime * SECOND, device=device.device_code),
            user_code=device.user_code,
            verification_uri=device.verification_uri,
            verification_uri_complete=device.verification_uri_complete,
            expires_in=lifetime,
            interval=min(max(device.interval, 1), 60),
        )

    async def poll_device(self, handle: str, address: str) -> SignedOnUser | None:
        """None while the user has not signed on yet, or if this address asks too often: then nobody is asked."""
        values = self._sealed.open(_DEVICE, handle)
        if values is None:
            raise BadProviderToken("This sign-on took too long; start it again")
        if self._polls.admit(address):
            return None
        try:
            tokens = await self._provider.poll_device(values["device"])
        except ProviderRefusal as refusal:
            if refusal.error in ("authorization_pending", "slow_down"):
                return None
            raise BadProviderToken(f"The provider refused the sign-on ({refusal.error}); start it again") from refusal
        return SignedOnUser(await self._ensure_user(await self._identify(tokens)), tokens.refresh_token)

    def _check_pace(self, address: str) -> None:
        """Raise TooMuch if this address would make us send too many requests to the provider."""
        wait = self._sign_ons.admit(address)
        if wait:
            seconds = -(-wait // SECOND)
            raise TooMuch(f"Too many sign-ons from this address; try again in {seconds} s", seconds)

    async def has_device_flow(self) -> bool:
        return bool((await self._provider.metadata()).device_authorization_endpoint)

    # Scripts

    async def exchange(self, external_token: str) -> tuple[User, Millis]:
        """The user of a token that a script got from the provider, and when that token expires."""
        audiences = (self.settings.client_id, *self.settings.audiences)
        claims = await verify_token(self._provider, self.settings, external_token, audiences)
        identity = read_identity(claims, self.settings)
        return await self._ensure_user(identity), identity.expires_at

    # Sessions

    async def open_session(self, user: User, refresh_token: str, seconds: int, origin: tuple[str, str]) -> SessionStart:
        """A new session of a user who has just signed on."""
        lifetime = seconds * SECOND if refresh_token else min(seconds * SECOND, UNCONFIRMED)
        session = new_session(self._context, lifetime, *origin)
        if refresh_token:
            await self.sessions.record(user, session, refresh_token)
        if not await record_sign_in(self._context, user.id, session):
            raise Unavailable("The session cannot be recorded now; try again in a moment")
        return SessionStart(session, bool(refresh_token))

    async def _confirm(self, user_id: str, refresh_token: str) -> str:
        tokens = await self._provider.refresh(refresh_token)
        identity = await self._identify(tokens)
        user = await self._ensure_user(identity)
        if user.id != user_id:
            raise BadProviderToken("The provider's token is about another person")
        return tokens.refresh_token or refresh_token

    async def _identify(self, tokens: ProviderTokens, nonce: str | None = None) -> ProvidedIdentity:
        """Who the tokens are about. Claims that are missing in the ID token are requested with the access token."""
        settings = self.settings
        claims = await verify_token(self._provider, settings, tokens.id_token, (settings.client_id,), nonce)
        wanted = {settings.username_claim, settings.groups_claim} - {""}
        if not wanted <= claims.keys():
            userinfo = await self._provider.load_userinfo(tokens.access_token)
            if userinfo and userinfo.get("sub") == claims["sub"]:
                claims = {**userinfo, **claims}
        return read_identity(claims, settings)

    async def _ensure_user(self, identity: ProvidedIdentity) -> User:
        """The account of a person. Groups of a token that is older than another one seen here are not taken over."""
        if identity.issued_at < self._newest.get(identity.subject, 0):
            identity = msgspec.structs.replace(identity, groups=None)
        else:
            if len(self._newest) >= _MAX_REMEMBERED:
                self._newest.clear()
            self._newest[identity.subject] = identity.issued_at
        return await ensure_user(self._context, self.settings.issuer, identity)

    async def _load(self, user_id: str) -> User:
        user: User | None = await self._context.store.get(USERS, user_id)
        if user is None or not user.enabled:
            raise BadProviderToken("Your account here was deleted or disabled; ask an administrator")
        return user


def make_sign_on(context: Context, settings: SignOnSettings) -> SignOn | None:
    """None if no provider is set."""
    if not settings.issuer:
        return None
    context.may_sign_on = partial(may_sign_on, settings)
    return SignOn(context, settings)
