"""Admission webhooks for workloads and policies that are applied to a cluster. An addition.

They check whether the user may apply it, and record who the user is.

Served if the engine is a cluster. The API server calls without a token of ours; the answer contains only what is wrong
with its object, and changes nothing but the user's name. Objects that bypass the webhook are checked again by
`control/custom_resources/`.
"""

import base64
from typing import Any

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import read_body
from fairlead.api.http.operation import Call, Handler, Operation, RequestBody, as_json
from fairlead.control.custom_resources.policies import check_policy, is_policy
from fairlead.control.custom_resources.reader import (
    CALLER,
    check_change,
    check_resource,
    find_created_for,
    owned_by_system,
)
from fairlead.control.custom_resources.status import refusal_message
from fairlead.formats.custom_resource import CREATED_FOR, find_custom_kind
from fairlead.model.custom_resource import CustomResource
from fairlead.model.errors import FairleadError, Invalid

PATH = "/kubernetes/admission"


class _Metadata(msgspec.Struct):
    name: str = ""
    generate_name: str = msgspec.field(name="generateName", default="")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Object(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: dict[str, Any] = {}


class _User(msgspec.Struct):
    username: str = ""


class _Question(msgspec.Struct, rename="camel"):
    uid: str
    user_info: _User = msgspec.field(default_factory=_User)
    operation: str = ""
    namespace: str = ""
    object: _Object | None = None
    old_object: _Object | None = None


class AdmissionReview(msgspec.Struct, rename="camel"):
    """An AdmissionReview of `admission.k8s.io/v1`."""

    request: _Question
    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"


async def admit(call: Call) -> Response:
    review = await _read_review(call)
    question, applied = review.request, review.request.object
    if applied is not None and is_policy(_render(question, applied)):
        return await _admit_policy(call, review, _render(question, applied))
    return _answer(review, await _refusal(call, question))


async def _admit_policy(call: Call, review: AdmissionReview, resource: CustomResource) -> Response:
    """kubectl prints what is lost as warnings."""
    try:
        losses = await check_policy(call.context, resource, is_new=review.request.operation == "CREATE")
    except FairleadError as error:
        return _answer(review, _refusal_text(error))
    return _answer(review, change={"warnings": [f"lost: {loss}"[:256] for loss in losses]} if losses else None)


async def fill_in(call: Call) -> Response:
    """Write the user into a new object, because only the webhook knows who applied it; a later edit cannot change it.

    What the system fills in is overwritten if somebody sends it back, so that an object can be read and applied again.
    """
    review = await _read_review(call)
    applied, old = review.request.object, review.request.old_object
    kind = find_custom_kind(applied.kind) if applied is not None else None
    if applied is None or kind is None or review.request.operation not in ("CREATE", "UPDATE"):
        return _answer(review)
    wanted = dict(applied.spec)
    for name in owned_by_system(kind.key):
        if old is None:
            wanted.pop(name, None)
        elif name in old.spec and name not in wanted:
            wanted[name] = old.spec[name]
    if "userId" in owned_by_system(kind.key):
        owner = await _find_owner(call, review.request, applied) if old is None else old.spec.get("userId")
        wanted |= {"userId": owner} if owner else {}
    patch = [
        {"op": "add", "path": f"/spec/{name}", "value": wanted[name]}
        if name in wanted
        else {"op": "remove", "path": f"/spec/{name}"}
        for name in owned_by_system(kind.key)
        if wanted.get(name) != applied.spec.get(name)
    ]
    if not patch:
        return _answer(review)
    text = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _answer(review, change={"patchType": "JSONPatch", "patch": text})


async def _find_owner(call: Call, question: _Question, applied: _Object) -> dict[str, str] | None:
    """Whoever applies it; for an object that the server creates, whoever submitted its workload."""
    workload = await find_created_for(call.context, _render(question, applied))
    name = question.user_info.username if workload is None else workload.created_by
    return {"value": name} if name else None


async def _read_review(call: Call) -> AdmissionReview:
    body = await read_body(call.request, "application/json")
    try:
        return msgspec.json.decode(body, type=AdmissionReview)
    except msgspec.DecodeError as error:
        raise Invalid(f"The body is not a valid AdmissionReview: {error}") from error


def _answer(review: AdmissionReview, refusal: str = "", change: dict[str, Any] | None = None) -> Response:
    answer: dict[str, Any] = {"uid": review.request.uid, "allowed": not refusal, **(change or {})}
    if refusal:
        answer["status"] = {"message": refusal, "code": 422, "reason": "Invalid"}
    return as_json({"apiVersion": review.api_version, "kind": review.kind, "response": answer})


async def _refusal(call: Call, question: _Question) -> str:
    """Why the object is refused; empty if it is admitted."""
    applied = question.object
    old = question.old_object if question.operation == "UPDATE" else None
    if applied is None or (old is not None and applied.spec == old.spec):
        return ""
    try:
        resource = _render(question, applied)
        if old is not None and not all(one.spec.get("usage") == "Template" for one in (old, applied)):
            await check_change(call.context, _render(question, old), resource)
        elif question.operation in ("CREATE", "UPDATE") and await find_created_for(call.context, resource) is None:
            await check_resource(call.context, CALLER, resource)
    except FairleadError as error:
        return _refusal_text(error)
    return ""


def _refusal_text(error: FairleadError) -> str:
    return refusal_message(error) if isinstance(error, Invalid) else error.message


def _render(question: _Question, applied: _Object) -> CustomResource:
    name = applied.metadata.name or f"{applied.metadata.generate_name}new"
    annotations = applied.metadata.annotations
    metadata = {"name": name, "namespace": question.namespace, "labels": applied.metadata.labels}
    metadata["annotations"] = annotations
    text = {"apiVersion": applied.api_version, "kind": applied.kind, "metadata": metadata, "spec": applied.spec}
    return CustomResource(
        id=question.uid,
        kind=applied.kind,
        uid=question.uid,
        namespace=question.namespace,
        name=name,
        text=msgspec.json.encode(text),
        generation=1,
        created_for=annotations.get(CREATED_FOR, ""),
    )


def _operation(path: str, id: str, summary: str, run: Handler) -> Operation:
    return Operation(
        method="POST",
        path=path,
        id=id,
        tag="Operating",
        summary=summary,
        run=run,
        body=RequestBody(schema=AdmissionReview),
        answers={200: {"type": "object"}},
        is_public=True,
        is_addition=True,
    )


ADMISSION_OPERATIONS = (
    _operation(PATH, "admit_object", "Validate a workload or a policy that a user applies to a cluster", admit),
    _operation(f"{PATH}/owner", "fill_in_owner", "Record the user who applies a workload to a cluster", fill_in),
)
