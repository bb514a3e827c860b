"""Seals what users keep secret: AES-GCM under one key per installation, in a file that only the server's owner reads.

Made by `app` with the key that `control/assets/secrets.py` loads, handed around in the context. What is sealed is
bound to the id of the record that holds it, so that ciphertext moved to another record does not open. Nothing here
logs, and no error shows what was being sealed.
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
    """Seals and opens the values of one installation's secrets."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        #: Tells whether two servers have the same key, and nothing more.
        self.fingerprint = hashlib.sha256(b"fairlead encryption key" + key).hexdigest()[:16]

    def seal(self, values: Mapping[str, str], record_id: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, msgspec.json.encode(values), record_id.encode())
        return base64.b64encode(nonce + sealed).decode("ascii")

    def open(self, sealed: str, record_id: str) -> dict[str, str]:
        """The values again; raises Refused for what this installation did not seal for this record."""
        try:
            data = base64.b64decode(sealed, validate=True)
            opened = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], record_id.encode())
        except (InvalidTag, ValueError):
            raise Refused(
                f"the secret {record_id} cannot be opened with this installation's key; give its values again"
            ) from None
        values: dict[str, str] = msgspec.json.decode(opened, type=dict[str, str])
        return values


def draw_vault() -> Vault:
    """A vault with a key of its own, for whoever keeps nothing."""
    return Vault(secrets.token_bytes(KEY_BYTES))
