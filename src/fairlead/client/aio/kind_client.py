"""The verbs of workloads of one kind."""

import json
from collections.abc import Mapping
from typing import Any

from fairlead.client.access.urls import quote, render_query
from fairlead.client.aio.requests import AsyncRequests
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry


class AsyncKindClient:
    """Workloads of one kind: the verbs of its REST path."""

    def __init__(self, client: AsyncRequests, entry: KindEntry) -> None:
        self._client = client
        self._path = f"/api/v1/workloads/{entry.rest}"
        self.entry = entry

    async def submit(
        self,
        body: Mapping[str, Any] | bytes,
        *,
        origin: str = "",
        must_fit: bool = False,
        caller_environment: str = "",
        plan_id: str = "",
        suspended: bool = False,
    ) -> Json:
        """Submit a creation request, given as a dict or as JSON text; returns the new workload.

        `origin` is the kind of object that it was written as, if it is not this one. With `must_fit`, the server
        refuses what could not start even if all nodes were empty; with `plan_id`, if that plan no longer holds.
        `caller_environment` is the id of variables that were stored for it. With `suspended`, it starts when it is
        resumed.
        """
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        query = render_query(
            {
                "origin": origin or None,
                "mustFit": must_fit or None,
                "callerEnvironment": caller_environment or None,
                "planId": plan_id or None,
                "suspended": suspended or None,
            }
        )
        workload: Json = await self._client.send("POST", self._path + query, payload)
        return workload

    async def dry_run(self, body: Mapping[str, object]) -> Json:
        """What a creation request would create, with its template applied; nothing is created."""
        workload: Json = await self._client.send("POST", f"{self._path}?dryRun=true", json.dumps(body).encode())
        return workload

    async def plan(self, body: Mapping[str, object], times: bool = True, suspended: bool = False) -> Json:
        """What would happen if this were submitted now: where it starts or what it waits for, and whom it evicts.

        With `times`, also when it starts and whom it delays by how much; that takes longer.
        """
        query = render_query({"dryRun": "plan", "times": times, "suspended": suspended or None})
        plan: Json = await self._client.send("POST", self._path + query, json.dumps(body).encode())
        return plan

    async def get(self, workload_id: str) -> Json:
        workload: Json = await self._client.request("GET", f"{self._path}/{quote(workload_id)}")
        return workload

    async def delete(self, workload_id: str) -> Json:
        answer: Json = await self._client.request("DELETE", f"{self._path}/{quote(workload_id)}")
        return answer

    async def update(self, workload_id: str, spec: Json) -> Json:
        """Change members of the spec of a running workload, if its kind allows it."""
        workload: Json = await self._client.request("PATCH", f"{self._path}/{quote(workload_id)}", {"spec": spec})
        return workload

    async def suspend(self, workload_id: str) -> Json:
        answer: Json = await self._client.request("POST", f"{self._path}/{quote(workload_id)}/suspend")
        return answer

    async def resume(self, workload_id: str) -> Json:
        answer: Json = await self._client.request("POST", f"{self._path}/{quote(workload_id)}/resume")
        return answer
