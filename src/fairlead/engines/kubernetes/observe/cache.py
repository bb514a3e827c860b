"""The objects that the cluster has of our workloads, kept up to date by watches and found by the workload's id.

The engine reads it, and is told which workloads have changed, and when the nodes have.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, retry_forever
from fairlead.engines.kubernetes.client.resources import (
    EVENT,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    RESOURCE_SLICE,
    RUNNERS,
    Resource,
)
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.watch import HasMetadata, ObjectWatch
from fairlead.engines.kubernetes.client.writer import ListedObjects
from fairlead.engines.kubernetes.observe.any_object import read_runner
from fairlead.engines.kubernetes.observe.bucket_uploads import with_upload_result
from fairlead.engines.kubernetes.observe.disruptions import find_disruption, job_that_counts
from fairlead.engines.kubernetes.observe.events import Controller, controllers_named_in, reasons_for
from fairlead.engines.kubernetes.observe.node_scaling import EVENT_FIELDS, ScalingEvents, is_about, is_about_stand_in
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.pod_group import is_fairlead_group
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess, signalled_success
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, is_waiting, run_of
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, ID_LABEL, OWN_LABEL
from fairlead.engines.kubernetes.render.pod_security import ENFORCED, LABEL

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

_Kind = TypeVar("_Kind", bound=HasMetadata)
#: Objects of one kind, by workload and by kind, namespace and name.
_Index = dict[str, dict[str, _Kind]]
_OnEvent = Callable[[objects.Event | None, objects.Event | None], None]


class CacheListener(Protocol):
    """Told of changes in the cache, by the workload's id."""

    def on_changed(self, workload_id: str) -> None: ...

    def on_object_added(self, workload_id: str) -> None: ...

    def on_controller_deleted(self, workload_id: str) -> None: ...

    def on_nodes_changed(self) -> None: ...

    def on_pod_changed(self, pod: objects.Pod) -> None: ...


class ClusterCache:
    #: Seconds that the end of a workload waits for the watch on pods: longer than it takes to notice a broken watch.
    patience = 300.0

    def __init__(self, api: Api, listener: CacheListener) -> None:
        self._api = api
        self._listener = listener
        self._pods: _Index[objects.Pod] = {}
        self._runners: _Index[objects.Runner] = {}
        self._groups: _Index[objects.PodGroup] = {}
        self._pods_by_uid: dict[str, objects.Pod] = {}
        #: By workload: (run, attempt) of pods that the scheduler preempted.
        self._disrupted: dict[str, set[tuple[int, int]]] = {}
        #: By workload: pods that were taken away and no longer exist, by their uid, as they were last seen.
        self._evicted: dict[str, dict[str, objects.Pod]] = {}
        #: By workload: pods that are wrongly counted as successes, by their uid, with their run.
        self._signalled: dict[str, dict[str, tuple[int, SignalledSuccess]]] = {}
        #: By workload: pods whose loss is counted as a failure, by their uid, with their run and their Job.
        self._lost: dict[str, dict[str, tuple[int, str]]] = {}
        #: By workload: uids of controllers that have ended; those whose pods are being compared, and those whose pods
        #: are known to be as the API server has them.
        self._comparing: dict[str, set[str]] = {}
        self._settled: dict[str, set[str]] = {}
        #: Events about controllers, by the event's name; ours are among them.
        self._events: dict[Controller, dict[str, objects.Event]] = {}
        #: Reasons of events that are watched, unless this account may not see events.
        self._watched_reasons: set[str] = set()
        self._may_read_events = True
        #: What autoscalers of nodes reported about pods.
        self.scaling = ScalingEvents()
        self._label = ""
        self._runner_watches: dict[str, ObjectWatch[objects.Runner]] = {}
        #: Keys of the kinds of users' manifests that are watched.
        self._watched_others: set[str] = set()
        self._nodes: ObjectWatch[objects.Node] | None = None
        self._slices: ObjectWatch[objects.ResourceSlice] | None = None
        self._namespaces: ObjectWatch[objects.Namespace] | None = None
        self._tasks = BackgroundTasks()
        self._adding = asyncio.Lock()

    async def start(
        self, label: str, runners: Iterable[Resource], *, has_groups: bool, watches_scaling: bool = True
    ) -> None:
        """Returns when everything was listed once; the watches go on from there."""
        self._label = label
        self._nodes = ObjectWatch(self._api, NODE.path(), objects.Node, self._on_node)
        self._namespaces = ObjectWatch(self._api, NAMESPACE.path(), objects.Namespace, _ignore, ENFORCED)
        self._runner_watches = {runner.key: self._watch_runner(runner) for runner in runners}
        watches: list[ObjectWatch[Any]] = [
            self._nodes,
            self._namespaces,
            ObjectWatch(self._api, POD.path(), objects.Pod, self._on_pod, label),
            *self._runner_watches.values(),
        ]
        if has_groups:
            watches.append(ObjectWatch(self._api, POD_GROUP.path(), objects.PodGroup, self._on_group, ID_LABEL))
        await asyncio.gather(*(watch.list() for watch in watches))
        for watch in watches:
            self._tasks.spawn(watch.run())
        await self._watch_events(runners)
        for fields in EVENT_FIELDS if watches_scaling else ():
            await self._watch_selected_events(fields, self._on_scaling_event)

    async def watch_devices(self) -> None:
        """Watch the devices of nodes that drivers offer, if our account may."""
        watch = ObjectWatch(self._api, RESOURCE_SLICE.path(), objects.ResourceSlice, self._on_slice)
        try:
            await watch.list()
        except ApiError as error:
            if error.status != 403:
                raise
            log.info("GPUs of DRA drivers are not counted, because a permission is missing: %s", error)
            return
        self._slices = watch
        self._tasks.spawn(watch.run())

    def _watch_runner(self, runner: Resource) -> ObjectWatch[objects.Runner]:
        on_runner = partial(self._on_runner, runner.key)
        return ObjectWatch(self._api, runner.path(), objects.Runner, on_runner, self._label)

    def _watch_any(self, resource: Resource) -> ObjectWatch[objects.CustomObject]:
        """A kind of which only its users know what is in its status."""

        def on_any(before: objects.CustomObject | None, after: objects.CustomObject | None) -> None:
            self._on_runner(resource.key, *(None if one is None else read_runner(one) for one in (before, after)))

        return ObjectWatch(self._api, resource.path(), objects.CustomObject, on_any, self._label)

    async def _watch_events(self, runners: Iterable[Resource]) -> None:
        """Watch events about pods that controllers of these kinds cannot create, if our account may."""
        for reason in sorted(reasons_for(runners) - self._watched_reasons):
            if await self._watch_selected_events(f"type=Warning,reason={reason}", self._on_event):
                self._watched_reasons.add(reason)

    async def _watch_selected_events(self, fields: str, on_event: _OnEvent) -> bool:
        """Returns whether they are watched: our account may not be allowed to."""
        if not self._may_read_events:
            return False
        watch = ObjectWatch(self._api, EVENT.path(), objects.Event, on_event, fields=fields)
        try:
            await watch.list()
        except ApiError as error:
            if error.status != 403:
                raise
            log.warning("Cannot tell why pods are not created, because a permission is missing: %s", error)
            self._may_read_events = False
            return False
        self._tasks.spawn(watch.run())
        return True

    async def add(self, runner: Resource) -> None:
        """Watch a kind that was installed after our start; once, even if several ask at the same time."""
        async with self._adding:
            if runner in RUNNERS and runner.key not in self._runner_watches:
                watch = self._watch_runner(runner)
                await watch.list()
                self._runner_watches[runner.key] = watch
                self._tasks.spawn(watch.run())
            elif runner not in RUNNERS and runner.key not in self._watched_others:
                other = self._watch_any(runner)
                await other.list()
                self._watched_others.add(runner.key)
                self._tasks.spawn(other.run())
            await self._watch_events((runner,))

    async def close(self) -> None:
        await self._tasks.close()

    # What the watches bring

    def _on_runner(self, kind: str, before: objects.Runner | None, after: objects.Runner | None) -> None:
        self._update(self._runners, kind, before, after)

    def _on_group(self, before: objects.PodGroup | None, after: objects.PodGroup | None) -> None:
        self._update(self._groups, "", before, after)

    def _on_pod(self, before: objects.Pod | None, after: objects.Pod | None) -> None:
        after = None if after is None else with_upload_result(after)
        self._update(self._pods, "", before, after)
        if before is not None:
            self._pods_by_uid.pop(before.metadata.uid, None)
        if after is None:
            if before is not None and find_disruption(before) is not None:
                # Nobody may have looked since it was evicted.
                self._evicted.setdefault(before.metadata.labels.get(ID_LABEL, ""), {})[before.metadata.uid] = before
            return
        self._pods_by_uid[after.metadata.uid] = after
        self._listener.on_pod_changed(after)
        id = after.metadata.labels.get(ID_LABEL, "")
        if (signalled := signalled_success(after)) is not None:
            self._signalled.setdefault(id, {})[after.metadata.uid] = run_of(after.metadata), signalled
        if job := job_that_counts(after):
            self._lost.setdefault(id, {})[after.metadata.uid] = run_of(after.metadata), job
        if find_disruption(after) is not None:
            # The pod may be gone before its job fails, and that failure is to be known as a preemption.
            attempt = run_of(after.metadata), launch_choices_of(after.metadata).attempt
            self._disrupted.setdefault(id, set()).add(attempt)

    def _update(self, index: _Index[_Kind], prefix: str, before: _Kind | None, after: _Kind | None) -> None:
        """The object's workload may be another one than before: somebody may have edited its labels."""
        for item in (before, after):
            if item is None:
                continue
            id = item.metadata.labels.get(ID_LABEL, "")
            key = f"{prefix}/{item.metadata.namespace}/{item.metadata.name}"
            if item is after:
                index.setdefault(id, {})[key] = item
            elif key in index.get(id, {}):
                del index[id][key]
                if not index[id]:
                    del index[id]
            if before is None:
                self._listener.on_object_added(id)
            if after is None and (prefix or OWN_LABEL in item.metadata.labels):
                self._listener.on_controller_deleted(id)
            self._listener.on_changed(id)

    def _on_event(self, before: objects.Event | None, after: objects.Event | None) -> None:
        event = after or before
        for controller in controllers_named_in(event) if event is not None else ():
            events = self._events.setdefault(controller, {})
            if after is not None:
                events[after.metadata.name] = after
            elif before is not None:
                events.pop(before.metadata.name, None)
            if not events:
                del self._events[controller]
            namespace, kind, name = controller
            watch = self._runner_watches.get(kind)
            runner = watch.objects.get((namespace, name)) if watch is not None else None
            if runner is not None:
                self._listener.on_changed(runner.metadata.labels.get(ID_LABEL, ""))

    def _on_scaling_event(self, before: objects.Event | None, after: objects.Event | None) -> None:
        self.scaling.update(before, after)
        event = after or before
        if event is None:
            return
        named = self._pods_by_uid.get(event.involved_object.uid)
        pods = [named] if named is not None else []
        if is_about_stand_in(event):
            pods = [pod for pod in self._pods_by_uid.values() if is_about(event, pod)]
        for pod in pods:
            self._listener.on_changed(pod.metadata.labels.get(ID_LABEL, ""))

    def _on_node(self, before: objects.Node | None, after: objects.Node | None) -> None:
        """Nodes report every few seconds that they are alive; only what concerns us is a change."""
        if _relevant(before) != _relevant(after):
            self._listener.on_nodes_changed()

    def _on_slice(self, before: objects.ResourceSlice | None, after: objects.ResourceSlice | None) -> None:
        self._listener.on_nodes_changed()

    # Questions

    def objects_of(self, workload_id: str) -> ObservedWorkload:
        runners = self._runners.get(workload_id, {})
        run = max((run_of(runner.metadata) for runner in runners.values()), default=0)
        return ObservedWorkload(
            runners=tuple(runners.values()),
            pods=tuple(self._pods.get(workload_id, {}).values()),
            groups=tuple(self._groups.get(workload_id, {}).values()),
            events=tuple(event for key in runners for event in self._events.get(_controller(key), {}).values()),
            scaling=tuple(
                event
                for pod in self._pods.get(workload_id, {}).values()
                if is_waiting(pod) and (event := self.scaling.about(pod)) is not None
            ),
            kinds=frozenset(key.partition("/")[0] for key in runners),
            disrupted=frozenset(attempt for of, attempt in self._disrupted.get(workload_id, ()) if of == run),
            evicted=tuple(self._evicted.get(workload_id, {}).values()),
            signalled=tuple(one for of, one in self._signalled.get(workload_id, {}).values() if of == run),
            lost=tuple(job for of, job in self._lost.get(workload_id, {}).values() if of == run),
            settled=frozenset(self._settled.get(workload_id, ())),
        )

    def controllers_of(self, workload_id: str) -> Iterator[tuple[str, objects.Metadata]]:
        """The controllers of a workload's pods, with their kinds."""
        for key, runner in self._runners.get(workload_id, {}).items():
            yield key.partition("/")[0], runner.metadata
        for group in self._groups.get(workload_id, {}).values():
            if is_fairlead_group(group):
                yield POD_GROUP.kind, group.metadata

    def workloads(self, cluster: str) -> set[tuple[str, str]]:
        """(id, namespace) of every workload that has an object here that this installation created."""
        indexes: tuple[_Index[Any], ...] = (self._pods, self._runners, self._groups)
        return {
            (id, item.metadata.namespace)
            for index in indexes
            for id, items in index.items()
            for item in items.values()
            if id and item.metadata.labels.get(CLUSTER_LABEL) == cluster
        }

    def has_objects(self, workload_id: str) -> bool:
        return any(workload_id in index for index in (self._pods, self._runners, self._groups))

    def newest_run(self, workload_id: str) -> int:
        """The newest run of a workload whose objects exist; 0 for none."""
        indexes = (self._runners, self._groups, self._pods)
        runs = [run_of(one.metadata) for index in indexes for one in index.get(workload_id, {}).values()]
        return max(runs, default=0)

    def pod(self, uid: str) -> objects.Pod | None:
        return self._pods_by_uid.get(uid)

    def pods(self) -> list[objects.Pod]:
        return list(self._pods_by_uid.values())

    def running_pods(self) -> list[objects.Pod]:
        """Read from another thread too: the list is made at once."""
        return [pod for pod in list(self._pods_by_uid.values()) if pod.status.phase == "Running"]

    def enforced_pod_security(self, namespace: str) -> str:
        """The Pod Security level that a namespace enforces; empty for none."""
        known = None if self._namespaces is None else self._namespaces.objects.get(("", namespace))
        return "" if known is None else known.metadata.labels[LABEL]

    def nodes(self) -> list[objects.Node]:
        return [] if self._nodes is None else list(self._nodes.values())

    def slices(self) -> list[objects.ResourceSlice]:
        return [] if self._slices is None else list(self._slices.values())

    # Watches that may be behind

    def ensure_consistent(self, workload_id: str, controller: objects.Metadata) -> None:
        """A controller has ended: learn of its pods as the API server has them, and tell the listener then."""
        comparing = self._comparing.setdefault(workload_id, set())
        if controller.uid not in comparing:
            comparing.add(controller.uid)
            settle: Callable[[], Any] = partial(self._wait_until_consistent, workload_id, controller)
            self._tasks.spawn(retry_forever(settle, "Cannot compare pods with the API server yet"))

    async def _wait_until_consistent(self, workload_id: str, controller: objects.Metadata) -> None:
        now = asyncio.get_running_loop().time
        pause, give_up = _FIRST_PAUSE, now() + self.patience
        while not await self._is_consistent(workload_id, controller.namespace):
            if now() > give_up:
                log.warning("The watch on pods is behind; workload %s ends with the pods known so far", workload_id)
                break
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        self._settled.setdefault(workload_id, set()).add(controller.uid)
        self._listener.on_changed(workload_id)

    async def _is_consistent(self, workload_id: str, namespace: str) -> bool:
        """Any difference is a change that the watch is about to bring."""
        selector = f"{self._label},{ID_LABEL}={workload_id}"
        stored = msgspec.json.decode(
            await self._api.get(POD.path(namespace), labelSelector=selector), type=ListedObjects
        )
        known = self._pods.get(workload_id, {}).values()
        return _versions(stored.items) == _versions(known)

    def forget(self, workload_id: str) -> None:
        """The workload is deleted, or starts again."""
        memories: tuple[dict[str, Any], ...] = (self._disrupted, self._evicted, self._signalled, self._lost)
        for remembered in (*memories, self._settled, self._comparing):
            remembered.pop(workload_id, None)


def _versions(items: Iterable[HasMetadata]) -> set[tuple[str, str]]:
    return {(item.metadata.uid, item.metadata.resource_version) for item in items}


def _ignore(before: objects.Namespace | None, after: objects.Namespace | None) -> None:
    """It counts for objects that are created from then on."""


def _controller(key: str) -> Controller:
    kind, namespace, name = key.split("/")
    return namespace, kind, name


def _relevant(node: objects.Node | None) -> object:
    if node is None:
        return None
    conditions = tuple((one.type, one.status) for one in node.status.conditions)
    return msgspec.to_builtins((node.metadata.labels, node.spec, node.status.allocatable, conditions))
