"""Fills a database with finished workloads, as if they had run: copies of one that really did, with pods and events."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.server import Server, serving, wait_until
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Put, Query, Store, Where
from fairlead.store.collections import EVENTS, PODS, WORKLOADS
from fairlead.store.sqlite import open_sqlite

PER_TRANSACTION = 500


def clock() -> int:
    return time.time_ns() // 1_000_000


def run_one(server: Server) -> str:
    """The id of a training that ran to its end."""
    body = server.submission("first", {"command": "true"})
    id = str(server.call("POST", "/api/v1/workloads/trainings", body)["workloadId"])
    wait_until(lambda: server.call("GET", f"/api/v1/workloads/trainings/{id}")["actualPhase"] == "Completed")
    return id


async def copy_workload(store: Store, id: str, count: int) -> None:
    workload: Workload | None = await store.get(WORKLOADS, id)
    if workload is None:
        raise SystemExit(f"the store has no workload {id}")
    pods = await store.find(Query(collection=PODS, where=(Where("workload_id", Comparison.EQUAL, id),)))
    events = await store.find(Query(collection=EVENTS, where=(Where("subject_id", Comparison.EQUAL, id),)))
    replace = msgspec.structs.replace
    for first in range(0, count, PER_TRANSACTION):
        writes, told = [], []
        for number in range(first, min(first + PER_TRANSACTION, count)):
            new = str(uuid.uuid4())
            writes.append(Put(WORKLOADS, replace(workload, id=new, version=1, name=f"finished-{number}")))
            writes += [
                Put(PODS, replace(pod, id=str(uuid.uuid4()), version=1, workload_id=new, name=f"finished-{number}-0"))
                for pod in pods
            ]
            told += [replace(event, revision=0, subject_id=new) for event in events]
        await store.commit(Change(writes=tuple(writes), events=tuple(told)))


async def _fill(database: Path, id: str, count: int) -> None:
    store = await open_sqlite(database)
    try:
        await copy_workload(store, id, count)
    finally:
        await store.close()


def make_history(data: Path, count: int, node: Sequence[str]) -> None:
    """A data folder with so many finished workloads and nothing running; `node` is that of the servers to come."""
    with serving(data, ["--personal", *node]) as server:
        id = run_one(server)
    asyncio.run(_fill(data / "fairlead.db", id, count - 1))
