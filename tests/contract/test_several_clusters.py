"""Several clusters under one server: each loop has only its own workloads and nodes, and one away harms no other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead.control.context import Context, EngineView
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.explain.cluster_snapshot import load_board
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.loop.engine_host import EngineHost
from fairlead.control.loop.fleet import ClusterSessions, Fleet
from fairlead.control.organization.clusters import ClusterInput, create_cluster, delete_cluster, update_cluster
from fairlead.control.organization.inputs import OwnerInput
from fairlead.control.organization.owners import create_project
from fairlead.control.workloads.sessions import pod_logs
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import ApplyOrganization, ApplyWorkload, LogRequest, WorkloadOrder
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict, Forbidden, Invalid, Refused, Unavailable
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.records.organization import Cluster, Node, Project
from fairlead.model.records.people import User
from fairlead.model.records.workload import Workload
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put
from fairlead.store.collections import ACCESS_RULES, PODS, USERS
from tests import builders
from tests.contract.quiet_engines import QuietCluster
from tests.contract.test_control_over_time import NOW, in_store

KUBECONFIG = """
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


class OneNode(QuietCluster):
    """Has a node of the same name in every cluster, and remembers what it was told."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.applied: list[str] = []
        self.projects: list[str] = []
        self.has_started = asyncio.Event()

    async def start(self, notify: Callable[[], None]) -> None:
        self.has_started.set()

    async def capacity(self) -> Sequence[Node]:
        return (Node(id=f"node-of-{self.id}", name="worker-1", cpu_milli=1000, memory_bytes=1 << 30),)

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        self.applied += [order.workload.name for order in orders if isinstance(order, ApplyWorkload)]
        for order in orders:
            if isinstance(order, ApplyOrganization):
                self.projects = sorted(project.name for project in order.organization.projects)

    def logs(self, request: LogRequest) -> Any:
        async def output() -> Any:
            yield self.id.encode()

        return output()


class Server:
    """The loop of the first cluster, and the fleet of the others."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.engines: dict[str, OneNode] = {}
        self.broken: set[str] = set()
        self.fleet = Fleet(context, self._make)
        self.first = self._host(context.add_view(context.directory.cluster.id), "default")
        self.sessions = context.sessions = ClusterSessions(context, self.first.sessions, self.fleet)

    def _make(self, context: Context, cluster: Cluster) -> tuple[Any, EngineView]:
        if cluster.name in self.broken:
            raise Refused("its certificate is wrong")
        return self._host(context, cluster.name), EngineView(is_cluster=True)

    def _host(self, context: Context, name: str) -> EngineHost[WorkloadOrder]:
        engine = self.engines[name] = OneNode(name)

        async def compact(at: int) -> None: ...

        sessions: Any = engine
        return EngineHost(
            context=context,
            driver=ClusterDriver(context, engine),
            sessions=sessions,
            lease=None,
            compact=compact,
            measure=lambda: 0.0,
        )

    async def start(self) -> None:
        await self.first.start(self.fleet.start, lambda: None)

    async def stop(self) -> None:
        await self.fleet.stop()
        await self.first.stop()

    async def until(self, condition: Callable[[], object]) -> None:
        """The loops tell the store, and the store tells us."""
        changed = asyncio.Event()
        unsubscribe = self.context.store.subscribe(lambda revision, subjects: changed.set())
        try:
            async with asyncio.timeout(120):
                while not condition():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), 0.05)
                    changed.clear()
        finally:
            unsubscribe()

    async def add(self, name: str) -> Cluster:
        cluster = await create_cluster(self.context, CALLER, ClusterInput(name=name, kubeconfig=KUBECONFIG))
        await self.until(lambda: name in self.broken or (name in self.engines and self.context.engines.get(cluster.id)))
        return cluster

    async def project(self, name: str, cluster_id: str) -> Project:
        given = OwnerInput(name=name, cluster_id=cluster_id)
        return await create_project(self.context, CALLER, given)

    async def submit(self, name: str, project: Project) -> Workload:
        kind = KINDS["training"]
        return await submit(
            self.context,
            CALLER,
            Submission(
                kind=kind.key,
                name=name,
                project_id=project.id,
                cluster_id=project.cluster_id,
                spec=kind.spec(image="x"),
            ),
        )


def run(tmp_path: Path, act: Callable[[Server], Awaitable[None]]) -> None:
    async def test(context: Context) -> None:
        admin = User(id="u", version=1, type="user", name="root", secret_hash="", created_at=NOW)
        rule = AccessRule(
            id="1",
            version=1,
            subject_id="u",
            subject_type="user",
            role_id=1,
            scope=Scope("tenant", "1"),
            created_at=NOW,
        )
        await context.store.commit(Change(writes=(Put(USERS, admin), Put(ACCESS_RULES, rule))))
        await context.directory.load()
        server = Server(context)
        await server.start()
        try:
            await act(server)
        finally:
            await server.stop()

    in_store(tmp_path, test)


def test_each_cluster_gets_its_own_workloads_and_nothing_else(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        context = server.context
        lab = await server.add("lab")
        there = await server.project("vision", lab.id)
        here = context.directory.projects["1"]
        workloads = [await server.submit("here", here), await server.submit("there", there)]
        await server.until(lambda: "here" in server.engines["default"].applied)
        await server.until(lambda: "there" in server.engines["lab"].applied)
        assert set(server.engines["default"].applied) == {"here"}
        assert set(server.engines["lab"].applied) == {"there"}
        assert (server.engines["default"].projects, server.engines["lab"].projects) == (["default"], ["vision"])
        await server.until(lambda: len(context.directory.nodes) == 2)
        assert {node.id: node.cluster_id for node in context.directory.nodes.values()} == {
            "node-of-default": "",
            "node-of-lab": lab.id,
        }
        assert [one.cluster_id for one in workloads] == [context.directory.cluster.id, lab.id]
        boards = [await load_board(context.for_cluster(id)) for id in (context.directory.cluster.id, lab.id)]
        assert [[entry.workload.name for entry in board.entries.values()] for board in boards] == [["here"], ["there"]]

    run(tmp_path, act)


def test_sessions_lead_to_the_cluster_of_the_pod(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        lab = await server.add("lab")
        outputs = []
        for number, project in enumerate([server.context.directory.projects["1"], await server.project("v", lab.id)]):
            workload = await server.submit(f"w{number}", project)
            pod = builders.pod(id=f"pod-{number}", workload_id=workload.id)
            await server.context.store.commit(Change(writes=(Put(PODS, pod),)))
            stream = await pod_logs(server.context, CALLER, workload.id, "", LogRequest(pod_id=""))
            outputs.append(b"".join([piece async for piece in stream]))
        assert outputs == [b"default", b"lab"]

    run(tmp_path, act)


def test_a_cluster_that_is_away_harms_no_other(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        context = server.context
        server.broken.add("lab")
        lab = await server.add("lab")
        await server.until(lambda: context.engine_of(lab.id).unreachable_reason())
        assert context.engine_of(lab.id).unreachable_reason() == "its certificate is wrong"
        there = await server.project("vision", lab.id)
        waits = await server.submit("there", there)
        pod = builders.pod(id="pod", workload_id=waits.id)
        await context.store.commit(Change(writes=(Put(PODS, pod),)))
        with pytest.raises(Unavailable, match="its certificate is wrong"):
            await server.sessions.dial("pod", 1)
        await server.submit("here", context.directory.projects["1"])
        await server.until(lambda: "here" in server.engines["default"].applied)
        server.broken.clear()
        # Another kubeconfig is tried at once, not only when the pause is over.
        await update_cluster(context, CALLER, lab.id, ClusterInput(name="lab", kubeconfig=KUBECONFIG))
        await server.until(lambda: "lab" in server.engines and "there" in server.engines["lab"].applied)
        assert context.engine_of(lab.id).unreachable_reason() == ""

    run(tmp_path, act)


def test_names_mean_one_thing_in_all_clusters(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        lab = await server.add("lab")
        with pytest.raises(Conflict, match="already exists in another cluster"):
            await server.project("default", lab.id)
        with pytest.raises(Invalid):
            await create_cluster(server.context, CALLER, ClusterInput(name="lab"))
        there = await server.project("vision", lab.id)
        with pytest.raises(Invalid, match="belongs to cluster"):
            await server.submit("w", Project(**{**_members(there), "cluster_id": server.context.directory.cluster.id}))

    run(tmp_path, act)


def _members(project: Project) -> dict[str, Any]:
    return {name: getattr(project, name) for name in project.__struct_fields__}


def test_a_cluster_is_removed_when_it_is_empty(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        context = server.context
        with pytest.raises(Forbidden, match="came with the installation"):
            await delete_cluster(context, CALLER, context.directory.cluster.id)
        lab, hall = await server.add("lab"), await server.add("hall")
        await server.project("vision", lab.id)
        with pytest.raises(Forbidden, match="vision"):
            await delete_cluster(context, CALLER, lab.id)
        await server.until(lambda: any(node.cluster_id == hall.id for node in context.directory.nodes.values()))
        await delete_cluster(context, CALLER, hall.id)
        await server.until(lambda: hall.id not in server.fleet.hosts)
        await context.directory.load()
        assert {one.cluster_id for one in context.directory.departments.values()} == {
            context.directory.cluster.id,
            lab.id,
        }
        assert not any(node.cluster_id == hall.id for node in context.directory.nodes.values())

    run(tmp_path, act)


def test_the_kubeconfig_is_stored_encrypted(tmp_path: Path) -> None:
    async def act(server: Server) -> None:
        lab = await server.add("lab")
        assert lab.connection is not None
        assert "secret-token" in server.context.vault.open(lab.connection.sealed, lab.id)["kubeconfig"]

    run(tmp_path, act)
    files = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert files
    assert not any(b"secret-token" in content for content in files)
