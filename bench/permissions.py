"""How long permission checks and lists take in a large organization: 500 users, 200 projects, 5,000 access rules.

Run with `python -m bench.permissions`; prints microseconds, of lists on SQLite and on PostgreSQL. The goals: a check
takes at most 50 µs, and the list of a user with 3 of 200 projects takes no longer than an administrator's.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import psycopg

from fairlead.control import access
from fairlead.control.context import Context, ControlSettings
from fairlead.control.directory import Directory
from fairlead.control.lists import ListRequest
from fairlead.control.people.callers import build_caller
from fairlead.control.role_table import ROLES
from fairlead.control.workloads.read import find_workloads
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.records.organization import Cluster, Project
from fairlead.model.records.people import Caller, User
from fairlead.store.base import Change, Put, Store
from fairlead.store.collections import ACCESS_RULES, CLUSTERS, PROJECTS, USERS, WORKLOADS
from fairlead.store.postgres import SCHEMA, open_postgres
from fairlead.store.sqlite import open_sqlite
from tests import builders
from tests.postgres import PostgresServer

USERS_COUNT, PROJECTS_COUNT, RULES_COUNT, WORKLOADS_COUNT = 500, 200, 5000, 20_000
ROUNDS = 400


async def _fill(context: Context) -> None:
    cluster = Cluster(id="c", version=1, name="c", tenant_id=1, created_at=0)
    projects = [
        Project(
            id=str(n),
            version=1,
            name=f"p{n}",
            cluster_id="c",
            created_at=0,
            created_by="",
            updated_at=0,
            updated_by="",
            department_id=str(n % 10 + 1),
            department_name="",
        )
        for n in range(1, PROJECTS_COUNT + 1)
    ]
    users = [
        User(id=f"u{n}", version=1, type="user", name=f"u{n}@example.com", secret_hash="", created_at=0)
        for n in range(USERS_COUNT)
    ]
    # The first user has a role in three projects, each other one about ten.
    rules = [
        AccessRule(
            id=str(n + 1),
            version=1,
            subject_id="u0" if n < 3 else f"u{n % (USERS_COUNT - 1) + 1}",
            subject_type="user",
            role_id=ROLES[n % 14 + 1].id,
            scope=Scope("project", str(n * 7 % PROJECTS_COUNT + 1)),
        )
        for n in range(RULES_COUNT)
    ]
    writes = [Put(CLUSTERS, cluster), *(Put(PROJECTS, one) for one in projects), *(Put(USERS, one) for one in users)]
    await context.store.commit(Change(writes=(*writes, *(Put(ACCESS_RULES, one) for one in rules))))
    for start in range(0, WORKLOADS_COUNT, 2000):
        made = [
            builders.workload(f"w{n}", id=f"w{n}", project_id=str(n % PROJECTS_COUNT + 1), created_at=n)
            for n in range(start, start + 2000)
        ]
        await context.store.commit(Change(writes=tuple(Put(WORKLOADS, one) for one in made)))
    await context.directory.load()


def _median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


async def _minima_of(calls: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, float]:
    """Measured in turn. Of many rounds the cheapest counts: others had to share the machine's caches."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            await call()
            times[name].append(time.perf_counter() - begin)
    return {name: min(each) * 1e6 for name, each in times.items()}


def _context(store: Store) -> Context:
    return Context(
        store=store,
        clock=lambda: 0,
        directory=Directory(store),
        sessions=None,
        settings=ControlSettings(),
        new_id=str,
        new_suffix=str,
    )


def _analyze(url: str) -> None:
    """Gather statistics, as PostgreSQL does by itself within a minute."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ANALYZE {SCHEMA}.workloads")


async def measure(name: str, store: Store, on_filled: Callable[[], object] = lambda: None) -> None:
    context = _context(store)
    await _fill(context)
    on_filled()
    directory = context.directory
    user = directory.users["u0"]

    def build() -> Caller:
        return build_caller(user, directory.rules_of(user), directory.roles, directory.projects)

    caller, administrator = build(), Caller("admin", "1", is_administrator=True)
    project = next(key.removeprefix("project/") for key in caller.rights)
    print(f"a caller from its rules     {_median(build):8.1f} µs (once after a change of people, rules or projects)")
    print(f"one check                   {_median(lambda: access.check(caller, 'workloads:read', project)):8.1f} µs")
    orders = {"oldest": ListRequest(), "newest": ListRequest(sort_by="createdAt", descending=True)}
    for order, request in orders.items():
        spent = await _minima_of(
            {who: partial(find_workloads, context, one, request) for who, one in (("a", administrator), ("u", caller))}
        )
        print(
            f"{name}, {order} 50 first: administrator {spent['a']:.0f} µs, with 3 of 200 projects {spent['u']:.0f} µs, "
            f"{spent['u'] / spent['a']:.2f} times"
        )
    await store.close()


async def main(folder: Path) -> None:
    await measure("SQLite", await open_sqlite(folder / "fairlead.db"))
    server = PostgresServer()
    try:
        server.start()
        url = server.new_database()
        await measure("PostgreSQL", await open_postgres(url), lambda: _analyze(url))
    finally:
        server.remove()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
