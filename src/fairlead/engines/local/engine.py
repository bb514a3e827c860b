"""The local engine: orders in, reports out. Its pods are supervised by processes that outlive it.

Made by `app`, called by the loop of `control` through the seam. It keeps in memory what the attempts' files say, and
gets changes over one connection per supervisor; it decides nothing.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence

import msgspec

from fairlead.engines.base import (
    NO_ISOLATION,
    DropClaims,
    DropEphemeralClaims,
    ExecRequest,
    Forget,
    LogRequest,
    LogStore,
    PodEngine,
    PodOrder,
    PodReport,
    PodState,
    Refresh,
    Retain,
    Review,
    Sessions,
    Start,
    Stop,
)
from fairlead.engines.local import attempts, journal, launch_order, nodes, wire
from fairlead.engines.local.attempts import AttemptFolders, Key
from fairlead.engines.local.launch_order import LaunchOrder
from fairlead.engines.local.linux import cgroups
from fairlead.engines.local.logs import reader
from fairlead.engines.local.lost_pods import end_lost_pod
from fairlead.engines.local.network.plan import PodNetworks, is_serving
from fairlead.engines.local.network.ports import Ports, inside_ports
from fairlead.engines.local.network.rule_watch import keep_rules
from fairlead.engines.local.plan import container as plan_container
from fairlead.engines.local.plan import limits, remote_exec
from fairlead.engines.local.plan import review as plan_review
from fairlead.engines.local.plan.environment import LoadReferences, refuse_references
from fairlead.engines.local.plan.identity import observe_rights, with_account
from fairlead.engines.local.plan.peer_addresses import fill_in
from fairlead.engines.local.plan.render import render_order
from fairlead.engines.local.plan.storage import PodStorage
from fairlead.engines.local.pod_attempt import ENDED, PodAttempt
from fairlead.engines.local.sessions import LOOPBACK, ProcessSession, connect, open_socket
from fairlead.engines.local.settings import LocalSettings
from fairlead.engines.local.storage.exclusive_claims import ExclusiveClaims
from fairlead.engines.local.supervisor.forkserver_client import ForkServerClient
from fairlead.engines.local.supervisor.link import Link
from fairlead.model.clock import Clock, Millis
from fairlead.model.errors import FairleadError, NotFound, Refused, Unavailable
from fairlead.model.pods.podset import PodContainer, PodSet, PodSpec
from fairlead.model.pods.supplies import LoadSupplies, no_supplies
from fairlead.model.records.organization import Node

#: How often an order is sent if its fork ends before it claims the attempt.
TRIES = 3
#: Between two attempts to reach a supervisor that lives and does not listen yet.
RECONNECT_SECONDS = 0.05
#: Before a pod whose secrets or claims could not be read is tried again.
RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class LocalEngine(PodEngine, Sessions, LogStore):
    """Runs pods as processes of this machine."""

    def __init__(
        self,
        settings: LocalSettings,
        clock: Clock,
        references: LoadReferences = refuse_references,
        supplies: LoadSupplies = no_supplies,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._references = references
        self._rights = observe_rights(settings)
        self._folders = AttemptFolders(settings.data_dir)
        self._fork_server = ForkServerClient(self._folders.root)
        self._storage = PodStorage(settings, self._folders, supplies)
        self._network = PodNetworks(
            self._folders.root,
            self._joins_networks,
            is_shared=not settings.is_personal,
            may_share=settings.allowed.shared_network,
        )
        self._exclusive_claims = ExclusiveClaims()
        self._ports = Ports(settings.service_address, self._ready_pods, self.dial, names_processes=settings.is_personal)
        self._attempts: dict[Key, PodAttempt] = {}
        self._changed: dict[Key, None] = {}
        self._notify: Callable[[], None] = _nothing
        self._tasks: set[asyncio.Task[None]] = set()
        self._removals: set[asyncio.Future[None]] = set()
        self._nodes: tuple[Node, ...] = ()

    async def start(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._folders.prepare()
        self._rights = msgspec.structs.replace(self._rights, means=limits.observe_means())
        if self._rights.means.groups is not None:
            cgroups.sweep_all(self._rights.means.groups, self._clock() / 1000)
        self._network.prepare()
        if self._network.has_rules:
            self._spawn(keep_rules(self._network.repair))
        self._ports.gateway = self._network.gateway
        self._nodes = self._settings.nodes or (nodes.observe_machine(self._clock()),)
        await self._fork_server.connect()
        for key in self._folders.claimed():
            self._adopt(key)
        self._folders.sweep_members()
        for folder in self._folders.trash():
            self._remove(folder)
        await asyncio.to_thread(self._network.sweep)

    def review(self, podset: PodSet) -> Review:
        """What of a pod's fields this machine and its operator refuse, and what has less effect here."""
        reviewed = plan_review.review(podset.container, self._rights, self._storage.review)
        if reviewed.refused:
            return reviewed
        network, container, is_addressed = self._network, podset.container, podset.addressed
        refused = (
            *remote_exec.refusals(podset, self._settings),
            *network.refusals(container, is_addressed=is_addressed),
        )
        name, message = reviewed.isolation or (NO_ISOLATION, "")
        more = network.describe(container, is_addressed=is_addressed)
        return Review(
            refused=refused,
            advisory=(*reviewed.advisory, *network.remarks(container, is_addressed=is_addressed)),
            isolation=(name, "; ".join(filter(None, (message, more)))),
        )

    def reserve(self, ports: Sequence[socket.socket]) -> None:
        """Before the start: sockets that are bound to the server's ports, which no pod is to take while it is down."""
        self._fork_server.reserved = ports

    def find_warnings(self) -> list[str]:
        """What keeps pods of a shared server from networks of their own, with the remedy."""
        if self._settings.is_personal:
            return []
        share = "share this machine's network" if self._settings.allowed.shared_network else "are refused"
        obstacles = [f"Egress of pods: {lack.problem}: {lack.advice}" for lack in self._network.find_obstacles()]
        return [*(f"Pods {share}: {lack}" for lack in self._network.lacks), *obstacles]

    async def capacity(self) -> Sequence[Node]:
        return self._nodes

    async def observe(self) -> Sequence[PodReport]:
        changed, self._changed = self._changed, {}
        return [self._attempts[key].report for key in changed if key in self._attempts]

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        for order in orders:
            match order:
                case Start():
                    await self._start(order.pod, order.record)
                case Stop():
                    self._stop(order)
                case Refresh():
                    await self._refresh(order.pod)
                case Forget():
                    self._forget(order.pod_id)
                case DropEphemeralClaims():
                    await self._storage.drop((), order.workload_id)
                case DropClaims(claim_ids):
                    await self._storage.drop(claim_ids, "")
                case Retain(claim_ids, workload_ids):
                    await self._storage.retain(claim_ids, workload_ids)

    def load_record(self, pod_id: str, attempt: int) -> bytes:
        return self._folders.load_record((pod_id, attempt))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._removals, return_exceptions=True)
        for attempt in self._attempts.values():
            if attempt.link is not None:
                attempt.link.close()
        self._ports.close_all()
        self._network.close()
        self._fork_server.close()

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        attempt = request.attempt
        if attempt is None:
            running = (key[1] for key in self._attempts if key[0] == request.pod_id)
            attempt = max(running, default=None) or self._folders.latest_log(request.pod_id)
        key = (request.pod_id, attempt or 0)
        if key not in self._attempts and not self._folders.has_logs(key):
            raise NotFound(f"no output of pod {request.pod_id} is kept here: it never ran, or its logs have expired")
        return reader.stream(self._folders, key, request, self._may_write)

    async def exec(self, request: ExecRequest) -> ProcessSession:
        return await ProcessSession.run(self._folders.control(self._running(request.pod_id)), request)

    async def attach(self, pod_id: str, *, from_start: bool = False) -> ProcessSession:
        key = self._running(pod_id)
        output = self.logs(LogRequest(pod_id=pod_id, attempt=key[1], follow=True, tail=None if from_start else 0))
        return await ProcessSession.attach(self._folders.control(key), output)

    async def dial(self, pod_id: str, port: int) -> int:
        key = self._running(pod_id)
        address = self._network.address_of(pod_id)
        if not address and not self._network.is_closed(pod_id):
            return await connect(socket.socket(), LOOPBACK, port)
        if address:
            with contextlib.suppress(ConnectionRefusedError):
                return await connect(socket.socket(), address, port)
        # It listens at its loopback only, or its network is reached from inside only.
        return await connect(await open_socket(self._folders.control(key)), LOOPBACK, port)

    def _running(self, pod_id: str) -> Key:
        """The attempt of a pod that runs now."""
        key = max((key for key in self._attempts if key[0] == pod_id), default=None)
        if key is None or self._attempts[key].report.state is not PodState.RUNNING:
            raise Refused("The pod is not running; wait until it is")
        return key

    def _joins_networks(self, container: PodContainer) -> bool:
        return plan_container.can_stage(plan_container.choose(container, self._settings))

    def _ready_pods(self, workload_id: str, port: int) -> list[str]:
        """Ready pods that listen on a port: the leaders of a group, and not its workers."""
        reports = [attempt.report for attempt in self._attempts.values() if attempt.report.workload_id == workload_id]
        ready = [report for report in reports if report.state is PodState.RUNNING and report.ready]
        return [report.pod_id for report in ready if port in dict(report.ports)]

    async def drop_logs(self, pod_ids: Collection[str]) -> None:
        for pod_id in pod_ids:
            self._forget(pod_id, logs_too=True)

    async def expire_logs(self, before: Millis) -> int:
        known = {key[0] for key in self._attempts}
        return await asyncio.to_thread(reader.expire, self._folders, before, known.__contains__)

    def _may_write(self, key: Key) -> bool:
        """Whether output of this attempt may still come."""
        attempt = self._attempts.get(key)
        return attempt is not None and not attempt.has_ended

    # Orders

    async def _start(self, pod: PodSpec, record: bytes) -> None:
        key = (pod.pod_id, pod.attempt)
        if key in self._attempts:
            return
        report = PodReport(pod_id=pod.pod_id, workload_id=pod.workload_id, attempt=pod.attempt, state=PodState.STARTING)
        attempt = self._attempts[key] = PodAttempt(key, report, pod, record)
        self._set_report(attempt, report)
        await self._launch(attempt, pod)

    async def _launch_later(self, attempt: PodAttempt, pod: PodSpec) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        if attempt.stop is not None and not attempt.has_ended:
            self._fail_start(attempt, "it was stopped before it could start")
        if not attempt.has_ended:
            await self._launch(attempt, pod)

    async def _launch(self, attempt: PodAttempt, pod: PodSpec) -> None:
        attempt.tries += 1
        try:
            order = await self._plan_launch(attempt, pod)
            ours, theirs = socket.socketpair()
        except Unavailable:
            # What it needs cannot be read now, which is not the pod's fault: try again.
            attempt.tries -= 1
            self._spawn(self._launch_later(attempt, pod))
            return
        except (FairleadError, OSError) as error:
            self._fail_start(attempt, str(error))
            return
        ours.setblocking(False)
        self._connect(attempt, ours, launch_order.encode(order))
        with theirs:
            try:
                await self._fork_server.fork(theirs)
            except OSError as error:
                self._fail_start(attempt, f"its supervisor could not be started: {error}")

    async def _plan_launch(self, attempt: PodAttempt, pod: PodSpec) -> LaunchOrder:
        """The launch order, with the claims, the address and the ports that the attempt has from now on.

        Raises Unavailable if it must wait, and Refused if the pod cannot run here.
        """
        pod = fill_in(pod, self._network.is_own(pod))
        memory = nodes.device_memory(self._nodes, pod.node)
        resolve = await self._references(pod)
        volumes = await self._storage.plan(pod)
        obstacle = self._exclusive_claims.find_obstacle(pod.node, volumes.claims)
        if obstacle:
            self._set_report(attempt, msgspec.structs.replace(attempt.report, message=obstacle))
            raise Unavailable(obstacle)
        plan = self._network.plan(pod)
        rights = with_account(self._rights, pod.machine_user)
        rights = rights if plan is None else rights.located(plan.address, plan.gateway)
        order = render_order(pod, rights, self._folders, memory, resolve, volumes)
        place = order.place._replace(launched=attempt.record.decode())
        holds = self._exclusive_claims.add(attempt.key, pod.node, volumes.claims)
        order = order._replace(place=place, network=plan, holds=holds)
        if is_serving(pod):
            ports = await self._ports.open(pod, shares_machine=plan is None)
            order = order._replace(ports=ports, listens=inside_ports(pod) if plan is None else [])
        return order

    def _release(self, attempt: PodAttempt) -> None:
        """Free the address of an attempt that has ended and, with the last of its workload, its ports."""
        self._network.release(attempt.key[0])
        self._exclusive_claims.release(attempt.key)
        self._ports.release(attempt.key[0])
        workload_id = attempt.report.workload_id
        others = (other.report for other in self._attempts.values() if other is not attempt)
        if not any(report.workload_id == workload_id and report.state not in ENDED for report in others):
            self._ports.close(workload_id)

    def _stop(self, order: Stop) -> None:
        attempt = self._attempts.get((order.pod_id, order.attempt))
        if attempt is None or attempt.has_ended:
            return
        attempt.stop = order
        if attempt.link is not None:
            attempt.link.send(_render_stop(order))

    async def _refresh(self, pod: PodSpec) -> None:
        """Its supervisor shows the files as they are now; if they cannot be loaded, the pod keeps what it has."""
        attempt = self._attempts.get((pod.pod_id, pod.attempt))
        if attempt is None or attempt.has_ended or attempt.link is None:
            return
        try:
            files = await self._storage.load_files(pod)
        except FairleadError as error:
            log.warning("the mounted files of pod %s were not updated: %s", pod.pod_name, error)
            return
        attempt.link.send({"op": "refresh", "files": files})

    def _forget(self, pod_id: str, *, logs_too: bool = False) -> None:
        for key in [key for key in self._attempts if key[0] == pod_id]:
            attempt = self._attempts[key]
            if attempt.has_ended:
                del self._attempts[key]
                if self._rights.means.groups is not None:
                    cgroups.sweep(self._rights.means.groups, f"{key[0]}.{key[1]}")
                self._move_to_trash(self._folders.private(key))
                self._folders.forget(key)
            else:
                attempt.forget = logs_too
        if logs_too and not any(key[0] == pod_id for key in self._attempts):
            self._move_to_trash(self._folders.pod_logs(pod_id))

    def _move_to_trash(self, folder: str) -> None:
        """Rename a folder at once and remove it in the background, because it can hold much."""
        aside = self._folders.move_to_trash(folder)
        if aside is not None:
            self._remove(aside)

    def _remove(self, folder: str) -> None:
        removal = asyncio.get_running_loop().run_in_executor(None, attempts.remove_folder, folder)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    # Messages of supervisors

    def _connect(self, attempt: PodAttempt, connection: socket.socket, greeting: wire.Message) -> None:
        def on_message(message: wire.Message) -> None:
            self._on_message(attempt, message)

        def on_disconnect() -> None:
            self._on_disconnect(attempt)

        attempt.link = Link(connection, on_message, on_disconnect)
        attempt.link.send(greeting)
        if attempt.stop is not None:
            attempt.link.send(_render_stop(attempt.stop))

    def _on_message(self, attempt: PodAttempt, message: wire.Message) -> None:
        if message.get("exists") and attempt.link is not None:
            # Another supervisor has it: started before a crash, and its files were not there yet.
            attempt.link.close()
            attempt.link = None
            self._adopt(attempt.key)
        elif "state" in message:
            report = attempts.render_report(message["state"])
            if report.state not in ENDED:
                self._set_report(attempt, report)

    def _on_disconnect(self, attempt: PodAttempt) -> None:
        attempt.link = None
        if attempt.has_ended:
            return
        unclaimed = self._folders.drop_unclaimed(attempt.key)
        if unclaimed and attempt.pod is not None and attempt.tries < TRIES:
            # The fork ended before it claimed the attempt, so nothing ran.
            self._spawn(self._launch(attempt, attempt.pod))
        elif unclaimed:
            self._fail_start(attempt, "its supervisor could not be started; see the fork server's log")
        else:
            self._read_end(attempt)

    def _adopt(self, key: Key) -> None:
        """Continue an attempt that an earlier server started."""
        record = journal.load(self._folders.journal(key))
        if record is None:
            return
        report = attempts.render_report(record)
        attempt = self._attempts.setdefault(key, PodAttempt(key, report))
        self._set_report(attempt, report)
        if report.state not in ENDED:
            self._exclusive_claims.restore(key, record.get("holds", ()))
            if record.get("network"):
                self._network.register(key[0], launch_order.decode_network(record["network"]))
            self._ports.add_listening(key[0], record.get("listens", ()))
            self._ports.restore(report.workload_id, record.get("owner", ""), report.ports, bool(record.get("network")))
            self._reconnect(attempt)

    def _reconnect(self, attempt: PodAttempt) -> None:
        try:
            connection = wire.connect(self._folders.control(attempt.key))
        except OSError:
            self._read_end(attempt)
            return
        self._connect(attempt, connection, {"op": "watch"})

    def _read_end(self, attempt: PodAttempt) -> None:
        """The supervisor does not answer: read how the pod ended, or clean up after a lost supervisor."""
        path = self._folders.journal(attempt.key)
        record = journal.load(path)
        if record is None:
            return
        report = attempts.render_report(record)
        if report.state in ENDED:
            self._set_report(attempt, report)
        else:
            self._spawn(self._clean_up_lost(attempt))

    async def _clean_up_lost(self, attempt: PodAttempt) -> None:
        path = self._folders.journal(attempt.key)
        while True:
            record = journal.load(path)
            if record is None or attempts.render_report(record).state in ENDED:
                break
            if not attempts.has_supervisor(record):
                record = await asyncio.to_thread(end_lost_pod, path, record, attempt.key, self._rights, self._clock)
                self._network.release(attempt.key[0])
                try:
                    await asyncio.to_thread(self._network.sweep)
                except OSError:
                    # It is removed at the next start; that the pod is lost is reported now.
                    log.warning("could not remove the network of a lost pod", exc_info=True)
                break
            # It lives and does not listen yet, or not any more.
            await asyncio.sleep(RECONNECT_SECONDS)
            if self._folders.has_control(attempt.key):
                self._reconnect(attempt)
                return
        if record is not None:
            self._set_report(attempt, attempts.render_report(record))

    def _fail_start(self, attempt: PodAttempt, why: str) -> None:
        """It could not be started: it has exited without a supervisor."""
        self._set_report(attempt, attempt.failed_to_start(why, self._clock()))

    def _set_report(self, attempt: PodAttempt, report: PodReport) -> None:
        attempt.report = report
        if attempt.key not in self._attempts:
            return
        if attempt.has_ended:
            attempt.pod, attempt.record = None, b""
            self._release(attempt)
        if attempt.has_ended and attempt.forget is not None:
            self._forget(attempt.key[0], logs_too=attempt.forget)
        self._changed[attempt.key] = None
        self._notify()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the engine failed", exc_info=task.exception())


def _render_stop(order: Stop) -> wire.Message:
    return {"op": "stop", "grace": order.grace_seconds}


def _nothing() -> None:
    """Before `start`, nobody is notified of changes."""
