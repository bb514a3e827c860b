"""What controllers, scheduler and kubelets would do with the objects in memory: pods appear, run, end and go.

A pod's life has the steps that a watch of a real cluster shows: created, grouped, bound, running, ended.
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from deploy.cluster.pod_life import ends_after, render_final, render_running, timestamp
from tests.memory_api.objects import Body, Table

_GROUP = "pod-group-name"
_JOB_UID = "batch.kubernetes.io/controller-uid"
_SETS = "leaderworkerset.sigs.k8s.io"
#: Seconds between two steps of a pod's life.
STEP = 0.02


class Controllers:
    def __init__(self, tables: dict[str, Table], nodes: int) -> None:
        self._tables = tables
        self._nodes = max(1, nodes)
        self._placed = 0
        #: By the uid of an owner: the kinds and keys of what it owns.
        self._owned: dict[str, dict[tuple[str, tuple[str, str]], None]] = {}
        self._later: Callable[..., Any] = asyncio.get_running_loop().call_later

    def on_change(self, table: Table, type: str, body: Body) -> None:
        kind, metadata = table.kind.kind, body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        for owner in metadata.get("ownerReferences", ()) if type != "MODIFIED" else ():
            owned = self._owned.setdefault(owner["uid"], {})
            owned.pop((kind, key), None)
            if type == "ADDED":
                owned[kind, key] = None
        match kind, type:
            case ("Job" | "Deployment", "ADDED"):
                self._later(STEP, self._make_pods, kind, key)
            case ("LeaderWorkerSet", "ADDED"):
                self._later(STEP, self._make_groups, key)
            case (_, "DELETED") if metadata["uid"] in self._owned:
                self._later(STEP, self._collect, metadata["uid"])
            case ("Pod", "ADDED"):
                self._later(STEP, self._group, key)
            case ("Pod", "MODIFIED") if "deletionTimestamp" in metadata:
                self._later(STEP, self._end_deleted, key)

    # Controllers

    def _make_pods(self, kind: str, key: tuple[str, str]) -> None:
        owner = self._tables[kind].bodies.get(key)
        if owner is None:
            return
        spec = owner["spec"]
        wanted = spec.get("parallelism", 1) if kind == "Job" else spec.get("replicas", 1)
        for _ in range(0 if spec.get("suspend") else wanted):
            self._make_pod(kind, key)
        self._tables[kind].change(key, {"status": {"active": wanted, "startTime": timestamp()}})

    def _make_groups(self, key: tuple[str, str]) -> None:
        """Each has a leader and its workers."""
        spec = self._tables["LeaderWorkerSet"].bodies[key]["spec"]
        templates = spec["leaderWorkerTemplate"]
        for group in range(spec["replicas"]):
            for index in range(templates["size"]):
                labels = {
                    f"{_SETS}/name": key[1],
                    f"{_SETS}/group-index": str(group),
                    f"{_SETS}/worker-index": str(index),
                }
                template = templates["workerTemplate" if index else "leaderTemplate"]
                self._make_pod("LeaderWorkerSet", key, template, labels)

    def _make_pod(
        self, kind: str, key: tuple[str, str], template: Body | None = None, labels: dict[str, str] | None = None
    ) -> None:
        owner = self._tables[kind].bodies.get(key)
        if owner is not None:
            uid = owner["metadata"]["uid"]
            template = template or owner["spec"]["template"]
            reference = {"apiVersion": owner["apiVersion"], "kind": kind, "name": key[1], "uid": uid}
            metadata = {
                **template["metadata"],
                "name": f"{key[1]}-{uuid.uuid4().hex[:5]}",
                "labels": {**template["metadata"].get("labels", {}), _JOB_UID: uid, **(labels or {})},
                "ownerReferences": [{**reference, "controller": True}],
            }
            pod = {"metadata": metadata, "spec": dict(template["spec"]), "status": {"phase": "Pending"}}
            self._tables["Pod"].create(key[0], pod)

    def _collect(self, owner: str) -> None:
        """Garbage collection of what the owner had."""
        for kind, key in list(self._owned.pop(owner, ())):
            if key in self._tables[kind].bodies:
                self._tables[kind].delete(key, {})

    # Scheduler and kubelets

    def _group(self, key: tuple[str, str]) -> None:
        pod = self._tables["Pod"].bodies.get(key)
        if pod is None or pod["spec"].get("nodeName"):
            return
        owner = next(iter(pod["metadata"].get("ownerReferences", ())), None)
        if owner is not None:
            group = f"pg-{owner['name']}-{owner['uid']}"
            if (key[0], group) not in self._tables["PodGroup"].bodies:
                labels = pod["metadata"].get("labels", {})
                metadata = {"name": group, "labels": labels, "ownerReferences": [owner]}
                self._tables["PodGroup"].create(key[0], {"metadata": metadata, "spec": {"minMember": 1}})
            self._tables["Pod"].change(key, {"metadata": {"annotations": {_GROUP: group}}})
        self._later(STEP, self._bind, key)

    def _bind(self, key: tuple[str, str]) -> None:
        if key in self._tables["Pod"].bodies:
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp()}
            node = self._next_node()
            self._tables["Pod"].change(key, {"spec": {"nodeName": node}, "status": {"conditions": [scheduled]}})
            self._later(STEP, self._run, key)

    def _next_node(self) -> str:
        """The next one in turn that is not cordoned."""
        for _ in range(self._nodes):
            self._placed += 1
            name = f"node-{self._placed % self._nodes}"
            if not self._tables["Node"].bodies.get(("", name), {}).get("spec", {}).get("unschedulable"):
                break
        return name

    def _run(self, key: tuple[str, str]) -> None:
        pod = self._tables["Pod"].bodies.get(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        pod = self._tables["Pod"].change(key, {"status": render_running(pod)})
        self._report(pod, ready=1)
        seconds = ends_after(pod)
        if seconds is not None:
            self._later(seconds, self._end, key)

    def _end(self, key: tuple[str, str]) -> None:
        pod = self._tables["Pod"].bodies.get(key)
        if pod is not None and pod["status"]["phase"] == "Running":
            pod = self._tables["Pod"].change(key, {"status": render_final(pod, 0)})
            self._report(pod, succeeded=1)

    def evict(self, key: tuple[str, str]) -> Body:
        """As the eviction API does: the pod is marked and deleted, and its controller makes another."""
        disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        pod = self._tables["Pod"].get(key)
        conditions = [*pod["status"].get("conditions", ()), disrupted]
        self._tables["Pod"].change(key, {"status": {"conditions": conditions}})
        gone = self._tables["Pod"].delete(key, {})
        for owner in pod["metadata"].get("ownerReferences", ()):
            self._later(2 * STEP, self._make_pod, owner["kind"], (key[0], owner["name"]))
        return gone

    def _end_deleted(self, key: tuple[str, str]) -> None:
        if key in self._tables["Pod"].bodies:
            self._tables["Pod"].remove(key)

    def _report(self, pod: Body, ready: int = 0, succeeded: int = 0) -> None:
        """Into the status of its controller."""
        for owner in pod["metadata"].get("ownerReferences", ()):
            table, key = self._tables[owner["kind"]], (pod["metadata"]["namespace"], owner["name"])
            if key not in table.bodies:
                continue
            before = table.bodies[key].get("status", {})
            done = before.get("succeeded", 0) + succeeded
            count = before.get("readyReplicas", 0) + ready - succeeded
            status: Body = {
                "ready": count,
                "readyReplicas": count,
                "active": max(0, before.get("active", 0) - succeeded),
            }
            status |= {"succeeded": done} if done else {}
            if succeeded and done >= table.bodies[key]["spec"].get("completions", 1):
                complete = {"type": "Complete", "status": "True", "lastTransitionTime": timestamp()}
                status |= {"conditions": [complete], "completionTime": timestamp()}
            table.change(key, {"status": status})
