"""Reads files of workload YAML into workloads, with the templates that the files contain.

Called by `convert`, `apply`, `diff` and `delete`. The caller passes in a function that fetches templates that are in no
file.
"""

from collections.abc import Callable, Collection

import msgspec

from fairlead.formats.intermediate import IntermediateWorkload, Unconvertible
from fairlead.formats.losses import Loss
from fairlead.formats.yaml.documents import Manifest, YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.inherit import Fetch, Find, ServerTemplate, chain_of, find_among, find_further, merge
from fairlead.formats.yaml.keywords import API_VERSION
from fairlead.formats.yaml.tree import render_tree
from fairlead.kinds import KINDS


class TemplateFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document with usage Template."""

    name: str
    namespace: str
    #: The document alone, as the server stores it.
    manifest: str


def read_files(
    files: list[tuple[str, str]],
    fetch: Fetch | None = None,
    namespace: Callable[[], str] | None = None,
    *,
    checks_rules: bool = True,
    skips: Collection[str] = (),
) -> tuple[list[IntermediateWorkload], list[TemplateFile]]:
    """The workloads in files of workload YAML, and the templates, which may be in any file.

    `namespace` gives the namespace of documents that name none, `fetch` gives templates that are in no file.
    Without `checks_rules` the caller checks names and the rules between members. Documents whose kind is in `skips`
    are left out.
    """
    manifests, issues = [], []
    for file, text in files:
        documents, wrong = read_manifests(text, file, skips=skips)
        manifests += documents
        issues += wrong
    if namespace is not None and any(not manifest.namespace for manifest in manifests):
        manifests = [_in_namespace(manifest, namespace()) for manifest in manifests]
    find = find_among(manifests)
    find = find if fetch is None else find_further(find, fetch)
    workloads = []
    for manifest in manifests:
        merged, broken = merge(manifest, find)
        workload, wrong = read_workload(merged, checks_rules=checks_rules) if not broken else (None, [])
        issues += broken + wrong
        if workload is not None and not manifest.is_template:
            workloads.append(_from_yaml(workload, manifest.resource, merged.end))
    if issues:
        raise Unconvertible([str(issue) for issue in sorted(set(issues))])
    templates = [manifest for manifest in manifests if manifest.is_template]
    return workloads, [_template_file(one) for one in sorted(templates, key=lambda one: _depth(one, find))]


def _depth(manifest: Manifest, find: Find) -> int:
    """How many templates it inherits from; those must come first."""
    return len(chain_of(manifest, find))


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    return manifest if manifest.namespace else msgspec.structs.replace(manifest, namespace=namespace)


def _template_file(manifest: Manifest) -> TemplateFile:
    """The document alone, without what belongs to its file or its server."""
    metadata = {"name": manifest.object_name, "namespace": manifest.namespace}
    labels = {name: node.content for name, node in manifest.labels.items()}
    head = {
        "apiVersion": API_VERSION,
        "kind": manifest.resource,
        "metadata": metadata | ({"labels": labels} if labels else {}),
    }
    text = f'{msgspec.json.encode(head).decode()[:-1]},"spec":{render_tree(manifest.node)}}}'
    return TemplateFile(name=manifest.object_name, namespace=manifest.namespace, manifest=text)


def server_template(id: str, kind: str, manifest: str) -> ServerTemplate:
    """A template of the server, for `fetch`; `kind` is its title in lists."""
    key = next((key for key, one in KINDS.items() if one.title == kind), "")
    return ServerTemplate(id, key, manifest)


def _from_yaml(workload: YamlWorkload, origin: str = "", template_id: str = "") -> IntermediateWorkload:
    return IntermediateWorkload(
        origin=origin,
        template_id=template_id,
        kind=workload.kind,
        name=workload.name,
        is_prefix=workload.is_prefix,
        project=workload.project,
        is_active=workload.is_active,
        spec=workload.plain,
        remarks=list(workload.remarks),
        losses=[
            Loss(path=path, reason=f"is a credential in plain text; it belongs in the secret {secret.name}")
            for secret in workload.secrets
            for path in secret.paths
        ],
        secrets=list(workload.secrets),
    )
