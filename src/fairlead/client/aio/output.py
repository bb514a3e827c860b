"""The output of a workload's pods, one after another, until the workload has ended."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from fairlead.client.aio.workloads import AsyncWorkloads
from fairlead.client.errors import ServerError, Unreachable
from fairlead.client.json_object import Json
from fairlead.client.phases import ENDED, LEFT, WITH_PODS

#: How the message of a workload begins whose programs have ended and whose changes are being uploaded.
_UPLOADING = "Uploading "


class AsyncPodOutput:
    """The output of one workload. It remembers how much was passed on, so that it can go on after a lost connection."""

    def __init__(self, workload_id: str, on_pending: Callable[[Json], None] = lambda _: None) -> None:
        self._id = workload_id
        #: Called with the workload while it has no pods, and while what its pods changed is uploaded.
        self._on_pending = on_pending
        self._passed: dict[str, int] = {}
        self._ended: set[str] = set()
        #: The workload at its end.
        self.workload: Json = {}

    async def pieces(self, client: AsyncWorkloads, timeout: float | None = None) -> AsyncGenerator[bytes]:
        """Yield what pods write until the workload has ended, is suspended or is deleted.

        The timeout is for the first pod.
        """
        while True:
            self.workload = await self._until_pods(client, timeout)
            before = sum(self._passed.values())
            pods = await sorted_pods(client, self._id)
            for pod in pods:
                if pod["id"] not in self._ended:
                    async with aclosing(self._pod_pieces(client, pod)) as pieces:
                        async for piece in pieces:
                            yield piece
            if any(pod["id"] not in self._ended for pod in pods) and sum(self._passed.values()) > before:
                continue
            if self.workload["phase"] in (*ENDED, *LEFT):
                return
            await self._until_change(client)

    async def _until_pods(self, client: AsyncWorkloads, timeout: float | None) -> Json:
        workload = await client.workload(self._id)
        if workload["phase"] in WITH_PODS:
            return workload
        async with aclosing(client.changes(self._id, timeout=timeout)) as changes:
            async for workload in changes:
                if workload["phase"] in WITH_PODS:
                    return workload
                self._on_pending(workload)
        raise Unreachable("The server closed the stream of changes.")

    async def _pod_pieces(self, client: AsyncWorkloads, pod: Json) -> AsyncGenerator[bytes]:
        """Continue the output of a pod. It is complete only if the pod had ended before."""
        skip = self._passed.get(pod["id"], 0)
        try:
            async with aclosing(client.logs(self._id, pod=pod["name"], follow=True)) as pieces:
                async for piece in pieces:
                    fresh = piece[skip:]
                    skip -= len(piece) - len(fresh)
                    if fresh:
                        self._passed[pod["id"]] = self._passed.get(pod["id"], 0) + len(fresh)
                        yield fresh
        except ServerError as error:
            if error.status != 404:
                raise
        if pod.get("completedAt"):
            self._ended.add(pod["id"])

    async def _until_change(self, client: AsyncWorkloads) -> None:
        async with aclosing(client.changes(self._id)) as changes:
            async for workload in changes:
                if str(workload.get("phaseMessage") or "").startswith(_UPLOADING):
                    self._on_pending(workload)
                elif (workload["phase"], workload["updatedAt"]) != (self.workload["phase"], self.workload["updatedAt"]):
                    return


async def sorted_pods(client: AsyncWorkloads, workload_id: str) -> list[Json]:
    """The pods of a workload, oldest first."""
    return sorted(await client.pods(workload_id), key=lambda pod: (pod["createdAt"], pod["name"]))
