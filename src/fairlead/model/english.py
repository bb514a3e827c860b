"""Small rules of English for generated texts. Used by the API description, by messages and by the help of commands."""

from collections.abc import Sequence


def with_article(noun: str) -> str:
    """`a training`, `an inference`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def enumerate_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
