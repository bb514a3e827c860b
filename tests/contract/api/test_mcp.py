"""Tools for coding agents, called with the official client of the Model Context Protocol: on pipes and over HTTP."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from fairlead.control.loop.usage_retention import begin_ledger
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.busy_node import WAITS, fill_node
from tests.contract.api.test_gpu_shares import share

READING = {"explain", "plan", "what_if", "estimate", "queue_overview", "audit_quota", "diagnose_eviction", "usage"}
SMALL = {"image": "x", "compute": {"cpuCoreRequest": 1}}


@pytest.fixture
def busy(make_api: Any) -> ApiServer:
    api: ApiServer = make_api()
    fill_node(api)
    api.do(begin_ledger(api.context))
    return api


def environment(api: ApiServer, home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "FAIRLEAD_URL": f"http://127.0.0.1:{api.port}",
        "FAIRLEAD_TOKEN": api.token,
        "PATH": "/usr/bin:/bin",
    }


def over_pipes(api: ApiServer, home: Path, *arguments: str) -> Client:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "fairlead", "mcp", *arguments], env=environment(api, home)
    )
    return Client(command)


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    answer = result.structured_content
    assert isinstance(answer, dict)
    return answer


def test_reading_tools_answer_as_the_server_does(busy: ApiServer, tmp_path: Path) -> None:
    busy.context.fair_shares = (share("project-1", 3.0, 3.0, 4.0),)

    async def talk() -> None:
        async with over_pipes(busy, tmp_path) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == READING
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            explained = await ask(client, "explain", workload="waits")
            assert explained["why"]["changes"] == busy.get(f"/api/v1/workloads/{WAITS}/why")["changes"]
            assert (await ask(client, "estimate", workload="waits"))["p50"] == START / 1000 + 600
            plan = await ask(client, "plan", kind="training", name="new", spec=SMALL)
            assert (plan["status"], plan["workload"]) == ("waits", "new")
            (row,) = (await ask(client, "queue_overview"))["waiting"]
            assert (row["name"], bool(row["bestChange"])) == ("waits", True)
            changed = await ask(client, "what_if", changes=[{"change": "addNodes", "like": "alpha", "count": 1}])
            assert [ref["workload"] for ref in changed["starts"]["workloads"]] == ["waits"]
            quotas = await ask(client, "audit_quota", project="default")
            (project,) = quotas["projects"]
            (own,) = project["gpuShares"]
            assert (project["name"], own["name"], own["fairShare"]) == ("default", "default", 3)
            assert (await ask(client, "diagnose_eviction", workload="fills"))["lastEviction"] is None
            busy.clock.now += 60_000
            used = await ask(client, "usage", by="project,day", since="2023-11-14T22:00:00Z")
            assert used == busy.get("/api/v1/usage?by=project,day&since=2023-11-14T22:00:00Z")
            unknown = await client.call_tool("explain", {"workload": "nobody"})
            assert unknown.is_error
            assert "There is no workload 'nobody'" in str(unknown.content)
            odd = await client.call_tool("plan", {"kind": "holiday", "name": "new", "spec": SMALL})
            assert odd.is_error
            assert "There is no kind 'holiday'." in str(odd.content)

    asyncio.run(talk())


def test_what_was_allowed_can_be_changed(busy: ApiServer, tmp_path: Path) -> None:
    async def talk() -> None:
        async with over_pipes(busy, tmp_path, "--allow", "submit,suspend") as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING | {"submit", "suspend"}
            created = await ask(client, "submit", kind="training", name="new", spec=SMALL)
            assert busy.get(f"/api/v1/workloads/{created['workloadId']}")["name"] == "new"
            await ask(client, "suspend", workload="new")
            assert busy.get(f"/api/v1/workloads/trainings/{created['workloadId']}")["desiredPhase"] == "Stopped"

    asyncio.run(talk())


@pytest.fixture
def over_http(busy: ApiServer, tmp_path: Path) -> Iterator[str]:
    """The address of a tool server whose token is `secret`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead", "mcp", "--http", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(busy, tmp_path), "FAIRLEAD_MCP_TOKEN": "secret"},
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("Listening on "))
    yield line.removeprefix("Listening on ").strip()
    process.terminate()
    process.communicate(timeout=180)


def test_http_needs_the_token(over_http: str) -> None:
    async def talk() -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": "Bearer secret"}) as http,
            Client(streamable_http_client(over_http, http_client=http)) as client,
        ):
            assert (await ask(client, "explain", workload="waits"))["phase"] == "Pending"
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer wrong"}) as http:
            assert (await http.post(over_http, json={})).status_code == 401

    asyncio.run(talk())


def test_only_known_tools_can_be_allowed(busy: ApiServer, tmp_path: Path) -> None:
    called = subprocess.run(
        [sys.executable, "-m", "fairlead", "mcp", "--allow", "delete"],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment(busy, tmp_path),
    )
    assert called.returncode == 2
    assert "--allow 'delete' is not a tool that makes changes; choose from submit, suspend." in called.stderr
