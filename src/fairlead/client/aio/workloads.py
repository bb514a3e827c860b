"""Reads workloads of every kind and the organization, and follows their changes."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing

from fairlead.client.access.urls import QueryValue, quote, render_query
from fairlead.client.aio.kind_client import AsyncKindClient
from fairlead.client.aio.requests import AsyncRequests
from fairlead.client.aio.streams import AsyncWatch
from fairlead.client.deadline import Deadline
from fairlead.client.errors import NameNotFound, ServerError, TimedOut, Unreachable
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.phases import ENDED
from fairlead.client.suggest import suggest

#: The maximum size of a page.
_PAGE = 500


class AsyncWorkloads(AsyncRequests):
    """Workloads and the organization of one server, as its JSON."""

    # --- Workloads of every kind

    def kind(self, key: str) -> "AsyncKindClient":
        """The verbs for workloads of one kind."""
        return AsyncKindClient(self, load_kinds()[key])

    def __getattr__(self, name: str) -> "AsyncKindClient":
        """Kinds by their REST name, so that scripts may write `client.trainings.submit(…)`."""
        for entry in load_kinds().values():
            if entry.rest.replace("-", "_") == name:
                return AsyncKindClient(self, entry)
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    async def workloads(self, **query: QueryValue) -> Json:
        """One page of workloads. The query is that of REST: filterBy, sortBy, sortOrder, offset, limit, search …"""
        page: Json = await self.request("GET", "/api/v1/workloads", **query)
        return page

    async def all_workloads(self, **query: QueryValue) -> AsyncGenerator[Json]:
        """All workloads that match the query, page by page."""
        async for row in self.pages("/api/v1/workloads", "workloads", query):
            yield row

    async def count_workloads(self, **query: QueryValue) -> int:
        return int((await self.request("GET", "/api/v1/workloads/count", **query))["count"])

    async def workload(self, workload_id: str) -> Json:
        workload: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}")
        return workload

    async def find_workload(self, name: str, *, project: str | None = None, title: str | None = None) -> Json:
        """The workload with that name or id in the project, and with the type if one is given."""
        owner = await self.project(project)
        filters = [f"name=={name}", f"projectId=={owner['id']}"]
        page = await self.workloads(filterBy=filters, sortBy="createdAt", sortOrder="desc")
        # Workloads that are being deleted have given up their name.
        candidates: list[Json] = [one for one in page["workloads"] if not one.get("deletedAt")]
        matching = [one for one in candidates if title in (None, one["type"])]
        if matching:
            return matching[0]
        if len(name) == 36 and name.count("-") == 4:
            return await self.workload(name)
        others = [one["type"] for one in candidates]
        hint = f" The workload with that name has type {others[0]}." if others else await self._near(name, owner, title)
        raise NameNotFound(f"There is no {(title or 'workload').lower()} '{name}' in project {owner['name']}.{hint}")

    async def _near(self, name: str, project: Json, title: str | None) -> str:
        filters = [f"projectId=={project['id']}"] + ([f"type=={title}"] if title else [])
        page = await self.workloads(filterBy=filters, limit=_PAGE)
        return suggest(name, [row["name"] for row in page["workloads"] if not row.get("deletedAt")])

    async def pods(self, workload_id: str) -> list[Json]:
        return [pod async for pod in self.pages(f"/api/v1/workloads/{quote(workload_id)}/pods", "pods", {})]

    async def events(self, workload_id: str, **query: QueryValue) -> list[Json]:
        answer = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/events", **query)
        events: list[Json] = answer["events"]
        return events

    async def history(self, workload_id: str) -> list[Json]:
        path = f"/api/v1/workloads/{quote(workload_id)}/history"
        return [record async for record in self.pages(path, "records", {})]

    async def explanation(self, workload_id: str, **query: QueryValue) -> Json:
        """Why the workload is in its phase: what it waits for, who uses that, where its values come from."""
        explanation: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/explanation", **query)
        return explanation

    async def why(self, workload_id: str, **query: QueryValue) -> Json:
        """Why the workload is pending, and the smallest changes that would start it; `at`: in the past."""
        answer: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/why", **query)
        return answer

    async def timeline(self, workload_id: str) -> Json:
        """Since when the workload waited for what, when it ran, and why it was evicted."""
        answer: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/timeline")
        return answer

    async def precedence(self, workload_id: str, other_id: str) -> Json:
        """Why the other workload got its place while this one waited."""
        path = f"/api/v1/workloads/{quote(workload_id)}/precedence"
        answer: Json = await self.request("GET", path, other=other_id)
        return answer

    async def caller_environment(self, workload_id: str) -> Json | None:
        """The names of the variables that the workload took over from its caller; None if it took none."""
        try:
            environment: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/caller-environment")
        except ServerError as error:
            if error.status != 404:
                raise
            return None
        return environment

    async def estimate(self, workload_id: str) -> Json:
        """When the workload starts: the median and the 90 % value, and what they rest on."""
        answer: Json = await self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/estimate")
        return answer

    async def suggestions(self, workload_ids: Sequence[str]) -> dict[str, str]:
        """The best change for waiting workloads by id, in a few words; what is not found quickly is left out."""
        answer: Json = await self.request("GET", "/api/v1/scheduling/suggestions", workloadIds=",".join(workload_ids))
        return {each["workloadId"]: each["message"] for each in answer["suggestions"]}

    async def open_questions(self) -> int:
        """How many of your questions to the scheduler are not answered yet; one is answered at a time."""
        answer: Json = await self.request("GET", "/api/v1/scheduling/questions")
        return int(answer["count"])

    async def what_if(self, changes: Sequence[Json], *, times: bool = False) -> Json:
        """What these changes would do to everybody; nothing is changed. `times`: also when waiting workloads start."""
        path = "/api/v1/scheduling/what-if"
        answer: Json = await self.request("POST", path, {"changes": list(changes)}, times=times)
        return answer

    async def gpu_shares(self) -> list[Json]:
        """Quota, fair share and use of GPUs by project and department, and what they borrow and lend."""
        answer: Json = await self.request("GET", "/api/v1/scheduling/shares")
        return list(answer["shares"])

    async def submission_history(self, **query: QueryValue) -> Json:
        """What was submitted from `since` to `until` and how long it ran, to be replayed by `what-if history`."""
        answer: Json = await self.request("GET", "/api/v1/scheduling/history", **query)
        return answer

    async def written(self, workload_id: str, dialect: str) -> str:
        """The workload as `yaml`, as a `command` line or as the `rest` request that would create it again."""
        _, body = await self.fetch("GET", f"/api/v1/workloads/{quote(workload_id)}/as/{quote(dialect)}")
        return body.decode()

    async def snapshot(self, **query: QueryValue) -> bytes:
        """The snapshot that the scheduler would use now, as JSON text; `at`: that of a recorded cycle."""
        return (await self.fetch("GET", "/api/v1/scheduling/snapshot" + render_query(query)))[1]

    async def replay(self, **query: QueryValue) -> Json:
        """Recorded scheduling cycles from `since` to `until`, decided again: how many are the same, what differs."""
        answer: Json = await self.request("GET", "/api/v1/scheduling/replay", **query)
        return answer

    async def logs(self, workload_id: str, **query: QueryValue) -> AsyncGenerator[bytes]:
        """Stream the output of a pod; the query says which pod, how much of it and whether to follow."""
        stream = await self.stream(f"/api/v1/workloads/{quote(workload_id)}/logs", **query)
        async with aclosing(stream.pieces()) as pieces:
            async for piece in pieces:
                yield piece

    async def watch(self, **query: QueryValue) -> AsyncWatch:
        """Changes of workloads as they happen; with `revision`, first those after it."""
        return AsyncWatch(await self.stream("/api/v1/workloads/watch", **query))

    async def changes(self, *workload_ids: str, timeout: float | None = None) -> AsyncGenerator[Json]:
        """Yield each workload now and whenever it changes; raises TimedOut after the timeout.

        The watch starts before the first read, so that no change is missed in between. A workload that is
        purged meanwhile is yielded once more, with `deletedAt`.
        """
        deadline = Deadline(timeout)
        watch = await self.watch()
        known: dict[str, Json] = {}
        try:
            for workload_id in workload_ids:
                known[workload_id] = await self.workload(workload_id)
                yield known[workload_id]
            async for change in watch.changes(deadline.left):
                if change is not None and change["workloadId"] in known:
                    before = known[change["workloadId"]]
                    now = change["workload"] or {**before, "phase": "Deleting", "deletedAt": before["updatedAt"]}
                    known[change["workloadId"]] = now
                    yield now
                if deadline.is_over():
                    raise TimedOut("The timeout has passed.")
        except TimedOut as error:
            raise TimedOut(_timeout_message(known)) from error
        finally:
            await watch.close()
        raise Unreachable("The server closed the stream of changes, probably because it stops.")

    async def wait(self, workload_id: str, phases: Collection[str] = ENDED, timeout: float | None = None) -> Json:
        """Wait until the workload is in one of the phases or has ended; returns the workload."""
        async with aclosing(self.changes(workload_id, timeout=timeout)) as changes:
            async for workload in changes:
                if workload["phase"] in phases or workload["phase"] in ENDED or workload.get("deletedAt"):
                    return workload
        raise Unreachable("The server closed the stream of changes.")

    # --- Organization and nodes

    async def project(self, name: str | None = None) -> Json:
        """The project with that name or id; without one, the default project, or the only one that exists."""
        wanted = name or self.default_project
        if wanted not in self._projects:
            self._projects[wanted] = await (self._named_project(wanted) if wanted else self._only_project())
        return self._projects[wanted]

    async def _named_project(self, name: str) -> Json:
        named = await self.projects(filterBy=[f"name=={name}"])
        if named:
            return named[0]
        projects = await self.projects()
        for project in projects:
            if str(project["id"]) == name:
                return project
        names = [project["name"] for project in projects]
        raise NameNotFound(f"There is no project '{name}'.{suggest(name, names)}")

    async def _only_project(self) -> Json:
        projects = await self.projects(limit=2)
        if len(projects) == 1:
            return projects[0]
        for project in projects:
            if project["name"] == "default":
                return project
        raise NameNotFound("No project given. Name one with -p, or set a default with `fairlead project set NAME`.")

    async def projects(self, **query: QueryValue) -> list[Json]:
        return [project async for project in self.pages("/api/v1/org-unit/projects", "projects", query)]

    async def departments(self, **query: QueryValue) -> list[Json]:
        return [unit async for unit in self.pages("/api/v1/org-unit/departments", "departments", query)]

    async def clusters(self) -> list[Json]:
        clusters: list[Json] = await self.request("GET", "/api/v1/clusters")
        return clusters

    async def nodes(self, **query: QueryValue) -> list[Json]:
        nodes: list[Json] = (await self.request("GET", "/api/v1/nodes", **query))["nodes"]
        return nodes

    async def node_pools(self, **query: QueryValue) -> list[Json]:
        pools: list[Json] = (await self.request("GET", "/api/v1/node-pools", **query))["nodepools"]
        return pools

    async def workload_types(self) -> list[Json]:
        types: list[Json] = (await self.request("GET", "/api/v1/workload-types"))["types"]
        return types

    async def pages(self, path: str, member: str, query: Mapping[str, QueryValue]) -> AsyncGenerator[Json]:
        """All items of a list that has pages; `member` is the member of a page that has them."""
        offset: int | None = 0
        while offset is not None:
            page = await self.request("GET", path, **{"limit": _PAGE, **query, "offset": offset})
            for row in page[member]:
                yield row
            offset = page.get("next")


def _timeout_message(known: Mapping[str, Json]) -> str:
    waiting = [workload for workload in known.values() if workload["phase"] not in ENDED]
    if len(waiting) == 1:
        message = waiting[0].get("phaseMessage") or ""
        return f"Timed out: {waiting[0]['name']} is still {waiting[0]['phase']}. {message}".rstrip()
    names = ", ".join(workload["name"] for workload in waiting[:5])
    return f"Timed out: {len(waiting)} workloads have not ended: {names}{' …' if len(waiting) > 5 else ''}"
