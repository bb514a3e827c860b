"""The owner of a token, read from the token itself. For display only, because nothing is verified."""

import base64
import binascii
import json

from fairlead.client.json_object import Json


def claims(access_token: str) -> Json:
    """The claims in a token, for display: nothing is verified. Empty if the token is not a JWT."""
    parts = access_token.split(".")
    if len(parts) != 3:
        return {}
    try:
        payload = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return payload if isinstance(payload, dict) else {}
