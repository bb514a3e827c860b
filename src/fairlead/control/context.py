"""What every use case is handed: the store, the clock, the directory of projects, and the settings that bound work.

Made once by `app`; nothing here reads the environment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead.control.directory import Directory
from fairlead.control.serving.urls import UrlRegistry
from fairlead.control.usage_history import Telemetry
from fairlead.control.vault import Vault, draw_vault
from fairlead.engines.base import Sessions
from fairlead.model.clock import DAY, SECOND, Clock, Millis
from fairlead.model.records.workload import Workload
from fairlead.scheduling.model.decisions import FairShare
from fairlead.store.base import Store


class ControlSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: A failed pod is replaced after this delay, doubled with every further failure up to the greatest.
    retry_delay: Millis = 1 * SECOND
    max_retry_delay: Millis = 300 * SECOND
    #: How long a deleted workload's record stays readable, and how long events and audit lines are kept.
    keep_deleted: Millis = 14 * DAY
    keep_events: Millis = 14 * DAY
    keep_audit: Millis = 365 * DAY
    #: Logs of pods whose workload is gone are kept this long.
    keep_logs: Millis = 14 * DAY
    #: Workloads of one project that are neither finished nor deleted; more are refused for the time being.
    max_open_workloads: int = 200_000
    max_completions: int = 100_000
    #: How far back the load of a service is looked at before pods are taken away; a tenth of it before they are added.
    scaling_window: Millis = 60 * SECOND
    #: Whether running pods that no record knows are adopted when a server starts; otherwise they are stopped.
    adopts_unknown_pods: bool = True


@dataclass
class Context:
    store: Store
    clock: Clock
    directory: Directory
    #: None on a server that runs no machine: sessions are then open at the lease's holder.
    sessions: Sessions | None
    settings: ControlSettings
    #: A new random id (UUID text), and the few random characters behind a name that was given as a prefix.
    new_id: Callable[[], str]
    new_suffix: Callable[[], str]
    #: Open workloads per project, kept by the loop's holder; empty on servers that do not hold the loop.
    open_workloads: dict[str, int] = field(default_factory=dict)
    #: What every queue holds and asks for, as the scheduler saw it last; empty on servers that do not hold the loop.
    fair_shares: tuple[FairShare, ...] = ()
    #: Seals users' secrets; the one that is drawn here opens nothing after a restart, `app` hands in the lasting one.
    vault: Vault = field(default_factory=draw_vault)
    #: Between submissions and the loop of the same server: records that were just written, by id, and per likeness
    #: a workload that waits, whose equals wait too (`waiting.py`).
    has_local_loop: bool = False
    just_recorded: dict[str, Workload] = field(default_factory=dict)
    twins: dict[Any, tuple[Workload, Any]] = field(default_factory=dict)
    #: Told by the loop of each workload that it has recorded without an event: listeners of the store hear of none.
    notify_without_event: Callable[[str], None] = lambda workload_id: None
    #: The URLs of workloads; filled by the loop's holder.
    exposure: UrlRegistry = field(default_factory=UrlRegistry)
    #: What was used over time; None on a server that runs no machine.
    telemetry: Telemetry | None = None
    #: Whether the engine's cluster may have objects that are named and not kept here: the cluster then judges names.
    may_cluster_have_names: bool = False
    #: Why the cluster that runs pods cannot be reached now; empty while it can.
    engine_unreachable_reason: Callable[[], str] = lambda: ""
    #: Set when the server is stopping: new work is refused, running work goes on.
    stopping: bool = False
