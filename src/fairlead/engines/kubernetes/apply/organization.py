"""Departments, projects and node pools in the cluster: namespaces, queues, priority classes, shards, labels of nodes.

`engine.py` tells it what there should be, and asks before it makes a workload's objects whether their place is ours.
What somebody else made is never touched.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from fairlead.engines.base import DesiredWorkload, SyncOrganization
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, error_message
from fairlead.engines.kubernetes.client.objects import Node
from fairlead.engines.kubernetes.client.resources import NAMESPACE, NODE, QUEUE, SHARD, Resource, path_of, resource_of
from fairlead.engines.kubernetes.client.writer import MANAGER, BlockedForNow, ListedObjects, ObjectWriter
from fairlead.engines.kubernetes.render.context import CLUSTER_LABEL, POOL_LABEL, RUNAI_POOL_LABEL
from fairlead.engines.kubernetes.render.organization import (
    pool_of,
    project_queue,
    render_namespaces,
    render_priority_classes,
    render_queues,
    render_shards,
)
from fairlead.model.errors import Refused

log = logging.getLogger(__name__)

#: How long a workload waits for its project's namespace and queue before it says so.
_PATIENCE = 5.0
#: The label of what Fairlead's own installation consists of; its secrets are nobody's to mount.
_SYSTEM = "app.kubernetes.io/managed-by"
#: The annotation of nodes that says for which pool we labelled them.
_POOL_NOTE = "fairlead/node-pool"
_NO_KAI = "it knows no queues; install KAI-Scheduler (`fairlead doctor --engine kubernetes` says what is missing)"


class OrganizationSync(ObjectWriter):
    def __init__(self, api: Api, cluster: str) -> None:
        super().__init__(api)
        self._cluster = cluster
        #: How KAI's operator is told of node pools, where it is installed.
        self.shards: tuple[Resource, ...] = ()
        #: Namespaces and queues as they should be, by path; those that a project asked for by name, those that can be
        #: used, and those that cannot as they are.
        self._wanted: dict[str, dict[str, Any]] = {}
        self._asked_for: set[str] = set()
        self._usable: set[str] = set()
        self._foreign: set[str] = set()
        self._turn = asyncio.Lock()
        self._organized = asyncio.Event()
        self._trouble = ""

    def plan(self, told: SyncOrganization) -> None:
        """What there should be, known before anything of it is made: whose workloads come meanwhile ask for it."""
        names = {project.requested_namespace for project in told.projects}
        self._asked_for = {NAMESPACE.path(name=name) for name in names}
        wanted = (*render_namespaces(told.projects, self._cluster), *render_queues(told, self._cluster))
        self._wanted = {path_of(body): body for body in wanted}

    async def organize(self, told: SyncOrganization) -> None:
        """Namespaces, priority classes and queues as they should be; queues of ours that should not be go."""
        # An older round would remove what a newer one made.
        async with self._turn:
            self._organized.clear()
            for body in render_priority_classes():
                if await self._api.find(path_of(body)) is None:
                    await self._apply(body)
            queues = render_queues(told, self._cluster)
            for body in (*render_namespaces(told.projects, self._cluster), *queues):
                await self._apply_if_owned(body)
            await self._drop(QUEUE, {body["metadata"]["name"] for body in queues})
            self._organized.set()
            self._trouble = ""
            if SHARD in self.shards:
                shards = render_shards(told.node_pools, self._cluster)
                for body in shards:
                    await self._apply_if_owned(body)
                await self._drop(SHARD, {body["metadata"]["name"] for body in shards})

    async def _drop(self, resource: Resource, wanted: set[str]) -> None:
        label = f"{CLUSTER_LABEL}={self._cluster}"
        listed = msgspec.json.decode(await self._api.get(resource.path(), labelSelector=label), type=ListedObjects)
        # Projects' queues before the departments' above them.
        for item in sorted(listed.items, key=lambda item: "runai/department-id" in item.metadata.labels):
            if item.metadata.name not in wanted:
                await self.delete(resource.path(name=item.metadata.name), item.metadata.uid)

    async def _apply_if_owned(self, body: dict[str, Any]) -> str:
        """Why it cannot be used, in words; empty when it can."""
        path = path_of(body)
        known = await self._find(path)
        labels = known.metadata.labels if known else {CLUSTER_LABEL: self._cluster}
        words = ""
        if labels.get(CLUSTER_LABEL) == self._cluster:
            try:
                await self._apply(body)
            except Refused as error:
                words = error.message
        elif CLUSTER_LABEL in labels or path not in self._asked_for or labels.get(_SYSTEM) == MANAGER:
            words = _whose(body, labels, self._cluster)
        if not words:
            self._foreign.discard(path)
            self._usable.add(path)
            return ""
        if path not in self._foreign:
            log.warning("%s", words)
        self._usable.discard(path)
        self._foreign.add(path)
        return words

    async def check(self, run: DesiredWorkload) -> None:
        """Returns when a workload's namespace and queue can be used; raises Taken while they cannot."""
        queue = project_queue(run.project, run.tried_pools)
        for path in (NAMESPACE.path(name=run.namespace), QUEUE.path(name=queue)):
            if path not in self._usable:
                await self._wait(run.project)
            body = None if path in self._usable else self._wanted.get(path)
            if body is not None and (words := await self._apply_if_owned(body)):
                raise BlockedForNow(words)

    async def recheck_namespace(self, run: DesiredWorkload) -> None:
        """Something was not found: if somebody removed the namespace, the next `check` makes it again."""
        path = NAMESPACE.path(name=run.namespace)
        if path in self._usable and await self._find(path) is None:
            log.warning("namespace %s of project %s was removed; it is made again", run.namespace, run.project)
            self._usable.discard(path)

    async def _wait(self, project: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._organized.wait()
        except TimeoutError:
            words = f"The namespace and the queues of project {project} are not in the cluster yet"
            raise BlockedForNow(f"{words}: {self._trouble}" if self._trouble else words) from None

    def note_trouble(self, error: ApiError | OSError) -> None:
        """Why projects and queues could not be brought to the cluster."""
        is_unknown = isinstance(error, ApiError) and error.status == 404 and not error.reason
        self._trouble = _NO_KAI if is_unknown else error_message(error)

    async def label_nodes(self, nodes: Iterable[Node], told: SyncOrganization) -> None:
        """Nodes that carry a pool's pair get the labels of that pool; others lose them, if the pool is one of ours."""
        names = {pool.name for pool in told.node_pools}
        given = {(pool.label_key, pool.label_value) for pool in told.node_pools}
        for node in nodes:
            # A pair by which an operator put the node into a pool is the operator's.
            labels = {POOL_LABEL, RUNAI_POOL_LABEL}
            labels = {label for label in labels if (label, node.metadata.labels.get(label)) not in given}
            wanted = pool_of(node, told.node_pools)
            # Of a pool that is no more, only the node still knows.
            noted = node.metadata.annotations.get(_POOL_NOTE, "")
            has = {label: node.metadata.labels.get(label, "") for label in labels}
            change = {label: wanted or None for label in labels if wanted or has[label] in names | {noted}}
            if wanted == noted and all(has[label] == (value or "") for label, value in change.items()):
                continue
            metadata = {"labels": change, "annotations": {_POOL_NOTE: wanted or None}}
            path, body = NODE.path(name=node.metadata.name), {"metadata": metadata}
            await self._api.request("PATCH", path, body, query={"fieldManager": MANAGER}, content=MERGE)


def _whose(body: dict[str, Any], labels: dict[str, str], mine: str) -> str:
    resource, name = resource_of(body), body["metadata"]["name"]
    group = resource.api.rpartition("/")[0]
    kind = f"{resource.plural}.{group}" if group else resource.plural
    over = f"kubectl label {kind} {name} --overwrite {CLUSTER_LABEL}={mine}"
    if other := labels.get(CLUSTER_LABEL):
        return f"{body['kind']} {name} belongs to another Fairlead, {other}; if that one is gone for good: {over}"
    if labels.get(_SYSTEM) == MANAGER:
        return f"{body['kind']} {name} is Fairlead's own; give the project another namespace"
    return f"{body['kind']} {name} exists and is not Fairlead's; remove it, or hand it over: {over}"
