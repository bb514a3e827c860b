"""What a workload document inherits: the template that it names, the template of that template, and so on.

Called before a document is read by type. The caller passes in a function that finds templates, so that they can be in
files, in a store or in a cluster.
"""

from collections.abc import Callable

import msgspec

from fairlead.formats.yaml.documents import Manifest, read_manifests
from fairlead.formats.yaml.keywords import GLOBAL_NAMESPACE, TEMPLATE
from fairlead.formats.yaml.tree import MAPPING, YamlIssue, YamlNode, issue_at
from fairlead.kinds import KINDS

#: A template by namespace and object name, or None.
Find = Callable[[str, str], Manifest | None]
_BASE = "baseWorkload"
#: Names are not inherited.
_OWN = frozenset({"name", "namePrefix"})


def find_among(manifests: list[Manifest]) -> Find:
    """Looks templates up in documents that were read together."""
    known = {(manifest.namespace, manifest.object_name): manifest for manifest in manifests if manifest.is_template}
    return lambda namespace, name: known.get((namespace, name))


def merge(manifest: Manifest, find: Find) -> tuple[Manifest, list[YamlIssue]]:
    """The document with everything that it inherits; unchanged, with an issue, if a base is missing or in a cycle."""
    merged, chain, current = manifest.spec, [_qualified_name(manifest)], manifest
    seen = {(manifest.namespace, manifest.object_name)} if manifest.is_template else set()
    while current.base:
        base = _base(current, find)
        if base is None:
            return manifest, [_issue(manifest, f"there is no template '{current.base}' {_where(current)}", chain)]
        chain.append(_qualified_name(base))
        if (base.namespace, base.object_name) in seen:
            return manifest, [_issue(manifest, "the templates inherit from each other in a cycle", chain)]
        if base.kind is not manifest.kind:
            details = f"{base.object_name} is a {base.resource}; a base must have the same kind"
            return manifest, [_issue(manifest, details, chain)]
        seen.add((base.namespace, base.object_name))
        merged = _over(merged, base.spec)
        current = base
    return msgspec.structs.replace(manifest, spec=merged, end=current.end), []


class ServerTemplate(msgspec.Struct, frozen=True):
    """A template of the server: the key of its kind, and its document, which is empty for a REST template."""

    id: str
    kind: str
    manifest: str


#: A server's template by namespace and name, or None.
Fetch = Callable[[str, str], ServerTemplate | None]


def find_further(find: Find, fetch: Fetch) -> Find:
    """Looks a template up with `find`, then with `fetch`."""
    fetched: dict[tuple[str, str], Manifest | None] = {}

    def look(namespace: str, name: str) -> Manifest | None:
        manifest = find(namespace, name)
        if manifest is not None:
            return manifest
        if (namespace, name) not in fetched:
            stored = fetch(namespace, name)
            fetched[namespace, name] = None if stored is None else base_of(stored, namespace, name)
        return fetched[namespace, name]

    return look


def base_of(stored: ServerTemplate, namespace: str, name: str) -> Manifest:
    """A template of the server as a base. A REST template ends the chain; it has nothing to merge here."""
    if stored.manifest:
        return msgspec.structs.replace(read_manifests(stored.manifest)[0][0], namespace=namespace)
    kind = KINDS[stored.kind]
    return Manifest(
        node=YamlNode(MAPPING, {}, 0, 0),
        kind=kind,
        letter=kind.letter,
        resource=kind.resource,
        object_name=name,
        namespace=namespace,
        labels={},
        usage=TEMPLATE,
        base="",
        spec={},
        end=stored.id,
    )


def chain_of(manifest: Manifest, find: Find) -> list[Manifest]:
    """The templates that a document inherits from, the nearest first."""
    chain: list[Manifest] = []
    base = _base(manifest, find)
    while base is not None:
        chain.append(base)
        base = _base(base, find)
    return chain


def _base(manifest: Manifest, find: Find) -> Manifest | None:
    if not manifest.base:
        return None
    return find(manifest.namespace, manifest.base) or find(GLOBAL_NAMESPACE, manifest.base)


def _over(spec: dict[str, YamlNode], base: dict[str, YamlNode]) -> dict[str, YamlNode]:
    """The fields of the base, overridden by those of the spec."""
    merged = {name: node for name, node in base.items() if name not in _OWN}
    for name, node in spec.items():
        merged[name] = _over_items(node, merged[name]) if name in merged else node
    return merged


def _over_items(node: YamlNode, base: YamlNode) -> YamlNode:
    """Merge one field: its items override those of the base by key; anything else replaces the base."""
    if node.form is not MAPPING or base.form is not MAPPING:
        return node
    items, inherited = node.content.get("items"), base.content.get("items")
    if items is None or inherited is None or items.form is not MAPPING or inherited.form is not MAPPING:
        return node
    both = msgspec.structs.replace(items, content={**inherited.content, **items.content})
    return msgspec.structs.replace(node, content={"items": both})


def _qualified_name(manifest: Manifest) -> str:
    return f"{manifest.namespace}/{manifest.object_name}" if manifest.namespace else manifest.object_name


def _where(manifest: Manifest) -> str:
    namespace = manifest.namespace or "the project's namespace"
    return f"in {namespace}, nor in {GLOBAL_NAMESPACE}" if namespace != GLOBAL_NAMESPACE else f"in {namespace}"


def _issue(manifest: Manifest, details: str, chain: list[str]) -> YamlIssue:
    shown = f" ({' → '.join(chain)})" if len(chain) > 1 else ""
    base_nodes = (node for name, node in manifest.node.content.items() if name.lower() == _BASE.lower())
    return issue_at(next(base_nodes, manifest.node), f"spec.{_BASE}", f"{details}{shown}")
