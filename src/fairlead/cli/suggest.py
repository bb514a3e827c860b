"""Near matches: what somebody may have meant who mistyped a command, a flag or a name."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most three of the known words that are nearly this one, nearest first."""
    return difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)


def suggest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """A sentence that offers the near matches, with a space before it; empty if there is none."""
    matches = [f"{prefix}{match}" for match in nearest(word, known)]
    return f" Did you mean {' or '.join(matches)}?" if matches else ""
