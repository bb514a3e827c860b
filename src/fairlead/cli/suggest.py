"""Near matches: what somebody may have meant who mistyped a command, a flag or a name."""

import importlib
from collections.abc import Iterable

_DIFFLIB = "difflib"


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most three of the known words that are nearly this one, nearest first."""
    # Only needed once something is wrong, so it is loaded then.
    difflib = importlib.import_module(_DIFFLIB)
    matches: list[str] = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return matches


def suggest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """A sentence that offers the near matches, with a space before it; empty if there is none."""
    matches = [f"{prefix}{match}" for match in nearest(word, known)]
    return f" Did you mean {' or '.join(matches)}?" if matches else ""
