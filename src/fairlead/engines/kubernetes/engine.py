"""The Kubernetes engine's face: wishes for whole workloads in, reports of all that is there out.

Made by `app`, called by the loop of `control` through the seam. KAI places pods, controllers of the cluster make them;
here objects are written (`hands.py`), watched (`holdings.py`) and put into words (`observing.py`).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from fairlead.engines.base import (
    ApplyWorkload,
    CapacityChanged,
    DeleteWorkload,
    DesiredWorkload,
    ExecRequest,
    LogRequest,
    Retained,
    Review,
    Sessions,
    SyncOrganization,
    WorkloadEngine,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.apply.executor import choose_launch
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.apply.tending import tend
from fairlead.engines.kubernetes.apply.trying import try_pods
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message, retry_forever
from fairlead.engines.kubernetes.client.objects import Container, Metadata, Pod
from fairlead.engines.kubernetes.client.resources import ALWAYS_THERE, POD, POD_GROUP, RUNNERS, SHARD, Resource
from fairlead.engines.kubernetes.client.writer import BlockedForNow, has_kind
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.nodes import render_node
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.unacknowledged import UnacknowledgedPods
from fairlead.engines.kubernetes.plan.applied_state import AppliedState, Survey, find_digests
from fairlead.engines.kubernetes.plan.leftovers import find_orphaned_pods
from fairlead.engines.kubernetes.plan.recreate import find_fully_preempted_jobs
from fairlead.engines.kubernetes.plan.state import WorkloadState
from fairlead.engines.kubernetes.render import review as render_review
from fairlead.engines.kubernetes.render.context import CLUSTER_LABEL, NO_LAUNCH_CHOICES
from fairlead.engines.kubernetes.render.runners import is_group
from fairlead.engines.kubernetes.sessions import CommandSession, dial, listening_port, stream_logs
from fairlead.engines.kubernetes.workload_objects import WorkloadObjects
from fairlead.model.allowed import NOTHING_ALLOWED, Allowed
from fairlead.model.errors import FairleadError, NotFound, Refused, Unavailable
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import LoadKept, nothing_kept
from fairlead.model.pods.urls import IngressSettings
from fairlead.model.records.organization import Node

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_WAITS = "Waits for the cluster"
#: How long a removal waits for news before it asks again.
_LOOK_AGAIN = 5.0
#: Workloads whose objects are written at the same time; the others wait without having been rendered.
_AT_ONCE = 32
#: Removed workloads that are remembered, in case something of them turns up again.
_REMEMBERED = 1000


class KubernetesEngine(WorkloadEngine, Sessions):
    """Runs workloads on a cluster."""

    def __init__(
        self,
        api: Api,
        cluster_id: Callable[[], str],
        customs: Sequence[Resource] = (),
        load_kept: LoadKept = nothing_kept,
        allowed: Allowed = NOTHING_ALLOWED,
        entrance: IngressSettings | None = None,
    ) -> None:
        self._api = api
        api.notify_away = self._note_away
        self._entrance = entrance
        self._allowed = allowed
        self._load_kept = load_kept
        self._cluster_id = cluster_id
        self._custom_resources = customs
        #: Workloads that were applied to the cluster as objects.
        self.customs = WorkloadObjects(api, cluster_id)
        self._holdings = ClusterCache(
            api, self._note, self._on_object_added, self._on_controller_deleted, self._note_nodes
        )
        self._unacknowledged = UnacknowledgedPods(api, self._spawn, self._note)
        self._hands = ObjectApplier(api, "", ALWAYS_THERE)
        self._estate = OrganizationSync(api, "")
        self._charges: dict[str, WorkloadState] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        #: The last workloads that were removed, and how.
        self._removed: dict[str, DeleteWorkload] = {}
        self._changed: dict[str, None] = {}
        self._nodes_changed = self._has_unlabelled = False
        self._labelling: asyncio.Task[None] | None = None
        self._organization: SyncOrganization | None = None
        #: Looks for what is there from before, and what it found that is not watched.
        self._survey: asyncio.Task[None] | None = None
        self._surveyed: Survey = {}
        self._notify: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()

    # The seam

    async def start(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        try:
            await self._discover()
        except (ApiError, OSError) as error:
            words = f"The cluster cannot be used: {error_message(error)}"
            raise Unavailable(f"{words}; `fairlead doctor --engine kubernetes` looks what it lacks") from error

    async def _discover(self) -> None:
        """What the cluster has: kinds, objects of ours, nodes."""
        runners = tuple([runner for runner in RUNNERS if runner in ALWAYS_THERE or await has_kind(self._api, runner)])
        self._hands = ObjectApplier(self._api, self._cluster_id(), runners, self.customs.owner, self._load_kept)
        self._estate = OrganizationSync(self._api, self._cluster_id())
        self._hands.level, self._hands.entrance = self._holdings.enforced_pod_security, self._entrance
        there = [custom for custom in self._custom_resources if await has_kind(self._api, custom)]
        await self.customs.start(there, [custom for custom in self._custom_resources if custom not in there])
        label = f"{CLUSTER_LABEL}={self._cluster_id()}"
        self._hands.groups = (POD_GROUP,) if await has_kind(self._api, POD_GROUP) else ()
        self._estate.shards = (SHARD,) if await has_kind(self._api, SHARD) else ()
        await self._holdings.start(label, runners, has_groups=bool(self._hands.groups))

    def review(self, podset: PodSet) -> Review:
        return render_review.review(podset, self._allowed)

    async def capacity(self) -> Sequence[Node]:
        self._nodes_changed = False
        return [render_node(node) for node in self._holdings.nodes()]

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        changed, self._changed = self._changed, {}
        reports: list[WorkloadReport | CapacityChanged] = []
        for id in filter(None, changed):
            try:
                reports.append(self._report(id))
            except Exception:
                # Labels that somebody edited, say: the others' news must not be lost with it.
                log.exception("what the cluster has of workload %s cannot be read", id)
        if self._nodes_changed:
            self._nodes_changed = False
            reports.append(CapacityChanged())
        return reports

    def _report(self, workload_id: str) -> WorkloadReport:
        charge = self._charges.get(workload_id)
        run = charge.applied if charge is not None and isinstance(charge.applied, DesiredWorkload) else None
        held = self._holdings.objects_of(workload_id)
        report = render_report(workload_id, held, charge.podsets if charge else ())
        if charge is None:
            return report
        maker = find_controller_ahead_of_pods(held, charge.podsets)
        if maker is not None and maker.uid not in charge.awaiting_pods_of:
            charge.awaiting_pods_of.add(maker.uid)
            settle = partial(self._holdings.wait_until_consistent, workload_id, maker)
            self._spawn(retry_forever(settle, "whether all ends of pods are seen is not known yet"))
        if charge.is_removed and charge.task is None:
            del self._charges[workload_id]
        complaint = next((wait.message for wait in report.waits if not wait.can_create_pods), "")
        if run is not None and complaint and complaint != charge.dry_run_for and not charge.refused:
            charge.dry_run_for = complaint
            self._spawn(self._dry_run(charge, run))
        return msgspec.structs.replace(
            report,
            refused=charge.refused,
            retrying_because=self._trouble(charge)
            or report.retrying_because
            or self._unacknowledged.words(workload_id, held),
            has_no_pods=charge.has_no_pods,
            is_removed=charge.is_removed,
        )

    def _trouble(self, charge: WorkloadState) -> str:
        """What stands in the way of what is being carried out; one request may wait long for a server that is away."""
        is_cut_off = charge.task is not None and bool(self._api.unreachable_reason)
        return f"{_WAITS}: {self._api.unreachable_reason}" if is_cut_off else charge.trouble

    def away(self) -> str:
        """Why the cluster cannot be reached now; empty while it can."""
        return self._api.unreachable_reason

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        for order in orders:
            match order:
                case ApplyWorkload():
                    self._set_desired(order.workload.workload_id, order.workload)
                case DeleteWorkload():
                    self._set_desired(order.workload_id, order)

    async def sync_organization(self, organization: SyncOrganization) -> None:
        self._organization = organization
        self._estate.plan(organization)
        self._spawn(self._organize(organization))

    async def retain(self, retained: Retained) -> None:
        self._survey = self._spawn(self._retain(retained))
        self._spawn(self._drop_claims(retained.claim_ids, are_gone=False))

    async def drop_claims(self, claim_ids: Collection[str]) -> None:
        self._spawn(self._drop_claims(claim_ids, are_gone=True))

    async def close(self) -> None:
        tasks = [*self._tasks, *(charge.task for charge in self._charges.values() if charge.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._holdings.close()
        await self.customs.close()
        self._api.close()

    # Sessions

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        return stream_logs(self._api, self._pod(request.pod_id), request)

    async def exec(self, request: ExecRequest) -> CommandSession:
        return await CommandSession.run(self._api, self._pod(request.pod_id), request)

    async def attach(self, pod_id: str) -> CommandSession:
        pod = self._pod(pod_id)
        main = pod.spec.containers[0] if pod.spec.containers else Container()
        return await CommandSession.attach(self._api, pod, stdin=main.stdin, tty=main.tty)

    async def dial(self, pod_id: str, port: int) -> int:
        pod = self._pod(pod_id)
        return await dial(self._api, pod, listening_port(pod, port))

    def _pod(self, pod_id: str) -> Pod:
        pod = self._holdings.pod(pod_id)
        if pod is None:
            raise NotFound("The pod is gone from the cluster, and its output with it")
        return pod

    # Orders

    def _set_desired(self, workload_id: str, wish: DesiredWorkload | DeleteWorkload) -> None:
        """Carried out one after the other; a wish that is carried out already changes nothing."""
        charge = self._charges.setdefault(workload_id, WorkloadState())
        charge.podsets = wish.podsets if isinstance(wish, DesiredWorkload) else charge.podsets
        if charge.applied == wish or charge.desired == wish:
            if isinstance(wish, DesiredWorkload) and (
                spent := find_fully_preempted_jobs(self._holdings.objects_of(workload_id))
            ):
                self._spawn(self._renew(spent))
            return
        charge.desired = wish
        if isinstance(wish, DesiredWorkload) and (charge.has_no_pods or charge.is_removed):
            # From now on something may be there, whatever was said after the last removal.
            charge.has_no_pods = charge.is_removed = False
            self._note(workload_id)
        charge.changed.set()
        if charge.task is None:
            charge.task = asyncio.get_running_loop().create_task(self._reconcile_until_applied(workload_id, charge))

    async def _renew(self, jobs: Sequence[Metadata]) -> None:
        try:
            for job in jobs:
                await self._hands.delete_for_recreation(job)
        except (ApiError, OSError) as error:
            log.info("a Job whose pods were taken away waits for its next pod: %s", error)

    async def _dry_run(self, charge: WorkloadState, run: DesiredWorkload) -> None:
        """A controller could not make pods, and may not say why: if nobody ever can, the workload is refused."""
        try:
            kept = await self._load_kept(run.workload_id, run.podsets)
            words = await try_pods(
                self._api, self._hands.render_context_with_supplies(run, kept, charge.launch), run.podsets
            )
        except (ApiError, OSError, FairleadError) as error:
            log.info("whether pods of workload %s can be made is not known: %s", run.workload_id, error)
            charge.dry_run_for = ""
            return
        if words and charge.applied == run:
            charge.refused = words
            self._note(run.workload_id)

    async def _reconcile_until_applied(self, workload_id: str, charge: WorkloadState) -> None:
        pause = _FIRST_PAUSE
        while charge.desired is not None:
            wish = charge.desired
            try:
                charge.applied = None
                if isinstance(wish, DeleteWorkload):
                    await self._remove(charge, wish)
                else:
                    await self._run(charge, wish)
                self._done(workload_id, charge, wish)
                await self._watch_pod_group(workload_id, charge)
                pause = _FIRST_PAUSE
            except Refused as error:
                charge.refused = error.message
                self._done(workload_id, charge, wish)
            except Exception as error:
                charge.desired = charge.desired or wish
                is_expected = isinstance(error, ApiError | OSError | BlockedForNow)
                charge.trouble = f"{_WAITS}: {error}"
                self._note(workload_id)
                log.info("workload %s is tried again: %s", workload_id, error, exc_info=not is_expected)
                charge.changed.clear()
                await self._pause(charge, pause)
                pause = min(_LONGEST_PAUSE, pause * 2)
        charge.task = None

    def _done(self, workload_id: str, charge: WorkloadState, wish: DesiredWorkload | DeleteWorkload) -> None:
        charge.trouble = ""
        charge.applied = wish
        if charge.desired is wish:
            charge.desired = None
        self._note(workload_id)

    async def _run(self, charge: WorkloadState, run: DesiredWorkload) -> None:
        self._removed.pop(run.workload_id, None)
        # A removal may have ended only after this was wished.
        charge.has_no_pods = charge.is_removed = False
        charge.refused = charge.dry_run_for = ""
        losses = charge.losses
        await self._delete_orphans(charge, run)
        await self._estate.check(run)
        charge.launch = await choose_launch(self._hands, self._holdings, run, charge.launch, self._allowed)
        standing = await self._find_standing(run) if charge.may_predate_server else None
        charge.may_predate_server = False
        try:
            async with self._at_once:
                await self._hands.run(run, charge.launch, standing)
        except ApiError as error:
            if error.status == 404:
                await self._estate.recheck_namespace(run)
            raise
        if charge.losses != losses:
            raise BlockedForNow("something of it was removed while it was being made")
        charge.losses_handled = losses
        charge.needs_reconcile = is_group(run.podsets) or len(run.node_pools) > 1

    async def _find_standing(self, run: DesiredWorkload) -> AppliedState:
        """What there is of a workload that may have been there before this server was."""
        digests = find_digests(self._holdings.controllers_of(run.workload_id), run.run)
        if any(digests.values()) and self._survey is not None:
            await asyncio.wait((self._survey,))
        return AppliedState(digests, self._surveyed)

    async def _delete_orphans(self, charge: WorkloadState, run: DesiredWorkload) -> None:
        """Raises while pods run whose maker somebody removed: the next ones are not to run beside them."""
        is_fresh = time.monotonic() - charge.lost_at < _LOOK_AGAIN
        held = self._holdings.objects_of(run.workload_id)
        if charge.losses != charge.losses_handled:
            # The watch on pods may be behind the one that brought the loss.
            held = msgspec.structs.replace(held, pods=await self._hands.load_pods(run))
        left = find_orphaned_pods(held, run.run, is_fresh=is_fresh)
        for pod in left.orphans:
            await self._hands.delete(POD.path(run.namespace, pod.metadata.name), pod.metadata.uid)
        for pod in (*left.ending, *left.orphans):
            raise BlockedForNow(f"what ran pod {pod.metadata.name} was removed, and the pod is still ending")

    async def _watch_pod_group(self, workload_id: str, charge: WorkloadState) -> None:
        """See to a group of our own, or to pools that are tried in turn, for as long as the workload is to run."""
        while charge.desired is None and charge.needs_reconcile and isinstance(run := charge.applied, DesiredWorkload):
            refused = charge.refused
            await tend(self._hands, charge, run, self._holdings.objects_of(workload_id))
            if charge.refused != refused:
                self._note(workload_id)
            await self._pause(charge, _LOOK_AGAIN * 12)

    async def _remove(self, charge: WorkloadState, order: DeleteWorkload) -> None:
        async def wait() -> None:
            """The API server is asked again when the watches show nothing any more, or after a while."""
            again = time.monotonic() + _LOOK_AGAIN
            while self._holdings.has_objects(order.workload_id) and (left := again - time.monotonic()) > 0:
                await self._pause(charge, left)
            # Not all kinds are watched.
            await asyncio.sleep(_FIRST_PAUSE / 2)

        charge.needs_reconcile = charge.may_predate_server = False
        charge.launch = NO_LAUNCH_CHOICES
        await self._hands.remove(order, wait)
        self._holdings.forget(order.workload_id)
        charge.losses_handled = charge.losses
        charge.has_no_pods = True
        charge.is_removed = not order.keeps_claims
        self._removed[order.workload_id] = order
        if len(self._removed) > _REMEMBERED:
            del self._removed[next(iter(self._removed))]

    async def _pause(self, charge: WorkloadState, seconds: float) -> None:
        """Until something of the workload has changed or is wished, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await charge.changed.wait()
        charge.changed.clear()

    async def _organize(self, told: SyncOrganization) -> None:
        pause = _FIRST_PAUSE
        while told is self._organization:
            try:
                await self._estate.organize(told)
                await self._estate.label_nodes(self._holdings.nodes(), told)
                return
            except Refused as error:
                log.warning("the cluster does not take what was made of the projects: %s", error)
                return
            except (ApiError, OSError) as error:
                log.warning("projects and queues are not in the cluster yet: %s", error)
                self._estate.note_trouble(error)
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)

    async def _retain(self, retained: Retained) -> None:
        """Remove what workloads left behind that no record knows any more."""
        trouble = "what earlier workloads left in the cluster is not known yet"
        self._surveyed, found = await retry_forever(self._hands.list_owned_objects, trouble)
        for id, namespace in sorted(found | self._holdings.workloads(self._cluster_id())):
            # One that was submitted since has been given into our care.
            if id not in retained.workload_ids and id not in self._charges:
                log.warning("removing what is left of workload %s, which no record knows", id)
                self._set_desired(id, DeleteWorkload(id, namespace))

    async def _drop_claims(self, claim_ids: Collection[str], *, are_gone: bool) -> None:
        """Remove these claims that the server kept, or all others."""
        try:
            await self._hands.drop_claims(lambda id: (id in claim_ids) is are_gone)
        except (ApiError, OSError) as error:
            log.warning("claims that are no more are still in the cluster, until the next start: %s", error)

    # News

    def _note(self, workload_id: str) -> None:
        charge = self._charges.get(workload_id)
        if charge is not None:
            charge.changed.set()
        self._changed[workload_id] = None
        self._notify()

    def _note_away(self) -> None:
        for id in [id for id, charge in self._charges.items() if charge.task is not None]:
            self._note(id)

    def _on_object_added(self, workload_id: str) -> None:
        """What turns up of a removed workload is removed too: a request that nobody answered was carried out late."""
        charge = self._charges.get(workload_id)
        order = self._removed.get(workload_id)
        if order is not None and (charge is None or (charge.task is None and charge.applied == order)):
            if charge is not None:
                charge.applied = None
            self._set_desired(workload_id, order)

    def _on_controller_deleted(self, workload_id: str) -> None:
        """An object that makes pods is gone; unless we removed it, the next wish makes it again."""
        charge = self._charges.get(workload_id)
        if charge is None:
            return
        charge.losses += 1
        charge.lost_at = time.monotonic()
        if isinstance(charge.applied, DesiredWorkload):
            charge.applied = None

    def _note_nodes(self) -> None:
        self._nodes_changed = self._has_unlabelled = True
        if self._labelling is None or self._labelling.done():
            self._labelling = self._spawn(retry_forever(self._label, "nodes are not labelled for their pools yet"))
        self._notify()

    async def _label(self) -> None:
        while self._has_unlabelled and self._organization is not None:
            self._has_unlabelled = False
            try:
                await self._estate.label_nodes(self._holdings.nodes(), self._organization)
            except BaseException:
                self._has_unlabelled = True
                raise

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the engine failed", exc_info=task.exception())
