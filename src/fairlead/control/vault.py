"""Encrypts secrets with AES-GCM and one key per installation.

`control/keys.py` loads the key; `app` puts the vault into the context. Ciphertext is bound to the id of its record, so
that it cannot be decrypted in another one. Nothing here logs, and no error shows a value.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fairlead.model.errors import Refused

KEY_BYTES = 32
_NONCE_BYTES = 12


class Vault:
    """Encrypts and decrypts the values of the secrets of one installation."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        #: Shows whether two servers have the same key, and nothing else about it.
        self.fingerprint = hashlib.sha256(b"fairlead encryption key" + key).hexdigest()[:16]

    def seal(self, values: Mapping[str, str], record_id: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, msgspec.json.encode(values), record_id.encode())
        return base64.b64encode(nonce + sealed).decode("ascii")

    def open(self, sealed: str, record_id: str) -> dict[str, str]:
        """The decrypted values; raises Refused if they were not encrypted by this installation for this record."""
        try:
            data = base64.b64decode(sealed, validate=True)
            opened = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], record_id.encode())
        except (InvalidTag, ValueError):
            raise Refused(
                f"the secret {record_id} cannot be decrypted with the key of this installation; set its values again"
            ) from None
        values: dict[str, str] = msgspec.json.decode(opened, type=dict[str, str])
        return values


def draw_vault() -> Vault:
    """A vault with a random key, for contexts that store nothing."""
    return Vault(secrets.token_bytes(KEY_BYTES))
