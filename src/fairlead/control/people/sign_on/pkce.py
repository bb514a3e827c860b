"""Proof keys of a program that signs on (PKCE, RFC 7636). `cli/server/sign_on.py` computes the same on its side."""

import base64
import hashlib


def challenge_of(verifier: str) -> str:
    """The hash of a secret, which is sent first; the secret itself follows at the end."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode("ascii")


def comparison_code(challenge: str) -> str:
    """A short code that both the terminal and the page show, so that a person can compare them."""
    digest = hashlib.sha256(challenge.encode()).hexdigest()[:8].upper()
    return f"{digest[:4]}-{digest[4:]}"
