"""The keys of a data folder: files that only their owner can read, and the vault that encrypts secrets.

Called by `app` at the start, and by modules that write private files into the data folder.
"""

import base64
import os
import secrets
from pathlib import Path

from fairlead.control.bootstrap import ensure_same_on_all_servers
from fairlead.control.context import Context
from fairlead.control.vault import KEY_BYTES, Vault
from fairlead.model.errors import Refused

_KEY_FILE = "encryption.key"


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically; an existing file is replaced."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def load_vault(folder: Path) -> Vault:
    """The vault with this data folder's key, which is generated on the first call and never leaves the folder."""
    path = folder / "keys" / _KEY_FILE
    if not path.exists():
        write_private(path, base64.b64encode(secrets.token_bytes(KEY_BYTES)))
    key = base64.b64decode(path.read_bytes())
    if len(key) != KEY_BYTES:
        raise Refused(f"{path} is not a key of {KEY_BYTES} bytes; restore it from a backup")
    return Vault(key)


async def agree_on_vault(context: Context) -> None:
    """Raise Refused unless all servers on this database encrypt with the same key."""
    refusal = (
        "This database holds secrets that were encrypted with another key: copy the folder `keys` from the data "
        "folder of its first server or from a backup into this data folder"
    )
    await ensure_same_on_all_servers(context, "vault_fingerprint", context.vault.fingerprint, refusal)
