"""Stands in for what a cluster on one machine does not have: kubelets of nodes that are not there, and GPUs.

- Nodes marked `cluster.fairlead/no-kubelet` are kept ready; their pods start at once, and end as their annotations say.
- Nodes that are labelled with a number of GPUs offer that many.
- KAI's reservation pods get the index that NVIDIA's library would tell them.
- Claims get volumes (`volumes.py`).
Run in the cluster by `up`; state is only what the API server has, so that it can be killed at any time.
"""

import heapq
import http.client
import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.cluster.api import MERGE, STRATEGIC, Api, ApiError, Object
from deploy.cluster.nodes import GPUS, MARK
from deploy.cluster.objects import RESERVATIONS
from deploy.cluster.pod_life import ends_after, fake_address, render_ended, render_running, render_stopped, timestamp
from deploy.cluster.volumes import Volumes

GPU = "nvidia.com/gpu"
INDEX = "run.ai/reserve_for_gpu_index"
HEARTBEAT = 15.0
Event = tuple[str, str, Object]


class StandIn:
    def __init__(self, api: Api, volumes: Volumes) -> None:
        self._api = api
        self._volumes = volumes
        self._nodes: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        #: What is due when: pods that end by themselves, and the nodes' sign of life.
        self._due: list[tuple[float, int, str]] = []
        self._scheduled: set[str] = set()
        self._order = itertools.count()
        self._next_heartbeat = 0.0

    def wait_seconds(self) -> float:
        soonest = min(self._next_heartbeat, self._due[0][0]) if self._due else self._next_heartbeat
        return max(0.0, soonest - time.monotonic())

    def note(self, event: Event) -> None:
        what, kind, found = event
        match what:
            case "nodes":
                self._note_node(kind, found)
            case "pods":
                self._note_pod(kind, found)
            case "claims":
                self._attempt(self._volumes.note_claim, kind, found)
            case "volumes":
                self._attempt(self._volumes.note_volume, kind, found)

    def act_on_time(self) -> None:
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT
            for name in [name for name, node in self._nodes.items() if is_ours(node)]:
                self._attempt(self._beat, name)
        while self._due and self._due[0][0] <= now:
            pod = self._pods.get(heapq.heappop(self._due)[2])
            if pod is not None:
                self._attempt(self._end, pod)

    def _note_node(self, kind: str, node: Object) -> None:
        name = node["metadata"]["name"]
        if kind == "DELETED":
            self._nodes.pop(name, None)
            return
        is_new = name not in self._nodes
        self._nodes[name] = node
        self._attempt(self._offer_gpus, node)
        if is_ours(node) and not is_node_ready(node):
            self._attempt(self._greet, name)
        if is_new:
            for pod in [pod for pod in self._pods.values() if pod["spec"].get("nodeName") == name]:
                self._attempt(self._live, pod)

    def _note_pod(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._scheduled.discard(uid)
            return
        self._pods[uid] = pod
        self._attempt(self._live, pod)

    def _attempt(self, act: Callable[..., None], *subject: Any) -> None:
        """What fails here is seen again with the next change of the object, or was overtaken by one."""
        try:
            act(*subject)
        except ApiError as error:
            if error.status not in (404, 409):
                sys.stderr.write(f"{act.__name__.strip('_')}: {error}\n")
                sys.stderr.flush()

    def _offer_gpus(self, node: Object) -> None:
        count = node["metadata"].get("labels", {}).get(GPUS, "0")
        if node.get("status", {}).get("allocatable", {}).get(GPU, "0") != count:
            amounts = {GPU: count}
            path = f"/api/v1/nodes/{node['metadata']['name']}/status"
            self._api.call("PATCH", path, {"status": {"capacity": amounts, "allocatable": amounts}}, MERGE)

    def _greet(self, name: str) -> None:
        self._beat(name)
        now = timestamp()
        ready = {"type": "Ready", "status": "True", "reason": "NoKubelet", "message": "nothing runs here"}
        condition = {**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}
        addresses = [{"type": "InternalIP", "address": fake_address(name)}, {"type": "Hostname", "address": name}]
        status = {"conditions": [condition], "addresses": addresses}
        self._api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)

    def _beat(self, name: str) -> None:
        """The controller manager takes a node for dead whose lease is old."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": timestamp(micro=True)},
        }
        self._api.apply(lease)

    def _live(self, pod: Object) -> None:
        if pod["metadata"]["namespace"] == RESERVATIONS and INDEX not in pod["metadata"].get("annotations", {}):
            self._reserve(pod)
        node = self._nodes.get(pod["spec"].get("nodeName", ""))
        if node is None or not is_ours(node):
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._remove(pod)
        elif pod["status"].get("phase", "Pending") == "Pending":
            self._patch(pod, render_running(pod))
        elif pod["status"]["phase"] == "Running":
            self._schedule_end(pod)

    def _schedule_end(self, pod: Object) -> None:
        uid, seconds = pod["metadata"]["uid"], ends_after(pod)
        if seconds is not None and uid not in self._scheduled:
            self._scheduled.add(uid)
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), uid))

    def _end(self, pod: Object) -> None:
        self._scheduled.discard(pod["metadata"]["uid"])
        self._patch(pod, render_ended(pod))

    def _remove(self, pod: Object) -> None:
        """As a kubelet does: the pod is seen to end first, then its object goes."""
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            self._patch(pod, render_stopped(pod))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._api.call("DELETE", path_of_pod(pod), options)

    def _reserve(self, pod: Object) -> None:
        node = pod["spec"].get("nodeName", "")
        taken = {
            one["metadata"].get("annotations", {}).get(INDEX)
            for one in self._pods.values()
            if one["metadata"]["namespace"] == RESERVATIONS and one["spec"].get("nodeName") == node
        }
        free = next(str(index) for index in itertools.count() if str(index) not in taken)
        patch = {"metadata": {"annotations": {INDEX: free}}}
        self._pods[pod["metadata"]["uid"]] = self._api.call("PATCH", path_of_pod(pod), patch, MERGE)

    def _patch(self, pod: Object, status: Object) -> None:
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        changed = self._api.call("PATCH", f"{path_of_pod(pod)}/status", patch, STRATEGIC)
        self._pods[pod["metadata"]["uid"]] = changed


def is_ours(node: Object) -> bool:
    return MARK in node["metadata"].get("labels", {})


def is_node_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def path_of_pod(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def follow(kubeconfig: Path, what: str, path: str, events: "queue.Queue[Event]") -> None:
    """Watches for ever; after a cut everything that is there comes again, and what went meanwhile as DELETED."""
    known: dict[str, Object] = {}
    api = Api(kubeconfig, timeout=600)
    while True:
        try:
            known = follow_once(api, what, path, events, known)
        except (OSError, http.client.HTTPException, ApiError, ValueError) as error:
            sys.stderr.write(f"watch of {what} was cut: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            api.close()
            time.sleep(0.5)


def follow_once(
    api: Api, what: str, path: str, events: "queue.Queue[Event]", known: dict[str, Object]
) -> dict[str, Object]:
    found = api.call("GET", path)
    listed = {one["metadata"]["uid"]: one for one in found["items"]}
    for uid in known.keys() - listed.keys():
        events.put((what, "DELETED", known[uid]))
    known.clear()
    known.update(listed)
    for one in listed.values():
        events.put((what, "ADDED", one))
    for kind, one in api.watch_from(path, found["metadata"]["resourceVersion"]):
        if kind == "DELETED":
            known.pop(one["metadata"]["uid"], None)
        else:
            known[one["metadata"]["uid"]] = one
        events.put((what, kind, one))
    return known


def main() -> int:
    kubeconfig = Path(sys.argv[1]) / "kubeconfig"
    events: queue.Queue[Event] = queue.Queue()
    watched = {
        "nodes": "/api/v1/nodes",
        "pods": "/api/v1/pods?fieldSelector=spec.nodeName!=",
        "claims": "/api/v1/persistentvolumeclaims",
        "volumes": "/api/v1/persistentvolumes",
    }
    for what, path in watched.items():
        threading.Thread(target=follow, args=(kubeconfig, what, path, events), daemon=True).start()
    api = Api(kubeconfig)
    stand_in = StandIn(api, Volumes(api, kubeconfig.parent / "volumes"))
    while True:
        try:
            stand_in.act_on_time()
            stand_in.note(events.get(timeout=stand_in.wait_seconds()))
        except queue.Empty:
            continue
        except (OSError, http.client.HTTPException) as error:
            # Started again by the supervisor, it sees everything anew.
            sys.stderr.write(f"the API server is gone: {error}\n")
            return 1


if __name__ == "__main__":
    sys.exit(main())
