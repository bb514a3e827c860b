"""Finds the operation of a request in a tree of path segments. Called once per request, so it does little."""

from collections.abc import Iterable

from fairlead.api.http.errors import HttpError
from fairlead.api.http.operation import Operation


class _Branch:
    """A node of the tree: its children by name, by variable, or for the rest of the path; and its operations."""

    __slots__ = ("fixed", "methods", "rest", "variable")

    def __init__(self) -> None:
        self.fixed: dict[str, _Branch] = {}
        self.variable: _Branch | None = None
        self.rest: _Branch | None = None
        #: Method → the operation and the names of its path's variables, in order.
        self.methods: dict[str, tuple[Operation, tuple[str, ...]]] = {}


class Router:
    """A fixed segment wins over a variable: `count` in `/workloads/count` is not an id. `{name*}` matches the rest."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Branch()
        #: Operations without path variables, submissions among them: one lookup instead of a walk.
        self._fixed: dict[tuple[str, str], Operation] = {}
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        branch = self._root
        names = []
        for segment in operation.path.split("/")[1:]:
            if segment.endswith("*}"):
                names.append(segment[1:-2])
                if branch.rest is None:
                    branch.rest = _Branch()
                branch = branch.rest
            elif segment.startswith("{"):
                names.append(segment[1:-1])
                if branch.variable is None:
                    branch.variable = _Branch()
                branch = branch.variable
            else:
                branch = branch.fixed.setdefault(segment, _Branch())
        if operation.method in branch.methods:
            raise ValueError(f"{operation.method} {operation.path} is declared twice")
        branch.methods[operation.method] = (operation, tuple(names))
        if not names:
            self._fixed[operation.method, operation.path] = operation

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        """The operation and its path variables; raises `HttpError` 404 or 405."""
        known = self._fixed.get((method, path))
        if known is not None:
            return known, {}
        segments = path.split("/")[1:]
        values: list[str] = []
        branch = _descend(self._root, segments, 0, values)
        if branch is None:
            raise HttpError(404, f"The path {path[:200]} does not exist; /api/docs lists all paths")
        match = branch.methods.get(method)
        if match is None:
            allowed = ", ".join(sorted(branch.methods))
            raise HttpError(405, f"{path[:200]} supports {allowed}, not {method[:20]}", {"allow": allowed})
        operation, names = match
        return operation, dict(zip(names, values, strict=True))


def _descend(branch: _Branch, segments: list[str], depth: int, values: list[str]) -> _Branch | None:
    if depth == len(segments):
        return branch if branch.methods else None
    fixed = branch.fixed.get(segments[depth])
    if fixed is not None:
        target = _descend(fixed, segments, depth + 1, values)
        if target is not None:
            return target
    if branch.variable is not None and segments[depth]:
        values.append(segments[depth])
        target = _descend(branch.variable, segments, depth + 1, values)
        if target is not None:
            return target
        values.pop()
    if branch.rest is not None:
        values.append("/".join(segments[depth:]))
    return branch.rest
