"""Who a token belongs to, read from the token itself: for display only, since nothing is verified here."""

import base64
import binascii
import json
from typing import Any


def claims(access_token: str) -> dict[str, Any]:
    """What a token says of its owner, unverified. Empty for a token that is no JWT."""
    parts = access_token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return found if isinstance(found, dict) else {}
