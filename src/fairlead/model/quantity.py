"""Kubernetes quantities (`20M`, `1Gi`, `500m`, `1e3`) as exact whole numbers.

Values are fractions until the end and are then rounded up to whole numbers, as in Kubernetes.
"""

import math
import re
from fractions import Fraction
from functools import lru_cache

_SHAPE = re.compile(
    r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|(n|u|m|k|K|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)\Z"
)
_SCALES: dict[str, Fraction] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    # Kubernetes has only a lower-case k; K is a common mistake with one possible meaning.
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    "K": Fraction(1000),
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}
#: Sizes as the Trainings API recommends them: `1GB`, `10MIB`.
_RECOMMENDED = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s?([KMGTP])(I?)B\Z", re.IGNORECASE)
#: The maximum of Kubernetes; no machine has more.
LARGEST = 2**63 - 1


class BadQuantity(ValueError):
    """The text is not a quantity; the message says why."""


@lru_cache(maxsize=1024)
def parse(text: str) -> Fraction:
    """The exact value, in units."""
    match = _SHAPE.match(text)
    if match is None:
        raise BadQuantity(f"'{text}' is not a quantity; give a number with an optional suffix, such as 2, 500M or 10Gi")
    sign, digits, exponent, suffix = match.groups()
    value = Fraction(digits)
    value = value * Fraction(10) ** int(exponent[1:]) if exponent else value * _SCALES[suffix or ""]
    if sign == "-" and value:
        raise BadQuantity(f"'{text}' is negative; it must be 0 or more")
    if value > LARGEST:
        raise BadQuantity(f"'{text}' is too large; at most 2^63 - 1 is allowed")
    return value


@lru_cache(maxsize=1024)
def whole(text: str) -> int:
    """The value in whole units, rounded up: bytes of `1.5Gi`, pieces of `2`."""
    return math.ceil(parse(text))


@lru_cache(maxsize=1024)
def thousandths(text: str) -> int:
    """The value in thousandths, rounded up: 500 for `500m`, 1500 for `1.5`."""
    return math.ceil(parse(text) * 1000)


def thousandths_of(number: float) -> int:
    """A number of cores or devices in thousandths, rounded up, reading the number as people write it (0.1 is 100)."""
    product = number * 1000
    if product == int(product):
        return int(product)
    return math.ceil(Fraction(repr(number)) * 1000)


def from_recommended(text: str) -> str:
    """A size such as `1GB` or `10MIB` as a quantity (`1G`, `10Mi`); any other text as it is."""
    match = _RECOMMENDED.match(text)
    if match is None:
        return text
    number, letter, binary = match.groups()
    return f"{number}{letter.upper()}i" if binary else f"{number}{'k' if letter in 'kK' else letter.upper()}"
