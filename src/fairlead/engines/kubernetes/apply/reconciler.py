"""Brings each workload to its desired state: plan, execute, and again when something has changed.

The engine gives it orders and tells it what changed in the cache. It holds the state of every workload, and one task
for each that has something to do. Decisions are the planner's, requests the executor's.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence, Set
from functools import partial

import msgspec

from fairlead.engines.base import DeleteWorkload, DesiredWorkload, WorkloadReport
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.apply.deleter import OwnedObjects
from fairlead.engines.kubernetes.apply.executor import Changed, Executor
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import ApiError, retry_forever
from fairlead.engines.kubernetes.client.resources import ALWAYS_THERE, CLAIM, CONFIG_MAP, POD, SECRET, SERVICE
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.writer import BlockedForNow
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan import planner
from fairlead.engines.kubernetes.plan.recreate import find_fully_preempted_jobs, find_wrongly_ended_jobs
from fairlead.engines.kubernetes.plan.state import (
    Desired,
    State,
    WorkloadState,
    fail,
    is_current,
    lose,
    order,
    refuse,
    succeed,
)
from fairlead.engines.kubernetes.render.labels import ID_LABEL
from fairlead.model.errors import FairleadError, Refused

log = logging.getLogger(__name__)

WAITING = "Waiting for the cluster"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
#: Seconds after which a workload is looked after although nothing of it has changed.
_UPKEEP_SECONDS = 60.0
#: What a workload may consist of, for kubectl.
_KINDS = ",".join(one.plural for one in (*ALWAYS_THERE, POD, SERVICE, SECRET, CONFIG_MAP, CLAIM))
#: Deleted workloads that are remembered, in case an object of them appears again.
_REMEMBERED = 1000


class WorkloadReconciler:
    """Calls `notify` with the id of a workload whose report has changed."""

    def __init__(
        self, applier: ObjectApplier, executor: Executor, cache: ClusterCache, notify: Callable[[str], None]
    ) -> None:
        self._applier = applier
        self._executor = executor
        self._cache = cache
        self._notify = notify
        self._states: dict[str, WorkloadState] = {}
        self._changed: dict[str, Changed] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        #: The last workloads that were deleted, and how.
        self._deleted: dict[str, DeleteWorkload] = {}
        self._tasks = BackgroundTasks()

    async def close(self) -> None:
        await self._tasks.close()

    # What the engine asks

    def find(self, workload_id: str) -> WorkloadState | None:
        return self._states.get(workload_id)

    def is_running(self, workload_id: str) -> bool:
        """Whether an order is being carried out, or the workload looked after."""
        return workload_id in self._running

    @property
    def running(self) -> Collection[str]:
        return tuple(self._running)

    def forget_if_removed(self, workload_id: str) -> None:
        """After the report that says so."""
        if self._states[workload_id].is_removed and not self.is_running(workload_id):
            del self._states[workload_id]
            self._changed.pop(workload_id, None)

    # Orders

    def set_desired(self, workload_id: str, desired: Desired) -> None:
        """An order replaces the previous one; an order that is carried out or under way changes nothing."""
        before = self._states.get(workload_id, WorkloadState())
        if is_current(before, desired):
            if isinstance(desired, DesiredWorkload):
                self._recreate_preempted_jobs(workload_id)
            return
        self._states[workload_id] = order(before, desired)
        if isinstance(desired, DesiredWorkload):
            self._deleted.pop(workload_id, None)
            if before.deleted is not None:
                self._notify(workload_id)
        self._changed.setdefault(workload_id, Changed()).set()
        if workload_id not in self._running:
            self._running[workload_id] = self._tasks.spawn(self._reconcile(workload_id))

    def retain(self, workload_ids: Set[str], has_resource: Callable[[str], bool]) -> None:
        """Name the workloads that exist in the cluster and have neither a record nor a custom resource."""
        list_ours = self._applier.list_owned_objects
        listing = self._tasks.spawn(retry_forever(list_ours, "Cannot list the objects of earlier workloads"))
        self._executor.listing, self._executor.known_at_start = listing, workload_ids
        self._tasks.spawn(self._report_unknown(workload_ids, has_resource, listing))

    async def _report_unknown(
        self, workload_ids: Set[str], has_resource: Callable[[str], bool], listing: "asyncio.Task[OwnedObjects]"
    ) -> None:
        """They may be from after a backup that was restored: only their owners know whether they must end."""
        await asyncio.wait((listing,))
        existing = listing.result().kinds.keys() | self._cache.workloads(self._applier.cluster_id())
        for id, namespace in sorted(existing):
            # A workload that was submitted meanwhile has a state already.
            if id not in workload_ids and id not in self._states and not has_resource(id):
                log.warning(
                    "Workload %s in namespace %s has neither a record nor a custom resource and is left as it is; "
                    "to delete it: kubectl delete %s -n %s -l %s=%s",
                    *(id, namespace, _KINDS, namespace, ID_LABEL, id),
                )

    def _recreate_preempted_jobs(self, workload_id: str) -> None:
        seen = self._cache.objects_of(workload_id)
        jobs = find_fully_preempted_jobs(seen)
        for wrong in find_wrongly_ended_jobs(self._states[workload_id].podsets, seen):
            state = self._states[workload_id]
            self._states[workload_id] = msgspec.structs.replace(state, launch=wrong.next_launch(state.launch))
            jobs.append(wrong.job)
        if jobs:
            self._tasks.spawn(self._delete_for_recreation(jobs))

    async def _delete_for_recreation(self, jobs: Sequence[objects.Metadata]) -> None:
        try:
            for job in jobs:
                await self._applier.delete_for_recreation(job)
        except (ApiError, OSError) as error:
            log.info("Cannot recreate a preempted Job, which waits for its backoff: %s", error)

    # Changes in the cache

    def on_changed(self, workload_id: str) -> None:
        if workload_id in self._changed:
            self._changed[workload_id].set()

    def on_object_added(self, workload_id: str) -> None:
        """Delete what appears of a deleted workload: a request that got no answer may be carried out late."""
        deletion = self._deleted.get(workload_id)
        if deletion is None or workload_id in self._running:
            return
        state = self._states.get(workload_id, WorkloadState())
        if state.state is State.ABSENT or state.desired == deletion:
            # Even if it is the order that was just carried out.
            self._states[workload_id] = msgspec.structs.replace(state, state=State.ABSENT)
            self.set_desired(workload_id, deletion)

    def on_controller_deleted(self, workload_id: str) -> None:
        """Unless we deleted it, the next order creates it again."""
        if workload_id in self._states:
            self._states[workload_id] = lose(self._states[workload_id], asyncio.get_running_loop().time())

    # The task of a workload

    async def _reconcile(self, workload_id: str) -> None:
        pause, changed = _FIRST_PAUSE, self._changed[workload_id]
        try:
            while (state := self._states[workload_id]).is_pending:
                try:
                    await self._carry_out(workload_id)
                    await self._maintain(workload_id)
                    pause = _FIRST_PAUSE
                except Refused as error:
                    self._record(workload_id, state.desired, partial(refuse, message=error.message))
                except Exception as error:
                    is_expected = isinstance(error, ApiError | OSError | BlockedForNow)
                    log.info("Retrying workload %s: %s", workload_id, error, exc_info=not is_expected)
                    if self._record(workload_id, state.desired, partial(fail, message=f"{WAITING}: {error}")):
                        changed.clear()
                        await changed.wait(pause)
                        pause = min(_LONGEST_PAUSE, pause * 2)
        finally:
            del self._running[workload_id]

    async def _carry_out(self, workload_id: str) -> None:
        """One round: observe, plan, execute."""
        lost = self._states[workload_id].lost
        seen, now = await self._observe(workload_id), asyncio.get_running_loop().time()
        self._states[workload_id], steps = planner.plan(self._states[workload_id], seen, now)
        for step in steps:
            match step:
                case planner.ApplyObjects(workload):
                    await self._apply(workload, lost)
                case planner.DeleteObjects(deletion):
                    await self._delete(deletion)
                case _:
                    await self._executor.execute(step, self._changed[workload_id])

    async def _observe(self, workload_id: str) -> ObservedWorkload:
        seen, state = self._cache.objects_of(workload_id), self._states[workload_id]
        if state.state is State.APPLYING and state.workload is not None and state.lost:
            # The watch on pods may be behind the watch that showed the loss.
            seen = msgspec.structs.replace(seen, pods=await self._applier.load_pods(state.workload))
        return seen

    async def _apply(self, workload: DesiredWorkload, lost: int) -> None:
        """`lost`: how many controllers were lost when the round began."""
        id = workload.workload_id
        before = self._states[id]
        launch = await self._executor.choose_launch(workload, before.launch)
        self._states[id] = msgspec.structs.replace(self._states[id], launch=launch, may_predate_server=False)
        await self._executor.apply(workload, launch, may_predate_server=before.may_predate_server)
        if self._states[id].lost != lost:
            raise BlockedForNow("an object of it was deleted while it was being applied")
        self._record(id, workload, succeed)

    async def _delete(self, deletion: DeleteWorkload) -> None:
        id = deletion.workload_id
        await self._executor.delete(deletion, self._changed[id])
        self._states[id] = msgspec.structs.replace(self._states[id], lost=0)
        if self._record(id, deletion, succeed):
            self._deleted[id] = deletion
            if len(self._deleted) > _REMEMBERED:
                del self._deleted[next(iter(self._deleted))]

    async def _maintain(self, workload_id: str) -> None:
        """Do for a workload what no controller does, for as long as it is to run."""
        while self._states[workload_id].needs_upkeep:
            before = self._states[workload_id]
            await self._carry_out(workload_id)
            if self._states[workload_id].refused != before.refused:
                self._notify(workload_id)
            await self._changed[workload_id].wait(_UPKEEP_SECONDS)

    def _record(
        self, workload_id: str, desired: Desired | None, change: Callable[[WorkloadState], WorkloadState]
    ) -> bool:
        """Record what became of an order, unless another one replaced it meanwhile; whether it was recorded."""
        state = self._states[workload_id]
        is_latest = state.desired is desired
        if is_latest:
            self._states[workload_id] = change(state)
        self._notify(workload_id)
        return is_latest

    # Pods that cannot be created

    def dry_run_after(self, report: WorkloadReport) -> None:
        """A controller cannot create pods, and may not say why: ask the API server whether it ever could."""
        state = self._states[report.workload_id]
        error = next((wait.message for wait in report.waits if not wait.can_create_pods), "")
        if state.state is not State.APPLIED or state.workload is None or not error or error == state.dry_run_for:
            return
        self._states[report.workload_id] = msgspec.structs.replace(state, dry_run_for=error)
        self._tasks.spawn(self._dry_run(state.workload, state))

    async def _dry_run(self, workload: DesiredWorkload, state: WorkloadState) -> None:
        id = workload.workload_id
        try:
            message = await self._applier.dry_run_pods(workload, state.launch)
        except (ApiError, OSError, FairleadError) as error:
            log.info("Cannot check whether pods of workload %s can be created: %s", id, error)
            if id in self._states:
                self._states[id] = msgspec.structs.replace(self._states[id], dry_run_for="")
            return
        now = self._states.get(id)
        if message and now is not None and now.state is State.APPLIED and now.workload == workload:
            self._states[id] = refuse(now, message)
            self._notify(id)
