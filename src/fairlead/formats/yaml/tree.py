"""Reads YAML text into a tree of nodes with positions, from libyaml's events and within limits.

Called by the YAML dialects. It resolves no types: a scalar stays a text, and the reader of the field converts it.
PyYAML's own composer is not used, because it crashes on deep nesting and loses line numbers.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

SCALAR, MAPPING, SEQUENCE = "text", "mapping", "list"
_CORE_TAGS = frozenset(
    {"!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))}
)
#: An unquoted `<<`; a quoted one is an ordinary key. No key of a file can be equal: YAML has no surrogates.
_MERGE = "\ud800<<"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


#: More would not be read; a text with a million mistakes is still answered quickly.
MAX_ISSUES = 200


class YamlLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a text."""

    characters: int = 1_500_000
    depth: int = 64
    #: Nodes; those that aliases repeat are counted each time.
    nodes: int = 50_000
    aliases: int = 1000
    documents: int = 1000


class YamlNode(msgspec.Struct, gc=False):
    """A node of the tree. In a mapping it has the position of its key."""

    form: str
    #: The text, the dict of nodes by key, or the list of nodes.
    content: Any
    line: int
    column: int
    #: A scalar without quotes.
    is_plain: bool = False
    file: str = ""

    @property
    def is_null(self) -> bool:
        return self.form is SCALAR and self.is_plain and self.content in _NULLS


class YamlIssue(msgspec.Struct, frozen=True, order=True):
    """One mistake in a text and its position: lines and columns start at 1, 0 means the whole file."""

    file: str
    line: int
    column: int
    #: The dotted path of the field.
    path: str
    details: str

    def __str__(self) -> str:
        source = self.file or "YAML"
        if self.line:
            source += f":{self.line}:{self.column}"
        return f"{source}: {self.path}: {self.details}" if self.path else f"{source}: {self.details}"


class _TooMuch(Exception):
    """A limit is exceeded; reading stops."""

    def __init__(self, details: str, mark: object) -> None:
        super().__init__(details)
        self.details = details
        self.mark = mark


def render_tree(node: YamlNode) -> str:
    """The tree as one line of JSON, which is YAML too. Positions and comments are lost."""
    return json.dumps(_plain(node), ensure_ascii=False)


def _plain(node: YamlNode) -> Any:
    if node.form is MAPPING:
        return {key: _plain(inner) for key, inner in node.content.items()}
    if node.form is SEQUENCE:
        return [_plain(inner) for inner in node.content]
    return None if node.is_null else node.content


def issue_at(node: YamlNode, path: str, details: str) -> YamlIssue:
    return YamlIssue(node.file, node.line, node.column, path, details)


def read_tree(
    text: str | bytes, file: str = "", limits: YamlLimits | None = None
) -> tuple[list[YamlNode], list[YamlIssue]]:
    """Every document of the text, and every syntax error. Empty documents are skipped."""
    limits = limits or YamlLimits()
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return [], [YamlIssue(file, 0, 0, "", f"is not UTF-8 text (byte {error.start})")]
    if len(text) > limits.characters:
        details = f"has {len(text)} characters; at most {limits.characters} are allowed"
        return [], [YamlIssue(file, 0, 0, "", details)]
    reader = _Reader(file, limits)
    documents: list[YamlNode] = []
    try:
        parser = CParser(text)
        documents.extend(reader.documents(parser))
    except _TooMuch as much:
        reader.issues.append(_issue(file, much.mark, much.details))
    except YAMLError as error:
        reader.issues.append(_syntax_issue(file, error, text))
    return documents, reader.issues


def _issue(file: str, mark: Any, details: str, path: str = "") -> YamlIssue:
    if mark is None:
        return YamlIssue(file, 0, 0, path, details)
    return YamlIssue(file, mark.line + 1, mark.column + 1, path, details)


def _syntax_issue(file: str, error: YAMLError, text: str) -> YamlIssue:
    if isinstance(error, ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1
        return YamlIssue(file, line, column, "", "contains a control character, which YAML does not allow")
    if not isinstance(error, MarkedYAMLError):
        return YamlIssue(file, 0, 0, "", f"is not valid YAML: {error}")
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context or "cannot be read")
    lines = text.splitlines()
    written = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or "'\\t'" in problem:
        return _issue(file, mark, "is indented with a tab; YAML allows only spaces")
    if "undefined alias" in problem:
        return _issue(file, mark, "refers (*) to an anchor (&) that is not defined before")
    context = f" ({error.context})" if error.context and error.context != problem else ""
    return _issue(file, mark, f"is not valid YAML: {problem}{context}")


class _Reader:
    """Builds nodes from events with its own stack, so that deep nesting cannot exhaust Python's stack."""

    def __init__(self, file: str, limits: YamlLimits) -> None:
        self.file = file
        self.limits = limits
        self.issues: list[YamlIssue] = []
        self.nodes = 0
        self.aliases = 0
        #: By anchor: the node and the number of nodes in it; None while it is being read.
        self.anchors: dict[str, tuple[YamlNode, int] | None] = {}

    def documents(self, parser: CParser) -> Iterator[YamlNode]:
        count = 0
        while True:
            event = parser.get_event()
            kind = event.__class__
            if kind is StreamEndEvent or event is None:
                return
            if kind is DocumentStartEvent:
                count += 1
                if count > self.limits.documents:
                    raise _TooMuch(f"has more than {self.limits.documents} documents", event.start_mark)
                self.anchors = {}
                root = self._root(parser)
                if not root.is_null:
                    yield root

    def _root(self, parser: CParser) -> YamlNode:
        """The node of one document. The stack has, per open collection: node, pending key, anchor, nodes before."""
        stack: list[tuple[YamlNode, str | None, int]] = []
        keys: list[tuple[str, int, int] | None] = []
        root: YamlNode | None = None
        while True:
            event: Any = parser.get_event()
            kind = event.__class__
            if kind is DocumentEndEvent:
                return root or YamlNode(SCALAR, "", 0, 0, True, self.file)
            if kind is MappingEndEvent or kind is SequenceEndEvent:
                node, anchor, before = stack.pop()
                keys.pop()
                if node.form is MAPPING and _MERGE in node.content:
                    _merge(node)
                if anchor is not None:
                    self.anchors[anchor] = (node, self.nodes - before)
                continue
            parent = stack[-1][0] if stack else None
            if parent is not None and parent.form is MAPPING and keys[-1] is None:
                keys[-1] = self._key(event)
                continue
            node = self._node(event)
            if parent is None:
                root = node
            elif parent.form is SEQUENCE:
                parent.content.append(node)
            else:
                self._put(parent, keys, node)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                if len(stack) >= self.limits.depth:
                    raise _TooMuch(f"is nested more than {self.limits.depth} levels deep", event.start_mark)
                if event.anchor is not None:
                    self.anchors[event.anchor] = None
                stack.append((node, event.anchor, self.nodes - 1))
                keys.append(None)
            elif kind is ScalarEvent and event.anchor is not None:
                self.anchors[event.anchor] = (node, 1)

    def _node(self, event: Any) -> YamlNode:
        self.nodes += 1
        mark = event.start_mark
        if self.nodes > self.limits.nodes:
            raise _TooMuch(f"has more than {self.limits.nodes} entries, including those that aliases repeat", mark)
        kind = event.__class__
        if kind is AliasEvent:
            return self._alias(event)
        if event.tag is not None and event.tag not in _CORE_TAGS and len(self.issues) < MAX_ISSUES:
            self.issues.append(_issue(self.file, mark, f"has the tag {event.tag[:80]}; tags are not supported"))
        if kind is ScalarEvent:
            return YamlNode(SCALAR, event.value, mark.line + 1, mark.column + 1, not event.style, self.file)
        if kind is MappingStartEvent:
            return YamlNode(MAPPING, {}, mark.line + 1, mark.column + 1, False, self.file)
        return YamlNode(SEQUENCE, [], mark.line + 1, mark.column + 1, False, self.file)

    def _alias(self, event: Any) -> YamlNode:
        mark = event.start_mark
        self.aliases += 1
        if self.aliases > self.limits.aliases:
            raise _TooMuch(f"has more than {self.limits.aliases} aliases (*name)", mark)
        if event.anchor not in self.anchors:
            # As long as an alias may be.
            self.issues.append(
                _issue(
                    self.file, mark, f"*{event.anchor} refers to an anchor &{event.anchor} that is not defined above"
                )
            )
            return YamlNode(SCALAR, "", mark.line + 1, mark.column + 1, True, self.file)
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise _TooMuch(f"*{event.anchor} is inside of what it refers to", mark)
        target, size = anchored
        self.nodes += size
        return YamlNode(target.form, target.content, mark.line + 1, mark.column + 1, target.is_plain, self.file)

    def _key(self, event: Any) -> tuple[str, int, int]:
        mark = event.start_mark
        if event.__class__ is ScalarEvent:
            self.nodes += 1
            value = _MERGE if event.value == "<<" and not event.style else event.value
            return value, mark.line + 1, mark.column + 1
        raise _TooMuch("has a key that is not a text", mark)

    def _put(self, parent: YamlNode, keys: list[tuple[str, int, int] | None], node: YamlNode) -> None:
        """Add an entry; it gets the position of its key."""
        key, line, column = keys[-1] or ("", 0, 0)
        keys[-1] = None
        node.line, node.column = line, column
        first = parent.content.setdefault(key, node)
        if first is not node and len(self.issues) < MAX_ISSUES:
            details = f"'{key[:80]}' is repeated; it first occurs in line {first.line}"
            self.issues.append(YamlIssue(self.file, line, column, "", details))


def _merge(node: YamlNode) -> None:
    """Merge the mapping of `<<`; the mapping's own entries win. What cannot be merged is an entry like any other."""
    merged = node.content.pop(_MERGE)
    sources = merged.content if merged.form is SEQUENCE else [merged]
    if all(source.form is MAPPING for source in sources):
        for source in sources:
            node.content = {**source.content, **node.content}
    else:
        node.content.setdefault("<<", merged)
