"""Departments, projects and node pools in the cluster: namespaces, queues, priority classes, shards, node labels.

The engine tells it what there should be, and the executor asks whether a workload's namespace and queue can be used.
Objects of somebody else are never touched.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fairlead.engines.base import DesiredOrganization, DesiredWorkload
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, error_message, retry_forever
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.client.resources import (
    CLUSTER_ROLE,
    NAMESPACE,
    NODE,
    QUEUE,
    SHARD,
    Manifest,
    Resource,
    path_of,
    resource_of,
)
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.writer import MANAGER, BlockedForNow, ObjectWriter
from fairlead.engines.kubernetes.plan.existing_objects import digest_manifest, is_contained, with_digest
from fairlead.engines.kubernetes.render.labels import (
    CLUSTER_LABEL,
    POOL_LABEL,
    POOL_NOTE,
    PROJECT_ROLE,
    RUNAI_POOL_LABEL,
)
from fairlead.engines.kubernetes.render.organization import (
    pool_of,
    project_queue,
    render_binding,
    render_namespaces,
    render_priority_classes,
    render_queues,
    render_shards,
    render_subject,
)
from fairlead.model.errors import Refused
from fairlead.model.records.organization import NodePool

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
#: Seconds that a workload waits for its project's namespace and queue before it reports that.
_PATIENCE = 5.0
#: The label of Fairlead's own installation, whose secrets no workload may mount.
_SYSTEM = "app.kubernetes.io/managed-by"
_NO_KAI = "it has no queues; install KAI-Scheduler (`fairlead doctor --engine kubernetes` shows what is missing)"

#: Where the API server says who is asking.
_WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

ListNodes = Callable[[], Iterable[objects.Node]]


class _UserInfo(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class OrganizationSync(ObjectWriter):
    def __init__(self, api: Api, cluster_id: Callable[[], str], kinds: InstalledKinds, nodes: ListNodes = list) -> None:
        super().__init__(api)
        self._cluster_id = cluster_id
        self._kinds = kinds
        self._nodes = nodes
        self._desired: DesiredOrganization | None = None
        #: Namespaces and queues that there should be, by path; those that a project asked for by name, those that can
        #: be used, and those that cannot because they belong to somebody else, with a message.
        self._wanted: dict[str, Manifest] = {}
        self._asked_for: set[str] = set()
        self._usable: set[str] = set()
        self._foreign: dict[str, str] = {}
        #: The account that is bound in namespaces of projects; None if it needs no binding.
        self._account: Manifest | None = None
        #: Namespaces in which this server has bound it.
        self._bound: set[str] = set()
        #: Nodes that have their labels, by name, and the node pools that these are about.
        self._labelled: dict[str, objects.Node] = {}
        self._labelled_pools: tuple[NodePool, ...] = ()
        self._one_at_a_time = asyncio.Lock()
        self._is_synced = asyncio.Event()
        self._retrying_because = ""
        self._has_unlabelled = False
        self._labelling: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()

    async def close(self) -> None:
        await self._tasks.close()

    async def find_account(self) -> None:
        """Whether this account has its rights in projects by bindings, which it creates itself."""
        try:
            role = await self._api.find(CLUSTER_ROLE.path(name=PROJECT_ROLE))
        except ApiError as error:
            if error.status != 403:
                raise
            role = None
        if role is not None:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            answer = await self._api.request("POST", _WHO_AM_I, review)
            self._account = render_subject(msgspec.json.decode(answer, type=_Review).status.user_info.username)

    @property
    def namespaces(self) -> set[str]:
        """The namespaces of projects."""
        return {project.namespace for project in self._desired.projects} if self._desired is not None else set()

    @property
    def node_pools(self) -> tuple[NodePool, ...]:
        return self._desired.node_pools if self._desired is not None else ()

    async def wait_until_synced(self) -> None:
        """Returns when namespaces, queues and our rights in them have been applied."""
        await self._is_synced.wait()

    def find_problem(self, namespace: str) -> str:
        """Why a namespace of a project cannot be used; empty if it can."""
        return self._foreign.get(NAMESPACE.path(name=namespace), "")

    def set_desired(self, desired: DesiredOrganization) -> None:
        """Known at once, so that workloads that come before anything is applied can ask for it."""
        self._desired = desired
        names = {project.requested_namespace for project in desired.projects}
        self._asked_for = {NAMESPACE.path(name=name) for name in names}
        wanted = (*render_namespaces(desired.projects, self._cluster_id()), *render_queues(desired, self._cluster_id()))
        self._wanted = {path_of(manifest): with_digest(manifest, digest_manifest(manifest)) for manifest in wanted}
        self._tasks.spawn(self._sync_until_applied(desired))

    async def _sync_until_applied(self, desired: DesiredOrganization) -> None:
        pause = _FIRST_PAUSE
        while desired is self._desired:
            try:
                await self._sync(desired)
                await self.label_nodes(self._nodes(), desired)
                return
            except Refused as error:
                log.warning("The cluster does not accept the objects of the projects: %s", error)
                return
            except (ApiError, OSError) as error:
                log.warning("Projects and queues are not in the cluster yet; retrying: %s", error)
                is_unknown_kind = isinstance(error, ApiError) and error.status == 404 and not error.reason
                self._retrying_because = _NO_KAI if is_unknown_kind else error_message(error)
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)

    async def _sync(self, desired: DesiredOrganization) -> None:
        """Apply namespaces, priority classes and queues; delete queues of ours that are not desired."""
        # An older round would delete what a newer one created.
        async with self._one_at_a_time:
            if desired is not self._desired:
                return
            self._is_synced.clear()
            for manifest in render_priority_classes():
                if await self._api.find(path_of(manifest)) is None:
                    await self._apply(manifest)
            wanted = self._wanted
            stored = await self._load_ours(NAMESPACE) | await self._load_ours(QUEUE)
            for path, manifest in wanted.items():
                await self._apply_if_changed(manifest, stored.get(path))
            await self._delete_others(QUEUE, stored, wanted)
            self._is_synced.set()
            self._retrying_because = ""
            if self._kinds.has_shards:
                shards = {path_of(shard): shard for shard in render_shards(desired.node_pools, self._cluster_id())}
                for shard in shards.values():
                    await self._apply_if_owned(shard)
                await self._delete_others(SHARD, await self._load_ours(SHARD), shards)

    async def _load_ours(self, resource: Resource) -> dict[str, Manifest]:
        """All objects of a kind that have our label, by path."""
        listed: Any = msgspec.json.decode(
            await self._api.get(resource.path(), labelSelector=f"{CLUSTER_LABEL}={self._cluster_id()}")
        )
        return {resource.path(name=item["metadata"]["name"]): item for item in listed["items"]}

    async def _delete_others(self, resource: Resource, stored: dict[str, Manifest], wanted: Iterable[str]) -> None:
        others = {path: item["metadata"] for path, item in stored.items() if path.startswith(resource.path() + "/")}
        for path in wanted:
            others.pop(path, None)
        # Queues of projects before those of their departments.
        for path, metadata in sorted(others.items(), key=lambda one: "runai/department-id" in one[1].get("labels", {})):
            await self.delete(path, metadata["uid"])

    async def _apply_if_changed(self, manifest: Manifest, stored: Manifest | None) -> None:
        """Send nothing if the object is in the cluster as desired, whoever may have edited it meanwhile."""
        path = path_of(manifest)
        if stored is None or not is_contained(manifest, stored):
            await self._apply_if_owned(manifest)
            return
        if manifest["kind"] == NAMESPACE.kind:
            await self._bind_account(manifest["metadata"]["name"])
        self._foreign.pop(path, None)
        self._usable.add(path)

    async def _apply_if_owned(self, manifest: Manifest) -> str:
        """Why the object cannot be used; empty if it can."""
        path = path_of(manifest)
        known = await self._find(path)
        labels = known.metadata.labels if known else {CLUSTER_LABEL: self._cluster_id()}
        message = ""
        if labels.get(CLUSTER_LABEL) == self._cluster_id():
            try:
                await self._apply(manifest)
            except Refused as error:
                message = error.message
            if not message and manifest["kind"] == NAMESPACE.kind:
                await self._bind_account(manifest["metadata"]["name"])
        elif CLUSTER_LABEL in labels or path not in self._asked_for or labels.get(_SYSTEM) == MANAGER:
            message = _ownership_message(manifest, labels, self._cluster_id())
        if not message:
            self._foreign.pop(path, None)
            self._usable.add(path)
            return ""
        if path not in self._foreign:
            log.warning("%s", message)
        self._usable.discard(path)
        self._foreign[path] = message
        return message

    async def _bind_account(self, namespace: str) -> None:
        """Give our account its rights in a namespace of a project, once."""
        if self._account is not None and namespace not in self._bound:
            try:
                await self._apply(render_binding(namespace, self._account))
                self._bound.add(namespace)
            except (ApiError, Refused) as error:
                if isinstance(error, ApiError) and error.status != 403:
                    raise
                log.warning("Cannot grant this server its rights in namespace %s: %s", namespace, error)

    async def check(self, run: DesiredWorkload) -> None:
        """Returns when a workload's namespace and queue can be used; raises BlockedForNow if they cannot."""
        queue = project_queue(run.project, run.tried_pools)
        for path in (NAMESPACE.path(name=run.namespace), QUEUE.path(name=queue)):
            if path not in self._usable:
                await self._wait_until_synced(run.project)
            manifest = None if path in self._usable else self._wanted.get(path)
            if manifest is not None and (message := await self._apply_if_owned(manifest)):
                raise BlockedForNow(message)

    async def recheck_namespace(self, run: DesiredWorkload, error: ApiError) -> None:
        """The cluster refused an object: if somebody deleted the namespace or our rights in it, restore them.

        The next `check` does that.
        """
        path = NAMESPACE.path(name=run.namespace)
        is_gone = error.status == 404 and path in self._usable and await self._find(path) is None
        if is_gone:
            log.warning("Namespace %s of project %s was deleted; creating it again", run.namespace, run.project)
        if is_gone or (error.status == 403 and run.namespace in self._bound):
            self._usable.discard(path)
            self._bound.discard(run.namespace)

    async def _wait_until_synced(self, project: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._is_synced.wait()
        except TimeoutError:
            message = f"The namespace and the queues of project {project} are not in the cluster yet"
            because = f": {self._retrying_because}" if self._retrying_because else ""
            raise BlockedForNow(message + because) from None

    # Nodes

    def on_nodes_changed(self) -> None:
        self._has_unlabelled = True
        if self._labelling is None or self._labelling.done():
            label = retry_forever(self._label_changed_nodes, "Nodes are not labelled for their node pools yet")
            self._labelling = self._tasks.spawn(label)

    async def _label_changed_nodes(self) -> None:
        while self._has_unlabelled and self._desired is not None:
            self._has_unlabelled = False
            try:
                await self.label_nodes(self._nodes(), self._desired)
            except BaseException:
                self._has_unlabelled = True
                raise

    async def label_nodes(self, nodes: Iterable[objects.Node], desired: DesiredOrganization) -> None:
        """Nodes with a pool's own label get our labels of that pool; other nodes lose them, if the pool was ours."""
        # Of thousands of nodes, few change at a time.
        before = self._labelled if self._labelled_pools == desired.node_pools else {}
        self._labelled, self._labelled_pools = {}, desired.node_pools
        for node in nodes:
            if before.get(node.metadata.name) is not node:
                await self._label_node(node, desired.node_pools)
            self._labelled[node.metadata.name] = node

    async def _label_node(self, node: objects.Node, pools: Iterable[NodePool]) -> None:
        given = {(pool.label_key, pool.label_value) for pool in pools}
        # A label by which an operator put the node into a pool is the operator's.
        labels = {POOL_LABEL, RUNAI_POOL_LABEL}
        labels = {label for label in labels if (label, node.metadata.labels.get(label)) not in given}
        wanted = pool_of(node, pools)
        # Only the node still knows a pool that was deleted.
        noted = node.metadata.annotations.get(POOL_NOTE, "")
        own_pools = {noted, *(pool.name for pool in pools)}
        has = {label: node.metadata.labels.get(label, "") for label in labels}
        change = {label: wanted or None for label in labels if wanted or has[label] in own_pools}
        if wanted == noted and all(has[label] == (value or "") for label, value in change.items()):
            return
        metadata = {"labels": change, "annotations": {POOL_NOTE: wanted or None}}
        path, body = NODE.path(name=node.metadata.name), {"metadata": metadata}
        await self._api.request("PATCH", path, body, query={"fieldManager": MANAGER}, content=MERGE)


def _ownership_message(manifest: Manifest, labels: dict[str, str], cluster: str) -> str:
    resource, name = resource_of(manifest), manifest["metadata"]["name"]
    group = resource.api.rpartition("/")[0]
    kind = f"{resource.plural}.{group}" if group else resource.plural
    command = f"kubectl label {kind} {name} --overwrite {CLUSTER_LABEL}={cluster}"
    if other := labels.get(CLUSTER_LABEL):
        owner = f"belongs to another Fairlead installation, {other}"
        return f"{manifest['kind']} {name} {owner}; if that is gone for good: {command}"
    if labels.get(_SYSTEM) == MANAGER:
        return f"{manifest['kind']} {name} is Fairlead's own; give the project another namespace"
    return f"{manifest['kind']} {name} exists and does not belong to Fairlead; delete it, or hand it over: {command}"
