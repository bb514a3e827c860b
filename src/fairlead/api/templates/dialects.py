"""Workloads and templates in other dialects than REST: templates as workload YAML, workloads as workload YAML, as a
command line, as Python, as a request or as Kubernetes objects. An addition of Fairlead.
"""

from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.control.context import Context
from fairlead.control.lists import normal_id
from fairlead.control.serving.urls import first_url
from fairlead.control.workloads import read, template_yaml, templates
from fairlead.formats.convert import to_flags, to_python, to_rest, to_yaml
from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload, Unconvertible, from_stored
from fairlead.formats.losses import Loss
from fairlead.kinds import KINDS
from fairlead.model.errors import Invalid
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.spec.fields import FieldInfo, Spec

_TEMPLATES = "/api/v1/workload-templates"
#: Dialects by their name in the path, and their writers.
_WRITERS = {
    "yaml": to_yaml.render,
    "rest": to_rest.render,
    "command": to_flags.render,
    "python": to_python.render,
}
#: Jobs, Deployments, Services and so on, as the engine for clusters would create them.
_OBJECTS = "kubernetes"
DIALECTS = (*_WRITERS, _OBJECTS)
_FAILURES = {400: Error, 401: Error, 403: Error, 404: Error, 500: Error, 503: Error}
_ID = {"type": "string", "format": "uuid"}


class ManifestBody(Spec, frozen=True, kw_only=True):
    manifest: Annotated[str, FieldInfo(text="A document of workload YAML with `usage: Template`.")]


class ManifestView(Shape):
    """A template as a document; empty if it was not written as one."""

    id: Uuid
    name: str
    manifest: str


class StoredView(Shape):
    id: Uuid
    name: str
    #: Whether it was created or updated.
    change: Literal["created", "changed", "unchanged"]


async def put_manifest(call: Call) -> Response:
    body = await receive_json(call, ManifestBody)
    template, change = await template_yaml.store_manifest(call.context, call.caller, body.manifest, call.request_id)
    return as_json({"id": template.id, "name": template.name, "change": change})


async def get_manifest(call: Call) -> Response:
    id = normal_id(call.path["templateId"], "template")
    template = await templates.load_template(call.context, call.caller, id)
    return as_json(ManifestView(id=template.id, name=template.name, manifest=template.manifest))


async def get_in_dialect(call: Call) -> Response:
    """The workload in another dialect; comments at the beginning list what the dialect cannot express."""
    dialect = call.path["dialect"]
    if dialect not in DIALECTS:
        raise Invalid(f"There is no dialect {dialect[:60]!r}; use {', '.join(DIALECTS)}")
    workload = await read.load_readable(call.context, call.caller, call.path["workloadId"])
    stored = from_stored(
        KINDS[workload.kind],
        workload.name,
        workload.project_name,
        msgspec.json.decode(workload.spec),
        workload.desired_phase is not DesiredPhase.STOPPED,
    )
    try:
        project = call.context.directory.projects.get(workload.project_id)
        rendered = write_in_dialect(call.context, stored, dialect, project.namespace if project else "")
    except Unconvertible as unconvertible:
        raise Invalid(" ".join(unconvertible.lines)) from None
    comments = [] if dialect == "rest" else render_losses(rendered.losses)
    if dialect == "yaml":
        # Fields that the system sets are refused from users. As comments, the document can be applied as it is.
        url = first_url(workload, call.context.url_registry.settings)
        owned = {"userId": workload.created_by, "ingressUrl": url}
        comments += [f"# set by the system: spec.{name}: {value}\n" for name, value in owned.items() if value]
    return Response("".join(comments) + rendered.text, media_type="text/plain; charset=utf-8")


def write_in_dialect(
    context: Context, workload: IntermediateWorkload, dialect: str, namespace: str = ""
) -> ConversionResult:
    """In one of `DIALECTS`; raises Unconvertible. Without a namespace, objects are in the usual one of the project."""
    if dialect != _OBJECTS:
        return _WRITERS[dialect](workload)
    project = workload.project or "default"
    objects, losses = context.render_objects(workload.kind, workload.name, project, workload.spec, namespace)
    return to_yaml.render_objects(workload, objects, losses)


def render_losses(losses: list[Loss]) -> list[str]:
    """One comment for each loss, above the text."""
    return [f"# {'not converted' if loss.is_gone else 'converted with changes'}: {loss}\n" for loss in losses]


MANIFEST_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="PUT",
        path=f"{_TEMPLATES}/manifests",
        id="store_template_manifest",
        tag="Templates",
        summary="Create or change a template from a document of workload YAML",
        run=put_manifest,
        body=RequestBody(schema=ManifestBody),
        answers={200: StoredView, **_FAILURES},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path=f"{_TEMPLATES}/{{templateId}}/manifest",
        id="get_template_manifest",
        tag="Templates",
        summary="Get a template as the document that it was created from",
        run=get_manifest,
        parameters=(Parameter(name="templateId", place="path", schema=_ID),),
        answers={200: ManifestView, **_FAILURES},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/workloads/{workloadId}/as/{dialect}",
        id="get_workload_as",
        tag="Workloads",
        summary="Get a workload as YAML, command line, Python or Kubernetes objects, or as the request for another one",
        run=get_in_dialect,
        parameters=(
            Parameter(name="workloadId", place="path", schema=_ID),
            Parameter(name="dialect", place="path", schema={"type": "string", "enum": list(DIALECTS)}),
        ),
        answers={200: {"type": "string"}, **_FAILURES},
        content_type="text/plain",
        is_addition=True,
    ),
)
