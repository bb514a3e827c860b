"""The seam to whatever runs pods: the three verbs of an engine, its orders and reports, and the interfaces next to it
(sessions, stored logs, custom resources).

`control` imports these names from here, and engines implement them. `engine.py` is the place to begin reading.
"""

from fairlead.engines.base.custom_resources import CustomResourceReader, CustomResources, CustomResourceWriter
from fairlead.engines.base.engine import Engine, PodEngine, WorkloadEngine
from fairlead.engines.base.orders import (
    ApplyOrganization,
    ApplyWorkload,
    DeleteWorkload,
    DesiredOrganization,
    DesiredWorkload,
    DropClaims,
    DropEphemeralClaims,
    Forget,
    MaintainNode,
    PodOrder,
    Refresh,
    Retain,
    Start,
    Stop,
    WorkloadOrder,
)
from fairlead.engines.base.reports import (
    NO_ISOLATION,
    SCALE_UP,
    CapacityChanged,
    ClusterPod,
    PodReport,
    PodState,
    Review,
    SchedulingBlocker,
    WorkloadReport,
)
from fairlead.engines.base.sessions import ExecRequest, LogRequest, LogStore, Session, Sessions

__all__ = [
    "NO_ISOLATION",
    "SCALE_UP",
    "ApplyOrganization",
    "ApplyWorkload",
    "CapacityChanged",
    "ClusterPod",
    "CustomResourceReader",
    "CustomResourceWriter",
    "CustomResources",
    "DeleteWorkload",
    "DesiredOrganization",
    "DesiredWorkload",
    "DropClaims",
    "DropEphemeralClaims",
    "Engine",
    "ExecRequest",
    "Forget",
    "LogRequest",
    "LogStore",
    "MaintainNode",
    "PodEngine",
    "PodOrder",
    "PodReport",
    "PodState",
    "Refresh",
    "Retain",
    "Review",
    "SchedulingBlocker",
    "Session",
    "Sessions",
    "Start",
    "Stop",
    "WorkloadEngine",
    "WorkloadOrder",
    "WorkloadReport",
]
