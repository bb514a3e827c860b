"""One thing that `doctor` looked at, for those who look and for whoever prints it. Pure."""

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """`state` is ok, note (something is missing or not seen that not everybody needs) or missing."""

    what: str
    state: str
    found: str
    advice: str = ""
