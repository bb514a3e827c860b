"""Requests while one server stops and another takes over the machine: reads wait, all others are told to try again."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.api.http.forward import PASSED_ON, run_or_forward
from fairlead.api.http.operation import Call, Operation
from fairlead.model.errors import Elsewhere, Unavailable


def make_call(method: str, turns_without_a_holder: int, *, stopping: bool = False, headers: Any = ()) -> Call:
    """Of an operation that runs here after so many tries."""
    tries = iter(range(turns_without_a_holder))

    async def run(call: Call) -> Response:
        if next(tries, None) is not None:
            raise Elsewhere("")
        return Response("here")

    operation = Operation(method=method, path="/logs", id="logs", tag="", summary="", run=run)
    scope = {"type": "http", "method": method, "path": "/logs", "raw_path": b"/logs", "headers": list(headers)}
    return Call(cast(Any, SimpleNamespace(stopping=stopping)), operation, Request(scope), "1")


def test_a_read_waits_for_the_next_server() -> None:
    response = asyncio.run(run_or_forward(make_call("GET", 2), 30))
    assert bytes(response.body) == b"here"


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(make_call("POST", 2), id="may-have-a-body"),
        pytest.param(make_call("GET", 2, stopping=True), id="this-server-stops"),
        pytest.param(make_call("GET", 2, headers=[(PASSED_ON.encode(), b"yes")]), id="the-first-server-waits"),
    ],
)
def test_others_are_asked_to_try_again(call: Call) -> None:
    with pytest.raises(Unavailable, match="try again"):
        asyncio.run(run_or_forward(call, 30))
