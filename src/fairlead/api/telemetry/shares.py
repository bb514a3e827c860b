"""Quotas and fair shares of GPUs at this moment. An addition of Fairlead."""

from typing import Literal

from starlette.responses import Response

from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, as_json
from fairlead.api.http.shapes import Shape
from fairlead.control.telemetry.gpu_shares import GpuShare, list_gpu_shares
from fairlead.model.records.organization import Project


class GpuShareView(Shape):
    """The GPUs of a project or department in one node pool, as of the last scheduling cycle."""

    type: Literal["project", "department"]
    id: str
    name: str
    node_pool: str
    #: Null is unlimited.
    quota: float | None
    fair_share: float
    used: float
    #: What it uses and what it waits for.
    requested: float
    borrowed: float
    #: The part of its quota that others use.
    lent: float


class GpuShareList(Shape):
    shares: list[GpuShareView]


def _render(share: GpuShare) -> GpuShareView:
    return GpuShareView(
        type="project" if isinstance(share.owner, Project) else "department",
        id=share.owner.id,
        name=share.owner.name,
        node_pool=share.node_pool,
        quota=share.quota,
        fair_share=share.fair_share,
        used=share.used,
        requested=share.requested,
        borrowed=0.0 if share.quota is None else max(0.0, share.used - share.quota),
        lent=share.lent,
    )


async def get_gpu_shares(call: Call) -> Response:
    return as_json(GpuShareList(shares=[_render(share) for share in list_gpu_shares(call.context, call.caller)]))


SHARE_OPERATIONS = (
    Operation(
        method="GET",
        path="/api/v1/scheduling/shares",
        id="list_gpu_shares",
        tag="Scheduling",
        summary="List quota, fair share and use of GPUs by project and department, and what they borrow and lend",
        run=get_gpu_shares,
        answers={200: GpuShareList, **failing(401, 403, 503)},
        is_addition=True,
    ),
)
