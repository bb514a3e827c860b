"""Route and views of an asset's history."""

from starlette.responses import Response

from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import LIMIT, OFFSET, next_offset, read_list_request
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import (
    EventView,
    HistoryList,
    HistoryMeta,
    HistoryRecord,
    HistorySpec,
    InvolvedObject,
    event_uuid,
)
from fairlead.control.assets import usage
from fairlead.control.assets.kinds import BY_KIND
from fairlead.control.lists import normal_id
from fairlead.control.references.scopes import cluster_of_scope
from fairlead.model.clock import iso
from fairlead.model.records.assets import Asset
from fairlead.model.records.event import Event

_CLAIM = BY_KIND["pvc"]


def render_record(event: Event, asset: Asset, cluster_id: str) -> HistoryRecord:
    view = EventView(
        created_at=iso(event.at),
        type=event.type,
        cluster_id=cluster_id,
        message=event.message,
        id=event_uuid(cluster_id, event),
        reason=event.reason,
        source=event.source,
        involved_object=InvolvedObject(uid=asset.id, kind=_CLAIM.title, name=asset.name, namespace=""),
    )
    return HistoryRecord(meta=HistoryMeta(creation_timestamp=iso(event.at), type="Event"), spec=HistorySpec(event=view))


async def get_claim_history(call: Call) -> Response:
    request = read_list_request(call)
    id = normal_id(call.path["AssetId"], _CLAIM.title)
    asset, page = await usage.load_history(call.context, call.caller, _CLAIM, id, request)
    cluster_id = cluster_of_scope(call.context, asset.scope)
    records = [render_record(event, asset, cluster_id) for event in page.items]
    return as_json(HistoryList(records=records, next=next_offset(page)))


HISTORY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=f"/api/v1/asset/{_CLAIM.path}/{{AssetId}}/history",
        id="get_pvc_asset_history",
        tag="Assets",
        summary="List the history of a claim's data source, oldest first",
        run=get_claim_history,
        parameters=(
            Parameter(name="AssetId", place="path", schema={"type": "string", "format": "uuid"}),
            OFFSET,
            LIMIT,
        ),
        answers={200: HistoryList, 401: Error, 403: Error, 404: Error, 503: Error},
    ),
)
