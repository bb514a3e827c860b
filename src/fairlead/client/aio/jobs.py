"""Workloads as jobs: objects that know their state, wait, show their output, and display as tables."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import aclosing
from typing import Self

from fairlead.client.aio.kind_client import AsyncKindClient
from fairlead.client.aio.output import AsyncPodOutput, sorted_pods
from fairlead.client.aio.workloads import AsyncWorkloads
from fairlead.client.errors import JobFailed
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.notebook import open_display, render_card, render_table, render_text
from fairlead.client.phases import ENDED, exit_code_of


class AsyncJob:
    """One workload. `facts` is what the server said of it last; `refresh` asks again."""

    def __init__(self, client: AsyncWorkloads, facts: Json) -> None:
        self._client = client
        #: The workload as JSON.
        self.facts = facts

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def type(self) -> str:
        return str(self.facts["type"])

    @property
    def project(self) -> str:
        return str(self.facts["projectName"])

    @property
    def phase(self) -> str:
        return str(self.facts["phase"])

    @property
    def message(self) -> str:
        """Why it is in its phase; empty if there is nothing to say."""
        return str(self.facts.get("phaseMessage") or "")

    @property
    def has_ended(self) -> bool:
        """Whether it has completed, failed or been deleted, as far as known."""
        return self.phase in ENDED or bool(self.facts.get("deletedAt"))

    async def refresh(self) -> Self:
        self.facts = await self._client.workload(self.id)
        return self

    async def wait(self, phases: Collection[str] = ENDED, *, timeout: float | None = None, check: bool = False) -> Self:
        """Wait until it is in one of the phases or has ended; raises TimedOut.

        With `check`, a job that ends without completing raises JobFailed.
        """
        self.facts = await self._client.wait(self.id, phases, timeout)
        if check and self.has_ended and self.phase != "Completed":
            raise JobFailed(f"{self.name} is {self.phase}. {self.message}".rstrip(), await self.exit_code())
        return self

    async def logs(
        self, *, pod: str | None = None, tail: int | None = None, since: str | None = None, previous: bool = False
    ) -> str:
        """The output so far of one pod: by default the master or leader, or the newest. `since` is a time, ISO 8601."""
        query = {"pod": pod, "tail": tail, "sinceTime": since, "previous": previous or None}
        async with aclosing(self._client.logs(self.id, **query)) as pieces:
            return b"".join([piece async for piece in pieces]).decode("utf-8", "replace")

    async def follow(self, *, timeout: float | None = None) -> AsyncGenerator[str]:
        """Yield the lines that its pods write, until it has ended. The timeout is for the first pod."""
        output = AsyncPodOutput(self.id)
        rest = b""
        async with aclosing(output.pieces(self._client, timeout)) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")
        self.facts = output.workload

    async def pods(self) -> list[Json]:
        """Its pods, oldest first."""
        return await sorted_pods(self._client, self.id)

    async def exit_code(self) -> int | None:
        """The exit code of the pod that ended last; 128 plus the number for a signal. None if none has ended."""
        return exit_code_of(await self.pods())

    async def events(self) -> list[Json]:
        return await self._client.events(self.id)

    async def why(self) -> Json:
        """Why it is in its phase: what it waits for, who uses that, where its values come from."""
        return await self._client.explanation(self.id)

    async def suspend(self) -> Self:
        await self._verbs().suspend(self.id)
        return await self.refresh()

    async def resume(self) -> Self:
        await self._verbs().resume(self.id)
        return await self.refresh()

    async def delete(self) -> None:
        await self._verbs().delete(self.id)
        self.facts = await self._client.workload(self.id)

    def _verbs(self) -> AsyncKindClient:
        entry = next(entry for entry in load_kinds().values() if entry.title == self.type)
        return self._client.kind(entry.key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.phase}>"

    def _repr_html_(self) -> str:
        return render_card(self.facts)


class AsyncJobs(list[AsyncJob]):
    """Several jobs; a table in a notebook."""

    def __init__(self, client: AsyncWorkloads, jobs: Iterable[AsyncJob] = ()) -> None:
        super().__init__(jobs)
        self._client = client

    async def refresh(self) -> Self:
        for job in self:
            await job.refresh()
        return self

    async def wait(self, *, timeout: float | None = None) -> Self:
        """Wait until all of them have ended; raises TimedOut."""
        return await self.show(timeout=timeout, display=lambda _: lambda: None)

    async def show(
        self,
        *,
        timeout: float | None = None,
        display: Callable[["AsyncJobs"], Callable[[], None]] = open_display,
    ) -> Self:
        """Show them as a table that follows their changes, until all of them have ended; raises TimedOut.

        In a notebook the table changes in place. `display` shows them, and returns what shows them again.
        """
        redraw = display(self)
        by_id = {job.id: job for job in self}
        if all(job.has_ended for job in self):
            return self
        async with aclosing(self._client.changes(*by_id, timeout=timeout)) as changes:
            async for workload in changes:
                before = by_id[workload["id"]].facts
                by_id[workload["id"]].facts = workload
                if workload != before:
                    redraw()
                if all(job.has_ended for job in self):
                    break
        return self

    def __repr__(self) -> str:
        return render_text([job.facts for job in self])

    def _repr_html_(self) -> str:
        return render_table([job.facts for job in self])
