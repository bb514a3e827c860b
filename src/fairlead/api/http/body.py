"""Reads bodies and query parameters of requests, and checks their size, types and bounds."""

import re
from fractions import Fraction
from typing import TypeVar

import msgspec
from starlette.requests import Request

from fairlead.api.http.errors import HttpError
from fairlead.api.http.operation import Call, Inline
from fairlead.formats.check import find_violations
from fairlead.model.errors import ComplianceIssue, Invalid

T = TypeVar("T")

#: Offsets and limits are 32-bit in the contract.
INT32_MAX = 2**31 - 1
DURATION_PATTERN = r"^(0|[+]?((\d+(\.\d+)?)(ns|us|µs|μs|ms|s|m|h|d|w))+)$"
DURATION_RULE = "give a number and a unit (s, m, h, d or w), such as 90s or 5d8h"
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h|d|w)")
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
    "w": Fraction(604_800),
}


async def read_body(request: Request, content_type: str) -> bytes:
    """The body; raises `HttpError` 415 for another content type, 413 above the limit in the scope.

    A body without a content type is assumed to have the expected one.
    """
    limit: int = request.scope["fairlead.body_limit"]
    for name, value in request.scope["headers"]:
        if name == b"content-type":
            given = value.decode("latin-1").partition(";")[0].strip().lower()
            if given and given != content_type:
                raise HttpError(415, f"The body must be {content_type}, not {given[:100]}")
        elif name == b"content-length" and len(value) < 20 and int(value) > limit:
            raise HttpError(413, _too_large(limit))
    message = await request.receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        chunks, size = [body], len(body)
        while message.get("more_body") and size <= limit:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise HttpError(400, "The connection was closed before the end of the body")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if len(body) > limit:
        raise HttpError(413, _too_large(limit))
    return body


def _too_large(limit: int) -> str:
    return f"The body is larger than {limit:,} bytes, the limit of this server"


def read_json(shape: type[T], body: bytes) -> T:
    """The body as the declared struct; raises `Invalid` with every violation."""
    first = "the body contains a NUL character, which is not allowed"
    if b"\\u0000" not in body:
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            first = str(error)
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Invalid(issues=(ComplianceIssue("", f"the body is not valid JSON: {first}"),)) from None
    flaws = find_violations(shape, plain, "")
    issues = tuple(ComplianceIssue(flaw.path, flaw.details) for flaw in flaws) or (ComplianceIssue("", first),)
    raise Invalid(issues=issues)


async def receive_json(call: Call, shape: type[T] | Inline[T]) -> T:
    """The JSON body of a request as declared; raises `HttpError` or `Invalid`."""
    body = await read_body(call.request, "application/json")
    return read_json(shape.make() if isinstance(shape, Inline) else shape, body)


def query_text(call: Call, name: str, default: str = "") -> str:
    """A query parameter as text; repeated parameters are joined by commas."""
    values = call.request.query_params.getlist(name)
    text = ",".join(values) if values else default
    if "\x00" in text:
        raise wrong_parameter(name, "must not contain NUL characters")
    return text


def query_integer(call: Call, name: str, default: T, minimum: int = 0, maximum: int = INT32_MAX) -> int | T:
    text = query_text(call, name)
    if not text:
        return default
    is_whole = len(text) < 20 and text.isascii() and text.removeprefix("-").isdigit()
    value = int(text) if is_whole else None
    if value is None or not minimum <= value <= maximum:
        raise wrong_parameter(name, f"must be a whole number from {minimum} to {maximum}")
    return value


def query_boolean(call: Call, name: str, default: bool | None = False) -> bool | None:
    text = query_text(call, name).lower()
    if not text:
        return default
    if text not in ("true", "false", "1", "0"):
        raise wrong_parameter(name, "must be true or false")
    return text in ("true", "1")


def query_choice(call: Call, name: str, options: tuple[str, ...], default: str = "") -> str:
    text = query_text(call, name)
    if not text:
        return default
    if text not in options:
        raise wrong_parameter(name, f"must be one of {', '.join(options)}")
    return text


def wrong_parameter(name: str, details: str) -> Invalid:
    """The error for an invalid query parameter; `details` continues a sentence that begins with its name."""
    return Invalid(f"The query parameter {name} {details}", (ComplianceIssue(name, details),))


def read_duration(text: str) -> int:
    """The seconds of a duration such as `5d8h40m`, rounded up."""
    total = sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return -(-total.numerator // total.denominator)


def render_duration(seconds: int) -> str:
    """Seconds as a duration such as `5d8h40m`; zero is `0`."""
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, seconds = divmod(seconds, int(_SECONDS[unit]))
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0"
