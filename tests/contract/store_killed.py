"""A process that is made to be killed while it writes: it says on standard output which changes were acknowledged."""

import asyncio
import itertools
import sys

from fairlead.store.base import Change, Store
from fairlead.store.postgres import open_postgres
from fairlead.store.sqlite import open_sqlite
from tests.contract.databases import event, named, put

_WRITERS = 16


async def write(store: Store, writer: int) -> None:
    for number in itertools.count():
        name = f"w{writer}-{number}"
        change = put(named(name), named(f"{name}-twin"), events=(event(name),))
        revision = await store.commit(Change(writes=change.writes, events=change.events))
        sys.stdout.write(f"{name} {revision}\n")
        sys.stdout.flush()


async def main(kind: str, address: str) -> None:
    store = await (open_sqlite if kind == "sqlite" else open_postgres)(address)
    await asyncio.gather(*(write(store, writer) for writer in range(_WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
