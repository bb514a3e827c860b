"""A node of 4 cores that one workload fills for 600 s, and one of 2 cores that waits for it."""

from typing import Any

import msgspec

from fairlead.model.records.phase import Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer

FILLS = "11111111-1111-4111-8111-11111111cccc"
FILLS_POD = "44444444-4444-4444-8444-44444444cccc"
WAITS = "22222222-2222-4222-8222-22222222cccc"


def fill_node(api: ApiServer) -> None:
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    held: dict[str, Any] = {"phase": PodPhase.RUNNING, "node": "alpha", "node_pool": "default", "cpu_milli": 4000}
    declared = {"annotations": [{"name": "fairlead/expected-runtime", "value": "600"}]}
    fills = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": 4}, **declared}))
    waits = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": 2}}))
    api.put(
        builders.workload("fills", id=FILLS, phase=Phase.RUNNING, priority=90, spec=fills, **shared),
        builders.pod("fills-0-0", id=FILLS_POD, workload_id=FILLS, role="worker", created_at=START, **held),
        builders.workload("waits", id=WAITS, phase=Phase.PENDING, priority=50, spec=waits, **shared),
    )
