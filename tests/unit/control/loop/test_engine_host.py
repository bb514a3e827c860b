"""Parts of a server that nobody waits for: they go on after a failure, and it is told."""

import asyncio

import pytest

from fairlead.control.loop.engine_host import keep_going
from fairlead.model.errors import Unavailable


def test_what_fails_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    outcomes: list[Exception | None] = [Unavailable("the database is away"), KeyError("a mistake"), None]

    async def work() -> None:
        if (error := outcomes.pop(0)) is not None:
            raise error

    asyncio.run(keep_going("housekeeping", work, pause=0.0))
    assert outcomes == []
    assert [record.message for record in caplog.records] == ["housekeeping failed, starting it again"] * 2
