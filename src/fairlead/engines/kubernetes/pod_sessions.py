"""What people open into the pods of a cluster, and the output of pods that are gone.

The engine has one; `sessions.py` has the single sessions. Output comes from the pod's node or, if that no longer has
it, from where it is stored: the files of `KeptLogs`, or Loki.
"""

from collections.abc import AsyncIterator, Callable, Collection
from functools import partial

from fairlead.engines.base import ExecRequest, LogRequest, LogStore, Sessions
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.kept_logs import KeptLogs, Spawn
from fairlead.engines.kubernetes.loki import Loki
from fairlead.engines.kubernetes.sessions import CommandSession, dial, listening_port, stream_logs
from fairlead.model.clock import Millis
from fairlead.model.errors import NotFound, Refused

_ReadLogs = Callable[[LogRequest], AsyncIterator[bytes]]


class PodSessions(Sessions, LogStore):
    def __init__(
        self,
        api: Api,
        find_pod: Callable[[str], objects.Pod | None],
        kept_logs: KeptLogs | None = None,
        loki: Loki | None = None,
    ) -> None:
        """`find_pod`: a pod by its id, as it is now; None if it was deleted."""
        self._api = api
        self._find_pod = find_pod
        self._kept_logs = kept_logs
        self._loki = loki

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        stored = self._find_stored_logs(request)
        if stored is not None and self._find_pod(request.pod_id) is None:
            return stored(request)
        return self._logs(self._pod(request.pod_id), request, stored)

    def _find_stored_logs(self, request: LogRequest) -> _ReadLogs | None:
        """Where the output of a pod is read if its node does not have it."""
        if self._kept_logs is not None and self._kept_logs.has(request.pod_id):
            return self._kept_logs.read
        return self._loki.read if self._loki is not None else None

    async def _logs(self, pod: objects.Pod, request: LogRequest, stored: _ReadLogs | None) -> AsyncIterator[bytes]:
        """The node's output, or what is stored of it: the node, or its copy, may be gone before the pod is."""
        try:
            async for piece in stream_logs(self._api, pod, request):
                yield piece
                stored = None
        except (NotFound, Refused):
            if stored is None:
                raise
            async for piece in stored(request):
                yield piece

    def keep_logs(self, pod: objects.Pod, spawn: Spawn) -> None:
        """Called whenever a pod has changed: keep its output if it is about to be lost."""
        if self._kept_logs is not None:
            self._kept_logs.notice(pod, partial(stream_logs, self._api), spawn)

    async def drop_logs(self, pod_ids: Collection[str]) -> None:
        if self._kept_logs is not None:
            self._kept_logs.drop(pod_ids)

    async def expire_logs(self, before: Millis) -> int:
        return self._kept_logs.expire(before) if self._kept_logs is not None else 0

    async def exec(self, request: ExecRequest) -> CommandSession:
        return await CommandSession.run(self._api, self._pod(request.pod_id), request)

    async def attach(self, pod_id: str, *, from_start: bool = False) -> CommandSession:
        # Kubernetes has no attachment that begins with earlier output.
        return await CommandSession.attach(self._api, self._pod(pod_id), lambda: self._find_pod(pod_id))

    async def dial(self, pod_id: str, port: int) -> int:
        pod = self._pod(pod_id)
        return await dial(self._api, pod, listening_port(pod, port))

    def _pod(self, pod_id: str) -> objects.Pod:
        pod = self._find_pod(pod_id)
        if pod is None:
            raise NotFound("The pod was deleted from the cluster, and its output with it")
        return pod
