"""The route that deletes, suspends or resumes several workloads of any kind."""

import uuid
from typing import Annotated, Literal

from msgspec import Meta
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.errors import status_of
from fairlead.api.http.operation import Call, Operation, RequestBody, as_json
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.control.workloads import lifecycle, read
from fairlead.kinds import KINDS
from fairlead.model.errors import ComplianceIssue, FairleadError, Refused, refuse_malformed
from fairlead.model.spec.fields import Spec

#: The most workloads of one request.
_MAX_WORKLOADS = 1000
_ACTIONS = {"delete": lifecycle.delete, "suspend": lifecycle.suspend, "resume": lifecycle.resume}


class WorkloadBatch(Spec, frozen=True, kw_only=True):
    ids: Annotated[tuple[Uuid, ...], Meta(min_length=1, max_length=_MAX_WORKLOADS)]
    action: Literal["delete", "suspend", "resume"]


class FailedItem(Shape):
    id: Uuid
    code: int
    message: str


class BatchAnswer(Shape):
    """The workloads for which the request was accepted, and those for which it was refused."""

    id: Uuid
    succeeded: list[Uuid]
    failed: list[FailedItem]


async def batch_workloads(call: Call) -> Response:
    batch = await receive_json(call, WorkloadBatch)
    refuse_malformed(
        [ComplianceIssue(f"ids[{number}]", "is not a UUID") for number, id in enumerate(batch.ids) if not _is_uuid(id)]
    )
    answer = BatchAnswer(id=call.context.new_id(), succeeded=[], failed=[])
    for id in dict.fromkeys(batch.ids):
        try:
            await _act(call, id, batch.action)
        except FairleadError as error:
            answer.failed.append(FailedItem(id=id, code=status_of(error, _ANSWERS), message=error.message))
        else:
            answer.succeeded.append(id)
    return as_json(answer)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


async def _act(call: Call, id: str, action: str) -> None:
    workload = await read.load_workload(call.context, call.caller, id)
    kind = KINDS[workload.kind]
    if action != "delete" and not kind.can_suspend:
        raise Refused(f"Workload {workload.name} was not changed: a workload of type {kind.title} cannot {action}")
    await _ACTIONS[action](call.context, call.caller, workload.kind, workload.id, call.request_id)


_ANSWERS = {**failing(400, 401, 403, 500, 503), 200: BatchAnswer}
BATCH_WORKLOAD_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/api/v1/workloads/batch",
        id="batch_workloads",
        tag="Workloads",
        summary="Delete, suspend or resume several workloads; the answer says which were accepted",
        run=batch_workloads,
        body=RequestBody(schema=WorkloadBatch),
        answers=_ANSWERS,
    ),
)
