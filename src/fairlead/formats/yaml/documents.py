"""Workload YAML (`run.ai/v2alpha1`): reads documents into submissions, and reports every mistake with its position.

Called by `apply`, `convert` and the server. It knows only the text, never what exists; the caller passes in a function
that finds the templates that a document names (`inherit.py`).
"""

from collections.abc import Collection

import msgspec

from fairlead.formats.check import find_violations, follows_from, normalize_sizes
from fairlead.formats.intermediate import PlainSecret
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.fields import YamlField, kind_names, kinds_with, resources, spellings, yaml_fields
from fairlead.formats.yaml.keywords import (
    API_VERSION,
    GLOBAL_NAMESPACE,
    OLDER_VERSION,
    OWN_VERSION,
    PREEMPTIBILITY_LABEL,
    PRIORITY_LABEL,
    TEMPLATE,
    near,
)
from fairlead.formats.yaml.spec import SpecReading
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
from fairlead.formats.yaml.values import InvalidValue, node_type_name, read_value
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, spec_violations
from fairlead.model.dialect import Dialect
from fairlead.model.records.organization import NAMESPACE_PREFIX, project_in
from fairlead.model.spec.fields import INT32_MAX, Spec, build
from fairlead.model.spec.names import name_violations
from fairlead.model.spec.rules import SubmissionLimits as RuleLimits
from fairlead.model.submission import Submission

_ROOT = ("apiVersion", "kind", "metadata", "spec", "status")
_METADATA = (
    "name",
    "namespace",
    "labels",
    "annotations",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "selfLink",
)


class Manifest(msgspec.Struct, kw_only=True):
    """One document: its head, and the nodes of its spec by their canonical names, not yet read by type."""

    #: The whole spec.
    node: YamlNode
    kind: Kind
    letter: str
    resource: str
    object_name: str
    #: Empty if the document names none.
    namespace: str
    labels: dict[str, YamlNode]
    usage: str
    base: str
    spec: dict[str, YamlNode]
    #: The id of the server's template at the end of what it inherits; only the server can merge it.
    end: str = ""

    @property
    def project(self) -> str:
        return project_in(self.namespace)

    @property
    def is_template(self) -> bool:
        return self.usage == TEMPLATE


class YamlWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read without mistakes."""

    kind: Kind
    name: str
    is_prefix: bool
    #: The project's name; empty if the document names none.
    project: str
    is_active: bool
    #: The spec as REST has it.
    plain: Plain
    spec: Spec
    #: What was accepted but changed: (YAML path, what).
    remarks: tuple[tuple[str, str], ...]
    #: Credentials in plain text in the document; the spec names the secrets that will contain them.
    secrets: tuple[PlainSecret, ...] = ()

    def submission(self, project_id: str, cluster_id: str) -> Submission:
        return Submission(
            kind=self.kind.key,
            name=self.name,
            use_given_name_as_prefix=self.is_prefix,
            project_id=project_id,
            cluster_id=cluster_id,
            spec=self.spec,
            dialect=Dialect.WORKLOAD_YAML,
            remarks=self.remarks,
        )


def read_manifests(
    text: str | bytes, file: str = "", limits: YamlLimits | None = None, skips: Collection[str] = ()
) -> tuple[list[Manifest], list[YamlIssue]]:
    """Every workload in the text, and every mistake in the heads of the documents; without those of kinds to skip."""
    nodes, issues = read_tree(text, file, limits)
    wanted = [node for node in nodes if not (skips and _kind_word(node) in skips)]
    manifests = [manifest for node in wanted if (manifest := _manifest(node, issues)) is not None]
    return manifests, issues


def _kind_word(node: YamlNode) -> str:
    kind = node.content.get("kind") if node.form is MAPPING else None
    return str(kind.content) if kind is not None and kind.form is SCALAR else ""


def read_workload(manifest: Manifest, *, checks_rules: bool = True) -> tuple[YamlWorkload | None, list[YamlIssue]]:
    """The workload of a document with its templates merged in; None and the issues if there are mistakes.

    Without `checks_rules` the caller checks names and the rules between members.
    """
    before = manifest
    manifest, turning = _turned(manifest)
    reading = read_spec(manifest)
    if turning and before.kind.switch is not None:
        _finish_turn(before, manifest, turning, reading)
    elif manifest.resource != manifest.kind.resource:
        reading.remark("kind", f"{manifest.resource} is an older kind; it runs as {manifest.kind.resource}")
    name, is_prefix = _read_name(manifest, reading, checks_rules)
    reading.name_secrets(name)
    if manifest.is_template:
        _refuse_secrets(reading)
    spec = _checked(manifest, reading, checks_rules)
    if spec is None or reading.issues:
        return None, reading.issues
    workload = YamlWorkload(
        kind=manifest.kind,
        name=name,
        is_prefix=is_prefix,
        project=manifest.project,
        is_active=reading.given.get("active", True),
        plain=reading.plain,
        spec=spec,
        remarks=tuple(reading.remarks),
        secrets=tuple(reading.secrets),
    )
    return workload, []


def _refuse_secrets(reading: SpecReading) -> None:
    for secret in reading.secrets:
        for path in secret.paths:
            details = "is a credential in plain text, which many can read in a template; use a secret with secretName"
            reading.issues.append(issue_at(reading.node, path, details))


def read_spec(manifest: Manifest) -> SpecReading:
    """The spec as REST has it, before declarations and rules are checked."""
    reading = SpecReading(manifest.kind, manifest.letter, manifest.node)
    reading.read({name: node for name, node in manifest.spec.items() if name in yaml_fields(manifest.kind)})
    _read_labels(manifest, reading)
    return reading


def _turned(manifest: Manifest) -> tuple[Manifest, str]:
    """The document as the kind that its fields turn it into, and the field that does so."""
    turn = manifest.kind.switch
    field = next((name for name in turn.fields if _is_meant(manifest.spec.get(name))), "") if turn else ""
    if turn is None or not field:
        return manifest, ""
    kind = KINDS[turn.kind]
    return msgspec.structs.replace(manifest, kind=kind, letter=kind.letter), field


def _finish_turn(before: Manifest, manifest: Manifest, turning: str, reading: SpecReading) -> None:
    path, value = before.kind.switch.sets if before.kind.switch else ("", "")
    reading.put(path, value, turning)
    resource = manifest.kind.resource
    reading.remark("kind", f"{before.resource} with {turning} is a job of several pods; it runs as {resource}")
    for name in [name for name in manifest.spec if name not in yaml_fields(manifest.kind)]:
        details = f"is given together with {turning}, which makes this a {resource}; that has no such field"
        reading.issues.append(issue_at(manifest.spec[name], f"spec.{name}", details))


def _is_meant(node: YamlNode | None) -> bool:
    """Whether a field is given and not false."""
    inner = node.content.get("value") if node is not None and node.form is MAPPING else node
    return node is not None and not (inner is not None and inner.form is SCALAR and inner.content.lower() == "false")


def _manifest(node: YamlNode, issues: list[YamlIssue]) -> Manifest | None:
    if node.form is not MAPPING:
        issues.append(
            issue_at(
                node, "", f"is {node_type_name(node)}; a document with apiVersion, kind, metadata and spec is expected"
            )
        )
        return None
    root = _members(node, "", _ROOT, issues)
    kind = _kind(node, root, issues)
    metadata = root.get("metadata")
    if metadata is None or metadata.form is not MAPPING:
        issues.append(issue_at(metadata or node, "metadata", "is missing; write metadata: {name: …, namespace: …}"))
        metadata = YamlNode(MAPPING, {}, node.line, node.column, False, node.file)
    members = _members(metadata, "metadata", _METADATA, issues)
    namespace = _namespace(members, issues)
    name = _word(members, "metadata.name", issues)
    if not name and "generateName" not in members:
        issues.append(issue_at(metadata, "metadata.name", "is missing; it is required"))
    spec = root.get("spec")
    if spec is None or spec.form is not MAPPING:
        issues.append(issue_at(spec or node, "spec", "is missing or not a mapping; it contains the workload's fields"))
        return None
    if kind is None:
        return None
    fields = _spec_nodes(kind, spec, issues)
    return Manifest(
        node=spec,
        kind=kind[0],
        letter=kind[1],
        resource=root["kind"].content,
        object_name=name,
        namespace=namespace,
        labels=_labels(members, issues),
        usage=_plain_word(kind[0], fields, "usage", issues) or "Submit",
        base=_plain_word(kind[0], fields, "baseWorkload", issues),
        spec=fields,
    )


def _members(node: YamlNode, path: str, known: tuple[str, ...], issues: list[YamlIssue]) -> dict[str, YamlNode]:
    for name, inner in node.content.items():
        if name not in known and len(issues) < MAX_ISSUES:
            field_path = f"{path}.{name[:80]}" if path else name[:80]
            issues.append(issue_at(inner, field_path, f"is not known{near(name, known)}"))
    content: dict[str, YamlNode] = node.content
    return content


def _word(members: dict[str, YamlNode], path: str, issues: list[YamlIssue]) -> str:
    node = members.get(path.rpartition(".")[2])
    if node is None:
        return ""
    if node.form is not SCALAR:
        issues.append(issue_at(node, path, f"is {node_type_name(node)}; a text is expected"))
        return ""
    return "" if node.is_null else str(node.content)


def _kind(node: YamlNode, root: dict[str, YamlNode], issues: list[YamlIssue]) -> tuple[Kind, str] | None:
    version, name = _word(root, "apiVersion", issues), _word(root, "kind", issues)
    if not version:
        issues.append(issue_at(node, "apiVersion", f"is missing; write apiVersion: {API_VERSION}"))
    if not name:
        issues.append(issue_at(node, "kind", f"is missing; the kinds are {', '.join(resources())}"))
        return None
    resource = resources().get(name)
    if resource is None:
        issues.append(
            issue_at(
                root["kind"], "kind", f"is '{name[:80]}', which is not a kind of workload{near(name, resources())}"
            )
        )
        return None
    allowed = (API_VERSION, OWN_VERSION if name == resource[0].resource else OLDER_VERSION)
    if version and version not in allowed:
        hint = "; `fairlead convert` converts Kubernetes objects into workloads" if version == "batch/v1" else ""
        issues.append(issue_at(root["apiVersion"], "apiVersion", f"is {version[:80]}; it must be {allowed[0]}{hint}"))
    return resource


def _namespace(members: dict[str, YamlNode], issues: list[YamlIssue]) -> str:
    namespace = _word(members, "metadata.namespace", issues)
    if namespace and namespace != GLOBAL_NAMESPACE and not namespace.startswith(NAMESPACE_PREFIX):
        details = f"is '{namespace[:80]}'; the namespace of a project is {NAMESPACE_PREFIX}<project>"
        issues.append(issue_at(members["namespace"], "metadata.namespace", details))
    return namespace


def _labels(members: dict[str, YamlNode], issues: list[YamlIssue]) -> dict[str, YamlNode]:
    node = members.get("labels")
    if node is None or node.is_null:
        return {}
    if node.form is not MAPPING:
        issues.append(issue_at(node, "metadata.labels", f"is {node_type_name(node)}; a mapping is expected"))
        return {}
    return {name: inner for name, inner in node.content.items() if inner.form is SCALAR}


def _spec_nodes(kind: tuple[Kind, str], spec: YamlNode, issues: list[YamlIssue]) -> dict[str, YamlNode]:
    """The entries of the spec by their canonical names; unknown ones and those of other kinds are refused."""
    known = spellings(kind[0])
    nodes: dict[str, YamlNode] = {}
    for name, node in spec.content.items():
        if len(issues) >= MAX_ISSUES:
            break
        field = known.get(name.lower())
        if field is None:
            issues.append(issue_at(node, f"spec.{name[:80]}", _unknown(kind[0], name)))
        elif kind[1] not in field.kinds:
            details = f"is not a field of this kind; it belongs to {kind_names(field.kinds)}"
            issues.append(issue_at(node, f"spec.{name}", details))
        elif field.name in nodes:
            issues.append(issue_at(node, f"spec.{name}", f"is {field.name} a second time; remove one of them"))
        else:
            nodes[field.name] = node
    return nodes


def _unknown(kind: Kind, name: str) -> str:
    letters = kinds_with(name)
    if letters:
        return f"is not a field of this kind; it belongs to {kind_names(letters)}"
    return f"is not a field of workload YAML{near(name, yaml_fields(kind))}"


def _plain_word(kind: Kind, fields: dict[str, YamlNode], name: str, issues: list[YamlIssue]) -> str:
    """`usage` and `baseWorkload` are written without `value:`."""
    node = fields.pop(name, None)
    if node is None or node.is_null:
        return ""
    field: YamlField = yaml_fields(kind)[name]
    if node.form is not SCALAR:
        issues.append(issue_at(node, f"spec.{name}", f"is {node_type_name(node)}; write it without value: — {name}: …"))
        return ""
    try:
        return str(read_value(field, node))
    except InvalidValue as wrong:
        issues.append(issue_at(node, f"spec.{name}", str(wrong)))
        return ""


def _read_labels(manifest: Manifest, reading: SpecReading) -> None:
    """Priority and preemptibility are labels of the object."""
    for label, path in ((PRIORITY_LABEL, "priorityClass"), (PREEMPTIBILITY_LABEL, "preemptibility")):
        node = manifest.labels.get(label)
        if node is None:
            continue
        if reading.get(path) not in (None, node.content):
            details = f"is {node.content[:80]}, and the spec says {reading.get(path)}; remove one of them"
            reading.issues.append(issue_at(node, f"metadata.labels.{label}", details))
        reading.put_at(path, node.content, f"metadata.labels.{label}", node)


def _read_name(manifest: Manifest, reading: SpecReading, checks_rules: bool) -> tuple[str, bool]:
    """Exactly one of name and namePrefix; a template needs neither."""
    name, prefix = reading.given.get("name"), reading.given.get("namePrefix")
    if name is not None and prefix is not None:
        reading.wrong("namePrefix", "is given together with name; exactly one of them is allowed")
    chosen = name if name is not None else prefix
    if chosen is None:
        if not manifest.is_template and not {"name", "namePrefix"} & set(manifest.spec):
            reading.wrong("name", "is missing; write name: {value: …} or namePrefix: {value: …}")
        return manifest.object_name, False
    is_prefix = name is None
    for violation in name_violations(chosen, is_prefix) if checks_rules else ():
        reading.wrong("namePrefix" if is_prefix else "name", violation.details)
    return chosen, is_prefix


def _checked(manifest: Manifest, reading: SpecReading, checks_rules: bool) -> Spec | None:
    """The typed spec; None if it violates the declarations, which does not stop the check of rules between members."""
    kind = manifest.kind
    spec: Spec | None = None
    wrong: set[str] = set()
    normalize_sizes(kind.spec, reading.plain)
    try:
        spec = msgspec.convert(reading.plain, kind.spec)
    except msgspec.ValidationError:
        flaws = find_violations(kind.spec, reading.plain, "")
        wrong = {flaw.path for flaw in flaws}
        for flaw in flaws:
            reading.wrong_at(flaw.path, flaw.details)
        built = build(kind.spec, {name: value for name, value in reading.plain.items() if not _is_in(name, wrong)})
    else:
        built = spec
    if manifest.is_template or manifest.end or not checks_rules:
        # A missing member comes from the template.
        return spec
    for violation in spec_violations(kind, built, "spec", RuleLimits(completions=INT32_MAX)):
        if not follows_from(violation, {f"spec.{path}" for path in wrong}):
            reading.wrong_at(violation.path.removeprefix("spec."), violation.details)
    return spec


def _is_in(name: str, wrong: set[str]) -> bool:
    return any(path == name or path.startswith((f"{name}.", f"{name}[")) for path in wrong)
