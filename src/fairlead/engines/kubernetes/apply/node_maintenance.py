"""Cordons nodes, and evicts our pods from nodes that are drained, until they are gone or nobody wants it any more.

The engine passes it orders and changed pods. Evictions respect disruption budgets: the API server refuses one that a
budget forbids, and it is retried. Pods of others are never touched.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from fairlead.engines.base import MaintainNode
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, error_message
from fairlead.engines.kubernetes.client.resources import NODE, POD
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.writer import MANAGER

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_ENDED = ("Succeeded", "Failed")


class NodeMaintenance:
    def __init__(self, api: Api, list_pods: Callable[[], Iterable[objects.Pod]]) -> None:
        self._api = api
        self._list_pods = list_pods
        #: The last order for each node, and the task that carries it out.
        self._orders: dict[str, MaintainNode] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()

    def set_desired(self, order: MaintainNode) -> None:
        self._orders[order.name] = order
        if (running := self._running.get(order.name)) is not None:
            running.cancel()
        self._running[order.name] = self._tasks.spawn(self._maintain(order))

    def on_pod_changed(self, pod: objects.Pod) -> None:
        """A pod may have been bound to the node just before it was cordoned."""
        order = self._orders.get(pod.spec.node_name)
        if order is not None and order.evicts and _is_left(pod) and self._running[order.name].done():
            self.set_desired(order)

    async def close(self) -> None:
        await self._tasks.close()

    async def _maintain(self, order: MaintainNode) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                if await self._carry_out(order):
                    return
            except (ApiError, OSError) as error:
                if isinstance(error, ApiError) and error.status == 404:
                    log.info("Node %s no longer exists", order.name)
                    return
                log.warning("Node %s is not cordoned or drained yet, retrying: %s", order.name, error_message(error))
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _carry_out(self, order: MaintainNode) -> bool:
        """Returns whether nothing is left to do."""
        if order.cordon is not None:
            path, body = NODE.path(name=order.name), {"spec": {"unschedulable": order.cordon or None}}
            await self._api.request("PATCH", path, body, query={"fieldManager": MANAGER}, content=MERGE)
        pods = self._list_pods() if order.evicts else ()
        remaining = [pod for pod in pods if pod.spec.node_name == order.name and _is_left(pod)]
        await asyncio.gather(*map(self._evict, remaining))
        return not remaining

    async def _evict(self, pod: objects.Pod) -> None:
        metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
        options = {"preconditions": {"uid": pod.metadata.uid}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        path = POD.path(pod.metadata.namespace, pod.metadata.name)
        try:
            await self._api.request("POST", f"{path}/eviction", body)
        except ApiError as error:
            if error.status == 429:
                log.info("Pod %s cannot be evicted now: %s", pod.metadata.name, error_message(error))
            elif error.status not in (404, 409):
                raise


def _is_left(pod: objects.Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in _ENDED
