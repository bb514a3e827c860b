"""What the cluster has of our workloads, kept up to date by watches and found by the workload's id.

`engine.py` asks it; it tells the engine which workloads changed, and when the nodes are others.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.objects import (
    Event,
    Metadata,
    Namespace,
    Node,
    Pod,
    PodGroup,
    Runner,
    condition,
)
from fairlead.engines.kubernetes.client.resources import EVENT, NAMESPACE, NODE, POD, POD_GROUP, Resource
from fairlead.engines.kubernetes.client.watch import HasMetadata, ObjectWatch
from fairlead.engines.kubernetes.client.writer import ListedObjects
from fairlead.engines.kubernetes.observe.bucket_uploads import with_upload_result
from fairlead.engines.kubernetes.observe.events import Maker, controllers_named_in, reasons_for
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.report import WorkloadObjectsSeen, run_of
from fairlead.engines.kubernetes.render.context import CLUSTER_LABEL, ID_LABEL
from fairlead.engines.kubernetes.render.pod_group import OWN_LABEL, is_fairlead_group
from fairlead.engines.kubernetes.render.pod_security import ENFORCED, LABEL

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

_Kind = TypeVar("_Kind", bound=HasMetadata)
_Shelf = dict[str, dict[str, Any]]


class ClusterCache:
    """Calls `changed` with the id of a workload of which something changed, `found` when something of it is new, `lost`
    when what makes its pods is gone, and `moved` when nodes are others."""

    #: How long an end waits for the watch on pods, in seconds: longer than a watch that is broken unnoticed.
    patience = 300.0

    def __init__(
        self,
        api: Api,
        changed: Callable[[str], None],
        found: Callable[[str], None],
        lost: Callable[[str], None],
        moved: Callable[[], None],
    ) -> None:
        self._api = api
        self._changed = changed
        self._found = found
        self._lost = lost
        self._moved = moved
        self._shelves: dict[type, _Shelf] = {Pod: {}, Runner: {}, PodGroup: {}}
        self._uids: dict[str, Pod] = {}
        #: By workload: (run, attempt) of pods that the scheduler took away, and what `settle` was told.
        self._disrupted: dict[str, set[tuple[int, int]]] = {}
        self._settled: dict[str, set[str]] = {}
        #: What was said of objects that make pods, by event; ours are among them.
        self._said: dict[Maker, dict[str, Event]] = {}
        #: Reasons of events that are watched, unless this account may not see them.
        self._heard: set[str] = set()
        self._may_hear = True
        self._runners: dict[str, ObjectWatch[Runner]] = {}
        self._label = ""
        self._watches: list[ObjectWatch[Any]] = []
        self._nodes: ObjectWatch[Node] | None = None
        self._namespaces: ObjectWatch[Namespace] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._adding = asyncio.Lock()

    async def start(self, label: str, runners: Iterable[Resource], *, has_groups: bool) -> None:
        """Returns when everything that is there has been read once; watches from then on."""
        self._label = label
        self._nodes = ObjectWatch(self._api, NODE.path(), Node, self._note_node)
        self._namespaces = ObjectWatch(self._api, NAMESPACE.path(), Namespace, _ignore, ENFORCED)
        self._runners = {runner.kind: self._watch(runner) for runner in runners}
        self._watches = [
            self._nodes,
            self._namespaces,
            ObjectWatch(self._api, POD.path(), Pod, self._keep_pod, label),
            *self._runners.values(),
        ]
        if has_groups:
            self._watches.append(ObjectWatch(self._api, POD_GROUP.path(), PodGroup, self._keeper(PodGroup), ID_LABEL))
        await asyncio.gather(*(watch.list() for watch in self._watches))
        self._tasks = [_spawn(watch.run()) for watch in self._watches]
        await self._hear(runners)

    def _watch(self, runner: Resource) -> ObjectWatch[Runner]:
        return ObjectWatch(self._api, runner.path(), Runner, self._keeper(Runner, runner.kind), self._label)

    async def _hear(self, runners: Iterable[Resource]) -> None:
        """Watch what controllers of these kinds say when they cannot make pods, as far as we may."""
        for reason in sorted(reasons_for(runners) - self._heard) if self._may_hear else ():
            fields = f"type=Warning,reason={reason}"
            watch = ObjectWatch(self._api, EVENT.path(), Event, self._note_event, fields=fields)
            try:
                await watch.list()
            except ApiError as error:
                if error.status != 403:
                    raise
                log.warning("why pods cannot be made will not be told, for want of a permission: %s", error)
                self._may_hear = False
                return
            self._heard.add(reason)
            self._tasks.append(_spawn(watch.run()))

    async def add(self, runner: Resource) -> None:
        """Watch a kind that was installed later than we were started; once, whoever else asks meanwhile."""
        async with self._adding:
            if runner.kind not in self._runners:
                watch = self._watch(runner)
                await watch.list()
                self._runners[runner.kind] = watch
                self._watches.append(watch)
                self._tasks.append(_spawn(watch.run()))
            await self._hear((runner,))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keeper(self, kind: type[_Kind], prefix: str = "") -> Callable[[_Kind | None, _Kind | None], None]:
        shelf = self._shelves[kind]

        def keep(before: _Kind | None, after: _Kind | None) -> None:
            for item in (before, after):
                if item is None:
                    continue
                id = item.metadata.labels.get(ID_LABEL, "")
                key = f"{prefix}/{item.metadata.namespace}/{item.metadata.name}"
                if item is after:
                    shelf.setdefault(id, {})[key] = item
                elif key in shelf.get(id, {}):
                    del shelf[id][key]
                    if not shelf[id]:
                        del shelf[id]
                if before is None:
                    self._found(id)
                if after is None and (kind is Runner or OWN_LABEL in item.metadata.labels):
                    self._lost(id)
                self._changed(id)
            if kind is Pod:
                self._note_pod(before, after)

        return keep

    def _keep_pod(self, before: Pod | None, after: Pod | None) -> None:
        self._keeper(Pod)(before, None if after is None else with_upload_result(after))

    def _note_pod(self, before: Any, after: Any) -> None:
        if before is not None:
            self._uids.pop(before.metadata.uid, None)
        if after is None:
            return
        self._uids[after.metadata.uid] = after
        if condition(after.status.conditions, "DisruptionTarget") is not None:
            # It may be gone before anybody looks, and what it leads to is still to be told from a failure.
            id = after.metadata.labels.get(ID_LABEL, "")
            place = run_of(after.metadata), launch_choices_of(after.metadata).attempt
            self._disrupted.setdefault(id, set()).add(place)

    def _note_event(self, before: Event | None, after: Event | None) -> None:
        event = after or before
        for maker in controllers_named_in(event) if event is not None else ():
            said = self._said.setdefault(maker, {})
            if after is not None:
                said[after.metadata.name] = after
            elif before is not None:
                said.pop(before.metadata.name, None)
            if not said:
                del self._said[maker]
            namespace, kind, name = maker
            runner = self._runners[kind].objects.get((namespace, name)) if kind in self._runners else None
            if runner is not None:
                self._changed(runner.metadata.labels.get(ID_LABEL, ""))

    def _note_node(self, before: Node | None, after: Node | None) -> None:
        """Nodes report every few seconds that they are well; only what concerns us is a change."""
        if _essence(before) != _essence(after):
            self._moved()

    def objects_of(self, workload_id: str) -> WorkloadObjectsSeen:
        pods, runners, groups = (self._shelves[kind].get(workload_id, {}) for kind in (Pod, Runner, PodGroup))
        present = max((run_of(runner.metadata) for runner in runners.values()), default=0)
        return WorkloadObjectsSeen(
            runners=tuple(runners.values()),
            pods=tuple(pods.values()),
            groups=tuple(groups.values()),
            events=tuple(event for key in runners for event in self._said.get(_maker(key), {}).values()),
            kinds=frozenset(key.partition("/")[0] for key in runners),
            disrupted=frozenset(at for run, at in self._disrupted.get(workload_id, ()) if run == present),
            settled=frozenset(self._settled.get(workload_id, ())),
        )

    def controllers_of(self, workload_id: str) -> Iterator[tuple[str, Metadata]]:
        """What makes a workload's pods, by kind."""
        for key, runner in self._shelves[Runner].get(workload_id, {}).items():
            yield key.partition("/")[0], runner.metadata
        for group in self._shelves[PodGroup].get(workload_id, {}).values():
            if is_fairlead_group(group):
                yield POD_GROUP.kind, group.metadata

    def workloads(self, cluster: str) -> set[tuple[str, str]]:
        """(id, namespace) of every workload of which something is here that this installation made."""
        return {
            (id, item.metadata.namespace)
            for shelf in self._shelves.values()
            for id, items in shelf.items()
            for item in items.values()
            if id and item.metadata.labels.get(CLUSTER_LABEL) == cluster
        }

    def forget(self, workload_id: str) -> None:
        """It begins anew, or nothing is left of it."""
        self._disrupted.pop(workload_id, None)
        self._settled.pop(workload_id, None)

    async def wait_until_consistent(self, workload_id: str, maker: Metadata) -> None:
        """Returns when a workload's pods are known as the API server has them, after its maker said that it is over."""
        pause, give_up = _FIRST_PAUSE, time.monotonic() + self.patience
        while not await self._is_in_step(workload_id, maker.namespace):
            if time.monotonic() > give_up:
                log.warning("pods of workload %s are not seen as they are; it ends as far as is known", workload_id)
                break
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        self._settled.setdefault(workload_id, set()).add(maker.uid)
        self._changed(workload_id)

    async def _is_in_step(self, workload_id: str, namespace: str) -> bool:
        """Each difference is a change that the watch is about to bring."""
        selector = f"{self._label},{ID_LABEL}={workload_id}"
        found = msgspec.json.decode(
            await self._api.get(POD.path(namespace), labelSelector=selector), type=ListedObjects
        )
        known = self._shelves[Pod].get(workload_id, {}).values()
        there, held = (
            {(one.metadata.uid, one.metadata.resource_version) for one in pods} for pods in (found.items, known)
        )
        return there == held

    def has_objects(self, workload_id: str) -> bool:
        """Whether anything of a workload is there."""
        return any(workload_id in shelf for shelf in self._shelves.values())

    def pod(self, uid: str) -> Pod | None:
        return self._uids.get(uid)

    def enforced_pod_security(self, namespace: str) -> str:
        """The level of Pod Security that a namespace enforces; empty for none."""
        found = None if self._namespaces is None else self._namespaces.objects.get(("", namespace))
        return "" if found is None else found.metadata.labels[LABEL]

    def nodes(self) -> list[Node]:
        return [] if self._nodes is None else list(self._nodes.values())


def _ignore(before: Namespace | None, after: Namespace | None) -> None:
    """It counts for what is made from then on."""


def _maker(key: str) -> Maker:
    kind, namespace, name = key.split("/")
    return namespace, kind, name


def _essence(node: Node | None) -> Any:
    if node is None:
        return None
    ready = tuple((one.type, one.status) for one in node.status.conditions)
    return msgspec.to_builtins((node.metadata.labels, node.spec, node.status.allocatable, ready))


def _spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
