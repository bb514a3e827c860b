"""Reads what a request carries, within its limits: the body by size and content type, the query by type and bounds."""

from typing import Any

from starlette.requests import Request

from fairlead.api.http.errors import HttpError
from fairlead.api.http.operation import Call
from fairlead.model.errors import ComplianceIssue, Invalid

#: Offsets and limits are 32-bit in the contract.
INT32_MOST = 2**31 - 1


async def read_body(request: Request, content_type: str) -> bytes:
    """The body, if it is of that type and no larger than the limit in the scope; raises `HttpError` 413 or 415.

    A body without content type is taken to be what is expected.
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
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if len(body) > limit:
        raise HttpError(413, _too_large(limit))
    return body


def _too_large(limit: int) -> str:
    return f"The body is larger than the {limit:,} bytes that this server reads"


def query_text(call: Call, name: str, default: str = "") -> str:
    """A query parameter as text; several of one name are joined by commas."""
    values = call.request.query_params.getlist(name)
    text = ",".join(values) if values else default
    if "\x00" in text:
        raise _wrong(name, "must not contain NUL characters")
    return text


def query_integer(call: Call, name: str, default: Any, least: int = 0, most: int = INT32_MOST) -> Any:
    text = query_text(call, name)
    if not text:
        return default
    is_whole = len(text) < 20 and text.isascii() and text.removeprefix("-").isdigit()
    value = int(text) if is_whole else None
    if value is None or not least <= value <= most:
        raise _wrong(name, f"must be a whole number from {least} to {most}")
    return value


def query_boolean(call: Call, name: str, default: bool | None = False) -> bool | None:
    text = query_text(call, name).lower()
    if not text:
        return default
    if text not in ("true", "false", "1", "0"):
        raise _wrong(name, "must be true or false")
    return text in ("true", "1")


def query_choice(call: Call, name: str, options: tuple[str, ...], default: str = "") -> str:
    text = query_text(call, name)
    if not text:
        return default
    if text not in options:
        raise _wrong(name, f"must be one of {', '.join(options)}")
    return text


def _wrong(name: str, details: str) -> Invalid:
    return Invalid(f"The query parameter {name} {details}", (ComplianceIssue(name, details),))
