"""Hashes of passwords and generated secrets: salted scrypt. Called by the authenticator and the accounts."""

import base64
import hashlib
import hmac
import secrets

#: The costs of hashing passwords that people choose, and generated secrets of 256 bits, which cannot be guessed.
CHOSEN_COST = 2**14
DRAWN_COST = 2**10


def cost_for(type: str) -> int:
    """The cost of hashing a secret. It depends only on the way to log in, so that timing reveals no account."""
    return CHOSEN_COST if type == "user" else DRAWN_COST


def hash_secret(secret: str, cost: int = CHOSEN_COST) -> str:
    salt = secrets.token_bytes(16)
    digest = hashlib.scrypt(secret.encode(), salt=salt, n=cost, r=8, p=1)
    return f"scrypt${cost}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def hash_of_nobody(type: str) -> str:
    """A random hash: comparing with it takes as long as with the hash of an account."""
    salt, digest = (base64.b64encode(secrets.token_bytes(size)).decode() for size in (16, 64))
    return f"scrypt${cost_for(type)}${salt}${digest}"


def is_secret(secret: str, hashed: str) -> bool:
    """Whether `hashed` is the hash of `secret`; takes some 10 ms of CPU for a password."""
    _, cost, salt, digest = hashed.split("$")
    computed = hashlib.scrypt(secret.encode(), salt=base64.b64decode(salt), n=int(cost), r=8, p=1)
    return hmac.compare_digest(computed, base64.b64decode(digest))
