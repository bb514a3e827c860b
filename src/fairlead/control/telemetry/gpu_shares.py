"""Shares of the GPUs at this moment: who has which quota and fair share, and who lends to whom. Reads memory only.

Called by the API. It shows the owners that the caller may see; what the others hold counts, but is not shown.
"""

from collections.abc import Iterable

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.snapshot import queue_name
from fairlead.control.ledger.loans import PoolHistory, find_loans
from fairlead.control.organization.inventory import pool_name
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.people import Caller
from fairlead.scheduling.model.decisions import FairShare

_NOTHING = (0.0, 0.0, 0.0)
#: Loans are counted in thousandths of a GPU.
_PARTS = 1000


class GpuShare(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of a project or department in one node pool."""

    owner: Department
    node_pool: str
    #: None for unlimited.
    quota: float | None
    fair_share: float
    used: float
    requested: float
    #: The part of its quota that others use.
    lent: float


def list_gpu_shares(context: Context, caller: Caller) -> list[GpuShare]:
    """By owner and node pool, as of the last scheduling cycle; none on servers that do not schedule."""
    access.check(caller, "projects:read")
    projects = access.visible_projects(caller, "projects:read")
    departments = access.visible_departments(caller, "departments:read")
    rows: list[GpuShare] = []
    # Every cluster has a loop of its own, which knows the shares there.
    for view in (context.all_clusters, *context.all_clusters.views.values()):
        shares = {(share.queue, share.node_pool): share for share in view.fair_shares}
        if shares:
            rows += _shares_of(view, view.directory.departments.values(), shares, departments)
            rows += _shares_of(view, view.directory.projects.values(), shares, projects)
    return rows


def _shares_of(
    context: Context,
    owners: Iterable[Department | Project],
    shares: dict[tuple[str, str], FairShare],
    visible: frozenset[str] | None,
) -> list[GpuShare]:
    rows = [
        (owner, quota.node_pool_name, quota.gpu.deserved, shares.get((queue_name(owner), quota.node_pool_name)))
        for owner in owners
        for quota in owner.resources
    ]
    lent: dict[tuple[str, str], float] = {}
    for pool in {pool for _, pool, _, _ in rows}:
        used = {owner.id: share.allocated[0] for owner, its_pool, _, share in rows if its_pool == pool and share}
        quotas = {owner.id: quota for owner, its_pool, quota, _ in rows if its_pool == pool}
        for id, gpus in _lent_in_pool(used, quotas, _capacity(context, pool)).items():
            lent[id, pool] = gpus
    return [
        GpuShare(
            owner=owner,
            node_pool=pool,
            quota=quota,
            fair_share=(share.fair_share if share else _NOTHING)[0],
            used=(share.allocated if share else _NOTHING)[0],
            requested=(share.requested if share else _NOTHING)[0],
            lent=lent.get((owner.id, pool), 0.0),
        )
        for owner, pool, quota, share in rows
        if visible is None or owner.id in visible
    ]


def _capacity(context: Context, pool: str) -> int:
    return sum(len(node.gpus) for node in context.directory.nodes.values() if pool_name(context, node) == pool)


def _lent_in_pool(used: dict[str, float], quotas: dict[str, float | None], capacity: int) -> dict[str, float]:
    """What each owner lends, by the rules of the ledger: as if this moment lasted one unit of time."""
    history = PoolHistory(
        used=[(0, id, round(gpus * _PARTS)) for id, gpus in used.items()],
        deserved=[(0, id, None if quota is None else round(quota * _PARTS)) for id, quota in quotas.items()],
        capacity=[(0, capacity * _PARTS)],
    )
    lent: dict[str, float] = {}
    for loan in find_loans(history, (1,)):
        lent[loan.lender] = lent.get(loan.lender, 0.0) + loan.amount / _PARTS
    return lent
