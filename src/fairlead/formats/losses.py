"""The losses of a conversion: a list of paths with reasons, and the functions that find them.

A renderer takes the leaves that it can convert; the remaining ones are lost, so nothing disappears silently.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from fairlead.formats.plain import Plain


class Loss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One member that is lost or changed: `value` is the original, `now` is what the result means instead."""

    path: str
    reason: str
    value: object = UNSET
    now: object = UNSET

    @property
    def is_gone(self) -> bool:
        """Whether the member is lost completely."""
        return self.now is UNSET

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def leaves(plain: object, path: str = "") -> Plain:
    """Every member with a value, by its path (`a.b[0].c`); a list of plain values is one leaf."""
    return dict(_leaves(plain, path))


def _leaves(plain: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(plain, dict) and plain:
        for name, value in plain.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(plain, list) and any(isinstance(item, dict) for item in plain):
        for number, item in enumerate(plain):
            yield from _leaves(item, f"{path}[{number}]")
    elif path:
        yield path, plain


class Source:
    """A REST object that a renderer takes leaves from."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.left = leaves(plain)
        self.losses: list[Loss] = []

    def peek(self, path: str) -> Any:
        """The leaf's value; UNSET if it is missing, null or already taken."""
        value = self.left.get(path, UNSET)
        return UNSET if value is None else value

    def take(self, path: str) -> Any:
        value = self.peek(path)
        if value is not UNSET:
            del self.left[path]
        return value

    def take_below(self, path: str, except_for: tuple[str, ...] = ()) -> None:
        """Take all leaves whose paths begin so; those with these endings only if they are false."""
        for leaf in [leaf for leaf in self.left if leaf.startswith(path)]:
            if not leaf.endswith(except_for) or self.left[leaf] is False:
                del self.left[leaf]

    def items(self, path: str, *, excluded_too: bool = False) -> list[tuple[int, Plain]]:
        """The objects of a list with their positions, without excluded ones."""
        items: object = self.plain
        for name in path.split("."):
            items = items.get(name) if isinstance(items, dict) else None
        if not isinstance(items, list):
            return []
        return [
            (number, item)
            for number, item in enumerate(items)
            if isinstance(item, dict) and (excluded_too or item.get("exclude") is not True)
        ]

    def lose(self, path: str, reason: str, now: object = UNSET) -> None:
        """Record that a member is lost, or what replaces it."""
        self.losses.append(Loss(path=path, reason=reason, value=self.left.pop(path, UNSET), now=now))


def converted(plain: Plain, losses: list[Loss]) -> Plain:
    """What the result means: the object without what is lost, and with the replacements."""
    carried_leaves = leaves(plain)
    for loss in losses:
        carried_leaves.pop(loss.path, None)
        if loss.now is not UNSET:
            carried_leaves[loss.path] = loss.now
    return rebuild(carried_leaves)


def rebuild(values: Plain) -> Plain:
    """The object that has these leaves. List items move up if earlier items are missing."""
    root: dict[str | int, Any] = {}
    for path, value in values.items():
        tree: dict[str | int, Any] = root
        *parents, last = _steps(path)
        for step in parents:
            tree = tree.setdefault(step, {})
        tree[last] = value
    closed = _close(root)
    return closed if isinstance(closed, dict) else {}


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in path.split("."):
        name, *numbers = part.split("[")
        steps.append(name)
        steps.extend(int(number.rstrip("]")) for number in numbers)
    return steps


def _close(tree: object) -> object:
    if not isinstance(tree, dict) or not tree:
        return tree
    if all(isinstance(step, int) for step in tree):
        return [_close(tree[step]) for step in sorted(tree)]
    return {step: _close(inner) for step, inner in tree.items()}
