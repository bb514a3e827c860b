"""The client of a Fairlead server: log in, submit, read, follow, wait.

Answers are the server's JSON as plain dicts and lists, and workloads are also jobs; failures are the exceptions of
`fairlead.client.errors`. It imports nothing from the server.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.client.access.urls import QueryValue
from fairlead.client.aio.jobs import AsyncJob, AsyncJobs
from fairlead.client.aio.workloads import AsyncWorkloads
from fairlead.client.commands import host_spec, name_for, set_command, set_gpus, variables_of_caller
from fairlead.client.json_object import Json
from fairlead.client.kinds import Submittable, load_kinds


class AsyncClient(AsyncWorkloads):
    """A client of one server; without a server, of the one that the command line would talk to.

    `credentials` are used if there is no token, or if the server no longer accepts it. `project` is the default
    project, by name or id. Several tasks or threads can use one client.
    """

    async def run(
        self,
        command: Sequence[str] | str,
        *,
        name: str | None = None,
        project: str | None = None,
        gpu: float | None = None,
        env: Mapping[str, str] | None = None,
        spec: Submittable | Mapping[str, Any] | None = None,
    ) -> AsyncJob:
        """Run a command as `fairlead run` does: once, on this machine, in this folder; returns its job at once.

        On a server of one's own it gets the environment of this process, which the server stores as it stores
        secrets. A command that could not start even if all nodes were empty is refused. `spec` has further members of a
        training, such as an image to run it in.
        """
        command_words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        if not command_words:
            raise ValueError("the command is empty; give a program and its arguments.")
        more = dict(spec) if isinstance(spec, Mapping) else spec.as_request()["spec"] if spec else {}
        members: Json = {**host_spec(os.getcwd()), **more}
        if "image" in more and "workingDir" not in more:
            del members["workingDir"]
        set_command(members, command_words)
        if gpu is not None:
            set_gpus(members, gpu)
        if env:
            variables = [{"name": key, "value": value} for key, value in env.items()]
            members["environmentVariables"] = [*members.get("environmentVariables", ()), *variables]
        kind = next(iter(load_kinds().values()))
        request = {"name": name or name_for(command_words), "useGivenNameAsPrefix": not name, "spec": members}
        stored = "" if "image" in more else await self._store_environment()
        return await self._submit(kind.key, request, project, must_fit=True, environment=stored)

    async def _store_environment(self) -> str:
        """Store the variables of this process for the next submission; returns their id, empty on a shared server."""
        if not self.is_personal:
            return ""
        body = {"variables": variables_of_caller(os.environ), "input": ""}
        return str((await self.request("POST", "/api/v1/caller-environments", body))["id"])

    async def submit(
        self,
        spec: Submittable,
        *,
        name: str | None = None,
        project: str | None = None,
        allow_pending: bool = False,
    ) -> AsyncJob:
        """Submit a workload of the spec's kind; returns its job at once.

        One that could not start even if all nodes were empty is refused, unless `allow_pending` is given.
        """
        request = {"name": name or spec.kind_key, "useGivenNameAsPrefix": not name, **spec.as_request()}
        return await self._submit(spec.kind_key, request, project, must_fit=not allow_pending)

    async def _submit(
        self, key: str, request: Json, project: str | None, *, must_fit: bool, environment: str = ""
    ) -> AsyncJob:
        owner = await self.project(project)
        place = {"projectId": str(owner["id"]), "clusterId": owner["clusterId"]}
        created = await self.kind(key).submit({**request, **place}, must_fit=must_fit, caller_environment=environment)
        return AsyncJob(self, await self.workload(created["workloadId"]))

    async def job(self, name: str, *, project: str | None = None) -> AsyncJob:
        """The workload of that name or id as a job."""
        return AsyncJob(self, await self.find_workload(name, project=project))

    async def jobs(self, *, project: str | None = None, limit: int = 50, **query: QueryValue) -> AsyncJobs:
        """The newest workloads of a project as jobs. The query is that of `workloads`."""
        owner = await self.project(project)
        filters = [f"projectId=={owner['id']}", *_as_texts(query.pop("filterBy", ()))]
        order: dict[str, QueryValue] = {"sortBy": "createdAt", "sortOrder": "desc", **query}
        page = await self.workloads(filterBy=filters, limit=limit, **order)
        return AsyncJobs(self, [AsyncJob(self, row) for row in page["workloads"]])


def _as_texts(value: QueryValue) -> list[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, str | int) else list(value)
