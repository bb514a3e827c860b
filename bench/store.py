"""How fast changes become durable: the store's group commit beside a commit for every change, same run, same disk.

`python -m bench.store [--quick]`. It writes below a temporary folder only; PostgreSQL comes from the wheel of the
tests, with its sync on. Ids that grow with time keep the pages that one commit touches few; random ones are harder.
"""

import argparse
import asyncio
import contextlib
import itertools
import secrets
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import uvloop

from fairlead.model.records.event import AuditLine, Event
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put, Store
from fairlead.store.changes import Prepared, prepare
from fairlead.store.collections import AUDIT, EVENTS, WORKLOADS
from fairlead.store.postgres import open_postgres
from fairlead.store.sql import SQLITE, statements
from fairlead.store.sqlite import connect, open_sqlite
from tests.postgres import PostgresServer

_SPEC = msgspec.Raw(
    b'{"command":"python3 train.py","args":"--epochs 3","image":"pytorch/pytorch:2.5","environmentVariables":'
    b'[{"name":"SEED","value":"7"}],"compute":{"cpuCoreRequest":0.5,"cpuMemoryRequest":"512M","gpuDevicesRequest":1}}'
)
_numbers = itertools.count(1)

MakeChange = Callable[[], Change]
Round = tuple[float, list[float]]


def clock() -> int:
    return time.time_ns() // 1_000_000


def random_id() -> str:
    return str(uuid.uuid4())


def growing_id() -> str:
    """A version 7 UUID: the time in milliseconds before the random part."""
    return str(uuid.UUID(int=clock() << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)))


def make_record(new_id: Callable[[], str]) -> Workload:
    name = f"job-{next(_numbers)}"
    return Workload(
        id=new_id(),
        version=1,
        kind="training",
        name=name,
        requested_name=name,
        project_id="1",
        project_name="default",
        department_id="1",
        department_name="default",
        cluster_id="71f69d83-ba66-4822-adf5-55ce55efd210",
        created_by="bench@example.com",
        created_at=clock(),
        spec=_SPEC,
    )


def alone(new_id: Callable[[], str]) -> Change:
    return Change(writes=(Put(WORKLOADS, make_record(new_id)),))


def submission(new_id: Callable[[], str]) -> Change:
    """As a request writes it: the record, its event, its audit line."""
    record = make_record(new_id)
    event = Event(at=clock(), subject="workloads", subject_id=record.id, project_id="1", reason="Submitted")
    line = AuditLine(at=clock(), caller="bench", operation="submit", subject="workloads", subject_id=record.id)
    return Change(writes=(Put(WORKLOADS, record),), events=(event,), audit=(line,))


async def load_store(store: Store, make: MakeChange, waiters: int, seconds: float) -> Round:
    """The time it took and all latencies; every waiter commits one change after the other."""
    began = time.perf_counter()
    latencies: list[float] = []

    async def work() -> None:
        while (start := time.perf_counter()) < began + seconds:
            await store.commit(make())
            latencies.append(time.perf_counter() - start)

    await asyncio.gather(*(work() for _ in range(waiters)))
    return time.perf_counter() - began, latencies


def load_peer(path: Path, make: MakeChange, seconds: float) -> Round:
    """The same changes and the same sync, a transaction each and no thread in between: a plain store at its best."""
    connection = connect(path)
    numbers = itertools.count(1)
    began = time.perf_counter()
    latencies: list[float] = []
    try:
        while (start := time.perf_counter()) < began + seconds:
            connection.execute("BEGIN IMMEDIATE")
            for text, values in peer_statements(prepare(make(), SQLITE.mark), numbers):
                connection.execute(text, values)
            connection.execute("COMMIT")
            latencies.append(time.perf_counter() - start)
    finally:
        connection.close()
    return time.perf_counter() - began, latencies


def peer_statements(prepared: Prepared, numbers: Iterator[int]) -> Iterator[tuple[str, tuple[object, ...]]]:
    for write in prepared.writes:
        yield write.text, write.values
    for collection, rows in ((EVENTS, prepared.events), (AUDIT, prepared.audit)):
        for row in rows:
            number = next(numbers)
            yield statements(collection.name, SQLITE.mark).insert, (*row, number)
            yield "UPDATE counters SET value = ? WHERE name = 'revision'", (number,)


@contextlib.asynccontextmanager
async def closing(store: Store) -> AsyncIterator[Store]:
    try:
        yield store
    finally:
        await store.close()


def report(name: str, rounds: list[Round]) -> None:
    rates = [len(latencies) / seconds for seconds, latencies in rounds]
    every = sorted(itertools.chain.from_iterable(latencies for _, latencies in rounds))
    middle, late = statistics.median(every) * 1000, every[int(len(every) * 0.99)] * 1000
    spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
    print(f"| {name} | {statistics.median(rates):,.0f}/s | {spread} | {middle:.2f} ms | {late:.2f} ms |", flush=True)


async def measure(options: argparse.Namespace, folder: Path, server: PostgresServer) -> None:
    cases: list[tuple[str, MakeChange]] = [
        ("one record, growing ids", lambda: alone(growing_id)),
        ("one record, random ids", lambda: alone(random_id)),
        ("record + event + audit, growing ids", lambda: submission(growing_id)),
    ]
    print("| what | commits | spread | p50 | p99 |\n|---|---|---|---|---|")
    for what, make in cases:
        ours, peer, shared = [], [], []
        for _ in range(options.rounds):
            async with closing(await open_sqlite(folder / f"{random_id()}.db")) as store:
                ours.append(await load_store(store, make, options.waiters, options.seconds))
            path = folder / f"{random_id()}.db"
            await (await open_sqlite(path)).close()
            peer.append(await asyncio.to_thread(load_peer, path, make, options.seconds))
            async with closing(await open_postgres(server.new_database())) as store:
                shared.append(await load_store(store, make, options.waiters, options.seconds))
        report(f"SQLite, {what}, {options.waiters} waiters", ours)
        report(f"peer: SQLite, {what}, a commit each, one after the other", peer)
        report(f"PostgreSQL, {what}, {options.waiters} waiters", shared)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waiters", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="one short round")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 1.0, 1
    server = PostgresServer(sync=True)
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            uvloop.run(measure(options, Path(folder), server))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
