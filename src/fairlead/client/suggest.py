"""Suggestions for a mistyped command, flag or name."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most three known words that are similar, most similar first."""
    return difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)


def suggest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """A sentence with the suggestions and a leading space; empty if there are none."""
    matches = [f"{prefix}{match}" for match in nearest(word, known)]
    return f" Did you mean {' or '.join(matches)}?" if matches else ""
