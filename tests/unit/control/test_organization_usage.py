"""What owners hold and ask for, where there are too many workloads to add up: as the scheduler saw it last."""

from fairlead.control.organization.inventory import OwnerUsage, add_shares
from fairlead.scheduling.model.decisions import FairShare


def share(queue: str, pool: str, gpu: float) -> FairShare:
    nothing = (0.0, 0.0, 0.0)
    return FairShare(
        queue=queue,
        node_pool=pool,
        fair_share=nothing,
        requested=(gpu, 100.0, 7.0),
        allocated=nothing,
        allocated_non_preemptible=nothing,
    )


def test_requests_are_taken_per_pool_and_in_all() -> None:
    found = {("2", "default"): OwnerUsage(gpu=1.0)}
    add_shares(
        found, [share("project-2", "default", 3), share("project-2", "gold", 2), share("department-1", "gold", 9)]
    )
    assert {key: usage.requested for key, usage in found.items()} == {
        ("2", "default"): (3, 100, 7),
        ("2", "gold"): (2, 100, 7),
        ("2", ""): (5, 200, 14),
        ("/1", "gold"): (9, 100, 7),
        ("/1", ""): (9, 100, 7),
    }
    assert found["2", "default"].gpu == 1, "what is held stays as the records say"
