"""One result of `doctor`, for the engines that check and the command that prints it. Pure."""

import msgspec

#: The beginning of a command in an advice that adds a flag to the server; `doctor` adds those that it has already.
RESTART = "fairlead server restart --"


class Finding(msgspec.Struct, frozen=True):
    """`state` is ok, note (not everybody needs what is missing or was not seen) or missing."""

    what: str
    state: str
    found: str
    advice: str = ""
