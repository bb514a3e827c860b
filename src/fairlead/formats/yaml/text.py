"""Plain data as YAML text in block style: documents that `convert` writes, and those that the server shows.

It writes plainly what every parser reads as the same text, and quotes the rest. Importing PyYAML's own writer takes a
sixth of the time of a short command, and it writes scripts as one quoted line.
"""

from collections.abc import Iterable, Iterator

_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/")
_FURTHER = _FIRST | frozenset("0123456789.-+=@: ")
#: Texts that some parsers read as something else, in lower case.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_UNITS = ("k", "K", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def render_yaml(*documents: object) -> str:
    """Render documents as text."""
    return "---\n".join("\n".join(_lines(document)) + "\n" for document in documents)


def _lines(value: object) -> Iterator[str]:
    """The lines of a mapping, a list or a single scalar."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _entry(f"{_text(str(key))}:", inner)
    elif isinstance(value, list) and value:
        for inner in value:
            if isinstance(inner, dict | list) and inner:
                first, *others = _lines(inner)
                yield f"- {first}"
                yield from _indented(others)
            else:
                yield from _entry("-", inner)
    else:
        yield _scalar(value)


def _entry(head: str, value: object) -> Iterator[str]:
    """A key or a dash with its value, on the same line or on the lines below."""
    if isinstance(value, dict | list) and value:
        yield head
        yield from _lines(value) if isinstance(value, list) else _indented(_lines(value))
    elif isinstance(value, str) and _is_script(value):
        text = value.removesuffix("\n")
        yield f"{head} |{'-' if text == value else ''}"
        yield from _indented(text.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _is_script(text: str) -> bool:
    """Whether a text can be a block: only printable characters, and at most one line break at the end."""
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and bool(lines[-1])
        and all(line.isprintable() for line in lines)
        and not text.startswith((" ", "\n"))
        and all(line == line.rstrip(" ") for line in lines)
    )


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    written = repr(value)
    # YAML 1.1 reads a number with an exponent and without a point as a text.
    return written if "." in written else written.replace("e", ".0e")


def _text(text: str) -> str:
    if _is_plain(text):
        return text
    if text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _code(char)) for char in text) + '"'


def _code(char: str) -> str:
    return f"\\U{ord(char):08X}" if ord(char) > 0xFFFF else f"\\u{ord(char):04X}"


def _is_plain(text: str) -> bool:
    if not text or text.lower() in _WORDS:
        return False
    if text[0] not in _FIRST:
        return any(text.endswith(unit) and text[: -len(unit)].isdecimal() and text.isascii() for unit in _UNITS)
    return _FURTHER.issuperset(text) and text[-1] not in ": " and ": " not in text
