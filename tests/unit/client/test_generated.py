"""The blocking client is what the client of asyncio gives, and both have the same methods."""

import inspect

from fairlead.client import Client, Job, Jobs, KindClient
from fairlead.client.aio import AsyncClient, AsyncJob, AsyncJobs
from fairlead.client.aio.kind_client import AsyncKindClient
from scripts.generate_sync_client import render_modules


def test_the_blocking_modules_are_current() -> None:
    stale = [path.name for path, text in render_modules().items() if path.read_text() != text]
    assert not stale, "run `make format`"


def test_both_clients_have_the_same_methods() -> None:
    for one, other in ((Client, AsyncClient), (Job, AsyncJob), (Jobs, AsyncJobs), (KindClient, AsyncKindClient)):
        methods = {name for name, _ in inspect.getmembers(one, inspect.isfunction) if not name.startswith("__")}
        others = {name for name, _ in inspect.getmembers(other, inspect.isfunction) if not name.startswith("__")}
        assert methods == others
