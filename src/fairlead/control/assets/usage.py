"""Who uses an asset, and its history. Called by the API; computed on request."""

import msgspec

from fairlead.control import access
from fairlead.control.assets.assets import load_asset, load_claim_of, load_secret_of, may_read
from fairlead.control.assets.kinds import BY_KIND, AssetKind
from fairlead.control.context import Context
from fairlead.control.lists import ListRequest, Page
from fairlead.control.references.users import find_users
from fairlead.model.records.assets import Asset, Reference, project_scope_key
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import ASSETS, EVENTS


class AssetUsers(msgspec.Struct, frozen=True):
    """The workloads that have not ended and the assets that use it."""

    workloads: tuple[Workload, ...] = ()
    assets: tuple[Asset, ...] = ()


async def find_usage(context: Context, caller: Caller, asset: Asset) -> AssetUsers:
    """The users that the caller may see: workloads of their projects, and assets in their scopes."""
    secret, claim = await load_secret_of(context, asset), await load_claim_of(context, asset)
    workloads: list[Workload] = []
    if secret is not None:
        workloads += await find_users(context, Reference.SECRET, secret)
    if claim is not None:
        workloads += await find_users(context, Reference.CLAIM, claim)
    seen = [
        each for each in workloads if access.is_allowed(caller, "workloads:read", project_scope_key(each.project_id))
    ]
    others: list[Asset] = []
    if BY_KIND[asset.kind].is_credential:
        assets: list[Asset] = await context.store.find(Query(collection=ASSETS))
        others = [other for other in assets if other.id != asset.id and asset.id.encode() in bytes(other.spec)]
    return AssetUsers(tuple(seen), tuple(other for other in others if may_read(context, caller, other)))


async def load_history(
    context: Context, caller: Caller, kind: AssetKind, id: str, request: ListRequest
) -> tuple[Asset, Page[Event]]:
    """The events of an asset, oldest first."""
    asset = await load_asset(context, caller, kind, id)
    where = (Where("subject_id", Comparison.EQUAL, asset.id), Where("subject", Comparison.EQUAL, ASSETS.name))
    query = Query(
        collection=EVENTS,
        where=where,
        order=(("revision", request.descending),),
        offset=request.offset,
        limit=request.limit + 1,
    )
    events: list[Event] = await context.store.find(query)
    following = request.offset + request.limit if len(events) > request.limit else None
    return asset, Page(events[: request.limit], following)
