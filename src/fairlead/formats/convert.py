"""From one dialect to another: what a text is, the workloads in it, and each of them in the dialect that is wanted.

Called by the command `convert`. Command lines are read by the command line itself, Kubernetes objects are rendered by
their engine; everything else is here. Nothing disappears silently: every member that is not carried is listed.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.formats import neighbours
from fairlead.formats.command_line import render_command, render_line
from fairlead.formats.convert_losses import Loss, leaves
from fairlead.formats.kubernetes_objects import read_job
from fairlead.formats.neighbours import Found
from fairlead.formats.neighbours_slurm import read_sbatch
from fairlead.formats.rest import beside_names, read_submission
from fairlead.formats.workload_yaml import Manifest, YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml_merge import Fetch, Find, Kept, chain_of, find_among, find_further, merge
from fairlead.formats.yaml_names import API_VERSION
from fairlead.formats.yaml_spec import PlainSecret
from fairlead.formats.yaml_tree import read_tree, render_tree
from fairlead.formats.yaml_values import read_plain
from fairlead.formats.yaml_write import declared, render_document, render_yaml
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.errors import Invalid
from fairlead.model.fields import struct_members

REST, YAML, FLAGS = "rest", "yaml", "flags"
SBATCH, JOB, DSTACK, SKYPILOT = "sbatch", "kubernetes", "dstack", "skypilot"
DIALECTS = (REST, YAML, SBATCH, JOB, DSTACK, SKYPILOT)
_REQUEST = ("name", "useGivenNameAsPrefix", "projectId", "clusterId", "templateId", "spec")
#: What the interface shows of a workload beside what was sent.
_SHOWN = (
    "workloadId",
    "requestedName",
    "departmentId",
    "createdBy",
    "createdAt",
    "deletedAt",
    "desiredPhase",
    "actualPhase",
)
_STATE = "tells how far a workload has come, not what it is"
#: Stands in for ids that only a server knows, while a request is checked.
_NOWHERE = "00000000-0000-0000-0000-000000000000"


class Unconvertible(Exception):
    """The text cannot be read; every reason is a line of its own."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """A workload between two dialects."""

    kind: Kind
    name: str
    is_prefix: bool = False
    #: The project's name, where the dialect names one.
    project: str = ""
    is_active: bool = True
    #: The spec as REST has it.
    spec: dict[str, Any]
    losses: list[Loss] = []
    #: What was read otherwise than written: (path, what).
    remarks: list[tuple[str, str]] = []
    #: Credentials that stood in the text; the spec names secrets that are to hold them.
    secrets: list[PlainSecret] = []
    #: The kind of object that it was written as, and the server's template at the end of what it inherits.
    origin: str = ""
    template_id: str = ""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    plain: Any
    losses: list[Loss]


def detect(text: str) -> str:
    """The dialect of a text, by its first signs."""
    if "#SBATCH" in text[:100_000]:
        return SBATCH
    request = _json(text)
    if request is not None and "apiVersion" not in request and ("spec" in request or "projectId" in request):
        return REST
    documents, issues = read_tree(text)
    if not documents:
        raise Unconvertible([str(issue) for issue in issues] or ["The text is empty."])
    content = documents[0].content
    if not isinstance(content, dict):
        raise Unconvertible(["The text is no workload in a dialect that is known; name it with --from."])
    version = content["apiVersion"].content if "apiVersion" in content else ""
    if version == "batch/v1":
        return JOB
    if version:
        return YAML
    if "type" in content and "spec" not in content:
        return DSTACK
    if "spec" in content or "projectId" in content:
        return REST
    if {"run", "setup", "resources"} & set(content):
        return SKYPILOT
    raise Unconvertible(["The text is no workload in a dialect that is known; name it with --from."])


def read_any(text: str, dialect: str, kind: Kind | None = None, file: str = "") -> list[Converted]:
    """The workloads of a text. `kind` is what dialects that name none are taken for."""
    if dialect == YAML:
        return _read_yaml(text, file)
    request = _json(text) if dialect == REST else None
    if request is not None:
        return [_read_rest(kind or _kind_of(request), request)]
    first = next(iter(KINDS.values()))
    if dialect == SBATCH:
        return [_found(kind or first, read_sbatch(text))]
    documents, issues = read_tree(text, file)
    if issues:
        raise Unconvertible([str(issue) for issue in issues])
    plains = [read_plain(document) for document in documents]
    if not all(isinstance(plain, dict) for plain in plains):
        raise Unconvertible(["The text holds something that is no object."])
    if dialect == REST:
        return [_read_rest(kind or _kind_of(plain), plain) for plain in plains]
    readers = {JOB: read_job, DSTACK: neighbours.read_dstack, SKYPILOT: neighbours.read_skypilot}
    return [_found(kind or first, _read_foreign(readers[dialect], plain, dialect)) for plain in plains]


def _read_foreign(reader: Callable[[dict[str, Any]], Found], plain: dict[str, Any], dialect: str) -> Found:
    """What another system's description says. Its shape is its own system's affair, so any of it may be wrong."""
    try:
        return reader(plain)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unconvertible([f"The text is no description of {dialect} that can be read: {error}."]) from error


def _json(text: str) -> dict[str, Any] | None:
    """The object that a text of JSON holds: read as JSON, texts stay texts. None for any other text."""
    if text.lstrip()[:1] != "{":
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _kind_of(request: dict[str, Any]) -> Kind:
    """The first kind that knows every member of a request; REST names it in the path alone."""
    spec = request.get("spec")
    given = {*(spec if isinstance(spec, dict) else ()), *(name for name in request if name not in (*_REQUEST, *_SHOWN))}
    fitting = [kind for kind in KINDS.values() if given <= set(struct_members(kind.spec))]
    return next(iter(fitting or KINDS.values()))


def _read_yaml(text: str, file: str) -> list[Converted]:
    return read_files([(file, text)])[0]


class TemplateFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document with usage Template."""

    name: str
    namespace: str
    #: The document by itself, as a server keeps it.
    manifest: str


def read_files(
    files: list[tuple[str, str]], fetch: Fetch | None = None, namespace: Callable[[], str] | None = None
) -> tuple[list[Converted], list[TemplateFile]]:
    """The workloads in files of workload YAML, and the templates beside them, which may be in any file.

    `namespace` is asked for what documents that name none are in, `fetch` for templates that are in no file.
    """
    manifests, issues = [], []
    for file, text in files:
        found, wrong = read_manifests(text, file)
        manifests += found
        issues += wrong
    if namespace is not None and any(not manifest.namespace for manifest in manifests):
        manifests = [_in_namespace(manifest, namespace()) for manifest in manifests]
    find = find_among(manifests)
    find = find if fetch is None else find_further(find, fetch)
    workloads = []
    for manifest in manifests:
        merged, broken = merge(manifest, find)
        workload, wrong = read_workload(merged) if not broken else (None, [])
        issues += broken + wrong
        if workload is not None and not manifest.is_template:
            workloads.append(_from_yaml(workload, manifest.resource, merged.end))
    if issues:
        raise Unconvertible([str(issue) for issue in sorted(set(issues))])
    templates = [manifest for manifest in manifests if manifest.is_template]
    return workloads, [_template_file(one) for one in sorted(templates, key=lambda one: _depth(one, find))]


def _depth(manifest: Manifest, find: Find) -> int:
    """How many templates it inherits from; those come before it."""
    return len(chain_of(manifest, find))


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    return manifest if manifest.namespace else msgspec.structs.replace(manifest, namespace=namespace)


def _template_file(manifest: Manifest) -> TemplateFile:
    """The document by itself, without what is its file's and its server's affair."""
    metadata = {"name": manifest.object_name, "namespace": manifest.namespace}
    labels = {name: node.content for name, node in manifest.labels.items()}
    head = {
        "apiVersion": API_VERSION,
        "kind": manifest.resource,
        "metadata": metadata | ({"labels": labels} if labels else {}),
    }
    text = f'{msgspec.json.encode(head).decode()[:-1]},"spec":{render_tree(manifest.node)}}}'
    return TemplateFile(name=manifest.object_name, namespace=manifest.namespace, manifest=text)


def kept_template(id: str, kind: str, manifest: str) -> Kept:
    """A server's template, for `fetch`; `kind` is the title that it has in lists."""
    key = next((key for key, one in KINDS.items() if one.title == kind), "")
    return Kept(id, key, manifest)


def _from_yaml(workload: YamlWorkload, origin: str = "", template_id: str = "") -> Converted:
    return Converted(
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
            Loss(path=path, reason=f"is a credential in plain text; its place is the secret {secret.name}")
            for secret in workload.secrets
            for path in secret.paths
        ],
        secrets=list(workload.secrets),
    )


def _read_rest(kind: Kind, body: dict[str, Any]) -> Converted:
    """A creation request of either dialect, or a workload as the interface shows it."""
    known = (*_REQUEST, *beside_names(kind))
    request = {name: value for name, value in body.items() if name in known}
    losses = [Loss(path=name, reason=_STATE, value=value) for name, value in body.items() if name not in known]
    filled = {"name": "workload", "projectId": "0", "clusterId": _NOWHERE, **request}
    try:
        submission = read_submission(kind, msgspec.json.encode(filled))
    except Invalid as invalid:
        raise Unconvertible([f"{issue.field}: {issue.details}" for issue in invalid.issues]) from None
    ids = ("projectId", "clusterId", "templateId")
    losses += [
        Loss(path=name, reason="is an id that only its server knows", value=request[name])
        for name in ids
        if request.get(name) is not None
    ]
    spec = msgspec.json.decode(msgspec.json.encode(submission.spec))
    return Converted(
        kind=kind,
        name=submission.name,
        is_prefix=submission.use_given_name_as_prefix,
        spec=spec,
        losses=losses,
        remarks=list(submission.remarks),
    )


def _found(kind: Kind, found: Found) -> Converted:
    return Converted(
        kind=kind, name=_label(found.name), project=found.project, spec=found.spec, losses=list(found.losses)
    )


def _label(name: str) -> str:
    """A foreign name as a workload may be called."""
    label = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower()).strip("-")
    return (label if label[:1].isalpha() else f"w-{label}".rstrip("-"))[:63] or "workload"


def _below(losses: list[Loss]) -> list[Loss]:
    return [msgspec.structs.replace(loss, path=f"spec.{loss.path}") for loss in losses]


def render(workload: Converted, dialect: str, program: str = "fairlead") -> Rendered:
    """The workload in another dialect; losses of the way in come first."""
    if dialect == REST:
        return _render_rest(workload)
    if dialect == YAML:
        if not workload.kind.letter:
            raise Unconvertible([f"Workload YAML has no {workload.kind.title}; REST and the command line have."])
        document, losses = render_document(
            workload.kind,
            workload.spec,
            workload.name,
            is_prefix=workload.is_prefix,
            project=workload.project,
            active=workload.is_active,
        )
        return Rendered(text=render_yaml(document), plain=document, losses=workload.losses + _below(losses))
    return _render_flags(workload, program)


def request_body(workload: Converted) -> dict[str, Any]:
    """The creation request without the ids that only a server knows."""
    beside = beside_names(workload.kind)
    spec = {name: value for name, value in workload.spec.items() if name not in beside}
    body = {"name": workload.name, "useGivenNameAsPrefix": workload.is_prefix, "spec": spec}
    return body | {name: workload.spec[name] for name in beside if name in workload.spec}


def _render_rest(workload: Converted) -> Rendered:
    body = request_body(workload)
    losses = list(workload.losses)
    if workload.project:
        reason = "REST takes the project's id; `submit -f FILE -p PROJECT` fills it in"
        losses.append(Loss(path="metadata.namespace", reason=reason, value=workload.project))
    if not workload.is_active:
        losses.append(
            Loss(path="spec.active", reason="a request cannot be suspended; suspend the workload", value=False)
        )
    text = msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
    return Rendered(text=text, plain=body, losses=losses)


def _render_flags(workload: Converted, program: str) -> Rendered:
    command, spec = _command(workload)
    flags, words, losses = render_command(workload.kind, spec)
    losses = workload.losses + _below(losses)
    line = [program, *command, "submit"]
    if workload.is_prefix:
        line += ["--name-prefix", workload.name]
        reason = "a number is added to a prefix on the command line, not random characters"
        losses.append(Loss(path="useGivenNameAsPrefix", reason=reason, value=True))
    else:
        line.append(workload.name)
    if workload.project:
        line += ["-p", workload.project]
    if not workload.is_active:
        losses.append(
            Loss(path="spec.active", reason="a command submits; suspend the workload afterwards", value=False)
        )
    whole = [*line, *flags, *(["--", *words] if words else [])]
    return Rendered(text=render_line(line, flags, words), plain=whole, losses=losses)


def _command(workload: Converted) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The words of the command, and what they leave to the flags: a sub-type's command says a member by itself."""
    for words, (member, value) in workload.kind.subtypes:
        if workload.spec.get(member) == value:
            return words, {name: inner for name, inner in workload.spec.items() if name != member}
    return workload.kind.command, workload.spec


def rendered_objects(workload: Converted, objects: list[dict[str, Any]], losses: list[Loss]) -> Rendered:
    """Kubernetes objects that were rendered elsewhere, as text."""
    return Rendered(text=render_yaml(*objects), plain=objects, losses=workload.losses + _below(losses))


def from_stored(kind: Kind, name: str, project: str, spec: dict[str, Any], is_active: bool) -> Converted:
    """A workload that a server has."""
    return Converted(kind=kind, name=name, project=project, spec=spec, is_active=is_active)


def in_project(workload: Converted, project: str) -> Converted:
    """The same workload in another project, named by the caller; a project's id is then no loss."""
    losses = [loss for loss in workload.losses if loss.path != "projectId"]
    return msgspec.structs.replace(workload, project=project, losses=losses)


def from_request(kind: str, body: dict[str, Any], project: str) -> Converted:
    """A workload that somebody else has put together as a creation request."""
    return msgspec.structs.replace(_read_rest(KINDS[kind], body), project=project)


def find_kind(name: str | None) -> Kind:
    """A kind by any of its names; the first of all where none is asked for."""
    if name is None:
        return next(iter(KINDS.values()))
    for kind in KINDS.values():
        if name.lower() in {kind.key, kind.title.lower(), kind.rest, kind.resource.lower()}:
            return kind
    raise Unconvertible([f"There is no kind '{name}'; there are {', '.join(KINDS)}."])


def altered(workload: Converted, members: dict[str, Any]) -> Converted:
    """The same workload with other members."""
    return msgspec.structs.replace(workload, **members)


def differences(kind: Kind, now: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Paths at which two specs mean something different: null, and what holds anyway, are the same as left out."""
    first, second = _meant(kind, now), _meant(kind, wanted)
    return sorted(path for path in {*first, *second} if first.get(path) != second.get(path))


def _meant(kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for path, value in leaves(spec).items():
        field = declared(kind, path)
        is_default = field is not None and field.about.default is not None and field.about.default == value
        if value is not None and value not in ([], {}) and not is_default:
            found[path] = value
    return found
