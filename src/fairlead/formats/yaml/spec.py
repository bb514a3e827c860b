"""Reads the spec of one workload document into the REST spec as plain data, with a position for every member.

Used by `documents.py` only. The declarations check the values afterwards, by path; the positions kept here turn such a
path back into a line and a field of the document.
"""

import re
from typing import Any

from fairlead.formats.intermediate import PlainSecret
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.conversions import READERS, read_variable
from fairlead.formats.yaml.fields import ITEMS, MAP, YamlField, yaml_fields
from fairlead.formats.yaml.keywords import near
from fairlead.formats.yaml.kind_conversions import READERS as READERS_OF_KINDS
from fairlead.formats.yaml.tree import (
    MAPPING,
    MAX_ISSUES,
    SCALAR,
    YamlIssue,
    YamlLimits,
    YamlNode,
    issue_at,
    read_tree,
)
from fairlead.formats.yaml.values import (
    InvalidValue,
    node_type_name,
    read_plain,
    read_value,
    unwrap,
    unwrap_item,
    unwrap_items,
)
from fairlead.kinds.kind import Kind

#: Limits of a text inside a document that is parsed as YAML again.
_INNER = YamlLimits(characters=20_000, nodes=200)
_CREDENTIALS = {"storage.git": ("username", "password"), "storage.s3": ("key", "secret")}
_PROPAGATION = {"true": "HostToContainer", "false": "None"}
_NO_NAME = re.compile(r"[^a-z0-9-]+")
_NAME_LENGTH = 63
#: What messages about REST say of a member that workload YAML does not have, because it follows from others.
_NOT_BY_PORTION, _NOT_BY_MEMORY = "gpuRequestType is not portion", "gpuRequestType is not memory"
#: Words of every message, which are names of members too.
_EVERYDAY = ("key", "type")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9.]*")


class SpecReading:
    """Reads one spec; the readers of `conversions.py` see it through this class."""

    def __init__(self, kind: Kind, letter: str, node: YamlNode) -> None:
        self.kind = kind
        self.letter = letter
        self.node = node
        self.plain: Plain = {}
        self.given: Plain = {}
        self.nodes: dict[str, YamlNode] = {}
        #: By REST path: the YAML path and the node.
        self.places: dict[str, tuple[str, YamlNode]] = {}
        self.issues: list[YamlIssue] = []
        self.remarks: list[tuple[str, str]] = []
        self.secrets: list[PlainSecret] = []

    # --- For the readers of conversions

    def put(self, path: str, value: object, name: str) -> None:
        node = self.nodes.get(name, self.node)
        self.put_at(path, value, f"spec.{name}", node)

    def put_at(self, path: str, value: object, yaml_path: str, node: YamlNode) -> None:
        *parents, last = path.split(".")
        tree = self.plain
        for parent in parents:
            tree = tree.setdefault(parent, {})
        tree[last] = value
        self.places[path] = (yaml_path, node)

    def move_item(self, path: str, number: int, place: str, item: Plain) -> None:
        """The positions of the item's members move with it, those of later items move up."""
        del self.get(path)[number]
        if not place.endswith("]"):
            self.put_at(place, item, *self.places[f"{path}[{number}]"])
        moved = {}
        for known, position in self.places.items():
            head, _, rest = known.removeprefix(f"{path}[").partition("]")
            if not known.startswith(f"{path}[") or int(head) < number:
                moved[known] = position
            elif int(head) > number:
                moved[f"{path}[{int(head) - 1}]{rest}"] = position
            else:
                moved[f"{place}{rest}"] = position
        self.places = moved
        if not self.get(path):
            self._forget(path)

    def _forget(self, path: str) -> None:
        *parents, last = path.split(".")
        tree = self.plain
        for parent in parents:
            tree = tree[parent]
        del tree[last]

    def get(self, path: str) -> Any:
        tree: object = self.plain
        for name in path.split("."):
            tree = tree.get(name) if isinstance(tree, dict) else None
        return tree

    def wrong(self, name: str, details: str) -> None:
        self.issues.append(issue_at(self.nodes.get(name, self.node), f"spec.{name}", details))

    def remark(self, name: str, details: str) -> None:
        self.remarks.append((f"spec.{name}" if name in self.nodes else name, details))

    # --- Reading

    def read(self, spec: dict[str, YamlNode]) -> None:
        fields = yaml_fields(self.kind)
        for name, node in spec.items():
            field = fields[name]
            self.nodes[name] = node
            if field.is_system:
                self.remark(name, "is written by the system; what the document says is ignored")
                continue
            try:
                if field.form is ITEMS or field.form is MAP:
                    self._read_items(field, node)
                else:
                    self._read_value(field, node)
            except InvalidValue as wrong:
                self.issues.append(issue_at(node, f"spec.{name}", str(wrong)))
        for reader in (*READERS_OF_KINDS, *READERS):
            reader(self)

    def _read_value(self, field: YamlField, node: YamlNode) -> None:
        inner = unwrap(field, node)
        if field.type == "object":
            value: object = self._object(inner)
        elif field.type == "mark" and inner.form is MAPPING:
            value = True
        else:
            value = read_value(field, inner)
        self.given[field.name] = value
        if not field.is_paired:
            self.put_at(field.path, value, f"spec.{field.name}", inner)

    def _object(self, node: YamlNode) -> object:
        """An object, or YAML text that contains one."""
        if node.form is SCALAR:
            documents, issues = read_tree(node.content, node.file, _INNER)
            if issues or len(documents) != 1:
                raise InvalidValue(
                    f"is a text that is not valid YAML: {issues[0].details if issues else 'it contains no object'}"
                )
            node = documents[0]
        if node.form is not MAPPING:
            raise InvalidValue(f"is {node_type_name(node)}; a mapping is expected")
        return read_plain(node)

    def _read_items(self, field: YamlField, node: YamlNode) -> None:
        if field.member and node.form is MAPPING and "value" in node.content and "items" not in node.content:
            self.put_at(field.path, read_value(field, unwrap(field, node)), f"spec.{field.name}", node)
            return
        items: list[object] = []
        self.put_at(field.path, items, f"spec.{field.name}", node)
        for key, item in unwrap_items(field, node).items():
            if len(self.issues) >= MAX_ISSUES:
                return
            path = f"spec.{field.name}.items.{key[:80]}"
            item_path = f"{field.path}[{len(items)}]"
            try:
                items.append(self._item(field, key, item, path, item_path))
            except InvalidValue as wrong:
                self.issues.append(issue_at(item, path, str(wrong)))
            else:
                self.places[item_path] = (path, item)

    def _item(self, field: YamlField, key: str, node: YamlNode, path: str, here: str) -> object:
        if field.form is MAP:
            return self._pair(field, key, node)
        if field.member:
            return self._only_member(field, key, node)
        inner = unwrap_item(key, node, True, has_value="value" in field.spelt)
        item: Plain = {}
        # A key of digits only distinguishes items; any other key is the item's name.
        if field.key and not key.isdecimal():
            item[field.key] = key
            self.places[f"{here}.{field.key}"] = (path, node)
        given = set()
        for name, value in inner.content.items():
            if len(self.issues) >= MAX_ISSUES:
                break
            member = field.spelt.get(name.lower())
            if member is None:
                known = [other.name for other in field.members]
                self.issues.append(issue_at(value, f"{path}.value.{name[:80]}", f"is not known{near(name, known)}"))
                continue
            if member.name in given:
                details = f"is {member.name} a second time; remove one of them"
                self.issues.append(issue_at(value, f"{path}.value.{name}", details))
                continue
            given.add(member.name)
            self._member(member, value, item, f"{path}.value.{name}", here)
        if "secretName" not in given:
            self._take_credentials(field, item, key, path, inner)
        return item

    def _member(self, member: YamlField, node: YamlNode, item: Plain, path: str, here: str) -> None:
        if node.form is MAPPING and "value" in node.content:
            self.issues.append(issue_at(node, path, "has its own value: — write members of items without it"))
            return
        try:
            value = _PROPAGATION[node.content.lower()] if _is_switch(member, node) else read_value(member, node)
        except InvalidValue as wrong:
            self.issues.append(issue_at(node, path, str(wrong)))
            return
        *parents, last = member.path.split(".")
        for parent in parents:
            item = item.setdefault(parent, {})
        item[last] = value
        self.places[f"{here}.{member.path}"] = (path, node)

    def _take_credentials(self, field: YamlField, item: Plain, key: str, path: str, node: YamlNode) -> None:
        """Credentials in plain text, without the name of a secret: remove them from the spec, which people can read."""
        missing: list[str] = []
        secret = PlainSecret(key=key, paths=[], values={}, item=item)
        for member in field.members:
            if member.name == "secretName":
                secret.member = member.path
            elif member.name in _CREDENTIALS.get(field.path, ()):
                *parents, last = member.path.split(".")
                tree = item
                for parent in parents:
                    tree = tree.get(parent, {})
                if last in tree:
                    secret.paths.append(f"{path}.value.{member.name}")
                    secret.values[str(member.about.default)] = str(tree.pop(last))
                else:
                    missing.append(member.name)
        if secret.values:
            self.secrets.append(secret)
            details = "is missing; credentials in plain text are two values, or name a secret with secretName"
            self.issues.extend(issue_at(node, f"{path}.value.{name}", details) for name in missing)

    def name_secrets(self, workload: str) -> None:
        """Name the secret for the credentials."""
        for secret in self.secrets:
            secret.name = _object_name(f"{workload}-{secret.key}")
            tree = secret.item
            *parents, last = secret.member.split(".")
            for parent in parents:
                tree = tree.setdefault(parent, {})
            tree[last] = secret.name

    def _pair(self, field: YamlField, key: str, node: YamlNode) -> Plain:
        inner = unwrap_item(key, node, False)
        if inner.form is not SCALAR:
            raise InvalidValue(f"is {node_type_name(inner)}; a text is expected below value:")
        if field.path != "environmentVariables":
            return {field.key: key, "value": inner.content}
        try:
            return read_variable(key, inner.content)
        except ValueError as error:
            raise InvalidValue(str(error)) from None

    def _only_member(self, field: YamlField, key: str, node: YamlNode) -> str:
        """An item that is one value, with or without the name of its member."""
        inner = unwrap_item(key, node, False)
        if inner.form is MAPPING:
            names = {name.lower(): value for name, value in inner.content.items()}
            if set(names) != {field.member}:
                raise InvalidValue(f"must contain {field.member}: and nothing else")
            inner = names[field.member]
        if inner.form is not SCALAR or inner.is_null:
            raise InvalidValue(f"is {node_type_name(inner)}; a text is expected")
        text: str = inner.content
        return next((choice for choice in field.choices if choice.lower() == text.lower()), text)

    # --- Violations of the declarations

    def wrong_at(self, path: str, details: str) -> None:
        """Refuse a member of the REST spec by its YAML path, unless it is refused already."""
        yaml_path, node = self._place(path)
        if not any(_is_within(yaml_path, issue.path) for issue in self.issues):
            self.issues.append(issue_at(node, yaml_path, self._in_words(details)))

    def _place(self, path: str) -> tuple[str, YamlNode]:
        """The position of the member, or the position where it is missing."""
        if path in self.places:
            return self.places[path]
        above = path
        while above and above not in self.places:
            above = above[: max(above.rfind("."), above.rfind("["), 0)]
        name = _yaml_name(self.kind, path)
        if not above or (name != path and "[" not in path):
            return f"spec.{name}", self.nodes.get(name) or (self.places[above][1] if above else self.node)
        path_above, node = self.places[above]
        return (f"{path_above}.value.{name}" if name and above.endswith("]") else path_above), node

    def _in_words(self, details: str) -> str:
        shared = "gpu is a fraction of a device" if "gpu" in self.given else "gpuMemory is not"
        for phrase, said in ((_NOT_BY_PORTION, "gpu is not a fraction of a device"), (_NOT_BY_MEMORY, shared)):
            details = details.replace(phrase, said)
        names = _renames(self.kind)
        return _WORD.sub(lambda word: names.get(word.group(), word.group()), details)


def _object_name(text: str) -> str:
    return _NO_NAME.sub("-", text.lower()).strip("-")[:_NAME_LENGTH].rstrip("-")


def _is_switch(member: YamlField, node: YamlNode) -> bool:
    """A choice that users also write as true or false: mount propagation."""
    return member.path == "mountPropagation" and node.form is SCALAR and node.content.lower() in _PROPAGATION


def _renames(kind: Kind) -> dict[str, str]:
    """REST names with a different YAML name, by the last part of their path."""
    return {
        field.path.rpartition(".")[2]: field.name
        for field in yaml_fields(kind).values()
        if field.path and field.path.rpartition(".")[2] not in (field.name, *_EVERYDAY) and "." in field.path
    }


def yaml_path(kind: Kind, path: str) -> str:
    """The YAML path of a REST member, for violations that are found after a document was read."""
    name = _yaml_name(kind, path)
    others = (field.name for field in yaml_fields(kind).values() if path in field.sets)
    return f"spec.{next(others, name) if name == path else name}"


def yaml_item_path(kind: Kind, list_path: str, key: str, member: str) -> str:
    """The YAML path of a member of an item with that key; the member as REST has it, with a dot before it."""
    field = next((field for field in yaml_fields(kind).values() if field.path == list_path), None)
    if field is None:
        return f"spec.{list_path}[{key}]{member}"
    name = _yaml_name(kind, f"{list_path}[{key}]{member}") if member and field.members else ""
    return f"spec.{field.name}.items.{key}" + (f".value.{name}" if name else "")


def _yaml_name(kind: Kind, path: str) -> str:
    """The YAML name of a REST member; for a member of an item, its name in the item."""
    outer, bracket, inner = path.partition("[")
    field = next((field for field in yaml_fields(kind).values() if field.path and field.path == outer), None)
    if field is None:
        return outer
    if not bracket:
        return field.name
    wanted = inner.partition("].")[2]
    return next((member.name for member in field.members if member.path == wanted), wanted)


def _is_within(path: str, refused: str) -> bool:
    return path == refused or path.startswith(f"{refused}.")
