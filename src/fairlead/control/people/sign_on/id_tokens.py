"""Checks tokens of the provider, and reads who they are about.

Called by `sign_on.py`. PyJWT checks signature, issuer, audience and times. This module adds the rules of OpenID Connect
that PyJWT does not know: the nonce, the authorized party, and the accepted algorithms.
"""

import hmac
from collections.abc import Sequence
from typing import Any

import jwt
import msgspec

from fairlead.control.people.sign_on.provider import Provider, make_key
from fairlead.control.people.sign_on.settings import SignOnSettings, domain_of, may_sign_on
from fairlead.control.people.tokens import BadCredentials
from fairlead.model.clock import SECOND, Millis

#: Signatures that only the provider can make. Without `none`, and without HMAC, whose key could be the public key.
ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"),
)
#: Seconds by which the clocks of provider and server may differ.
LEEWAY = 60
_MAX_GROUPS, _MAX_NAME_LENGTH = 1000, 253


class ProvidedIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A person whom the provider has identified."""

    #: The provider's own id of the person, which never changes.
    subject: str
    #: The name of the user here.
    username: str
    #: None if groups are not taken from the provider.
    groups: tuple[str, ...] | None
    issued_at: Millis
    expires_at: Millis


class BadProviderToken(BadCredentials):
    """A token that the provider did not issue for this server, or about somebody who may not sign on."""


async def verify_token(
    provider: Provider, settings: SignOnSettings, token: str, audiences: tuple[str, ...], nonce: str | None = None
) -> dict[str, Any]:
    """The claims of a token that the provider issued for one of the audiences; raises BadProviderToken."""
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise BadProviderToken("The provider's token is not a signed JWT") from error
    algorithm, key_id = str(header.get("alg", "")), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise BadProviderToken(f"The provider's token is signed by {algorithm[:20]!r}, which is not accepted")
    candidates = (make_key(key, algorithm) for key in await provider.find_keys(key_id))
    keys = [key for key in candidates if key is not None]
    if not keys:
        raise BadProviderToken("The provider's token is signed with a key that the provider does not have")
    claims = _decode(token, keys, settings.issuer, audiences)
    _check_party(claims, audiences)
    if nonce is not None and not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise BadProviderToken("The provider's token belongs to another sign-on")
    return claims


def _decode(token: str, keys: Sequence[jwt.PyJWK], issuer: str, audiences: tuple[str, ...]) -> dict[str, Any]:
    """The claims, if one of the keys has signed them; raises BadProviderToken."""
    for key in keys:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=audiences,
                issuer=issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
            return claims
        except jwt.InvalidSignatureError:
            continue
        except jwt.PyJWTError as error:
            raise BadProviderToken(f"The provider's token is not valid here: {error}") from error
    raise BadProviderToken("The signature of the provider's token is not valid")


def _check_party(claims: dict[str, Any], audiences: tuple[str, ...]) -> None:
    """A token for several audiences must have been issued to one of ours; a token about a logout signs nobody on."""
    audience = claims["aud"]
    party = claims.get("azp")
    if party is not None and party not in audiences:
        raise BadProviderToken("The provider's token was issued to another client")
    if isinstance(audience, list) and len(audience) > 1 and party is None:
        raise BadProviderToken(
            "The provider's token is for several clients and does not say which one it was issued to"
        )
    if "events" in claims:
        raise BadProviderToken("The provider's token is about an event, not about a person who signs on")


def read_identity(claims: dict[str, Any], settings: SignOnSettings) -> ProvidedIdentity:
    """Who the claims are about; raises BadProviderToken if that person may not sign on."""
    claim = settings.username_claim
    username = claims.get(claim)
    if not isinstance(username, str) or not username or len(username) > _MAX_NAME_LENGTH or not username.isprintable():
        raise BadProviderToken(
            f"The provider's token has no claim {claim} with a user name; check --oidc-username-claim"
        )
    # Entra ID leaves the claim out; others set it to false for addresses that anybody could have entered.
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise BadProviderToken("The provider has not verified your mail address")
    username = username.strip().lower()
    if not may_sign_on(settings, username):
        domain = domain_of(username) or "no domain"
        raise BadProviderToken(f"People of {domain} may not sign on here; an administrator can allow it")
    return ProvidedIdentity(
        subject=str(claims["sub"])[:1000],
        username=username,
        # Providers leave the claim out for people without groups.
        groups=_read_groups(claims.get(settings.groups_claim)) if settings.groups_claim else None,
        issued_at=int(claims["iat"]) * SECOND,
        expires_at=int(claims["exp"]) * SECOND,
    )


def _read_groups(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = {name for name in names if isinstance(name, str) and 0 < len(name) <= _MAX_NAME_LENGTH}
    return tuple(sorted(texts)[:_MAX_GROUPS])
