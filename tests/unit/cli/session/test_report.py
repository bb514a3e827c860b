"""Errors in words, and the exit codes that go with them."""

import io

import pytest

from fairlead.cli import exit_codes
from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed
from fairlead.cli.session.report import exit_code, render_error, report
from fairlead.client import ClientError, Issue, NameNotFound, NotLoggedIn, ServerError, TimedOut, Unreachable


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(
            ServerError(400, "Not by policy", "a and b", (Issue("spec.a", "is x", "min"), Issue("", "is y"))),
            "Not by policy:\n  spec.a: is x [min]\n  is y",
            id="a policy",
        ),
        pytest.param(
            ServerError(400, "Not so", "a and b", (Issue("spec.a", "is x"), Issue("", "is y"))),
            "The request has 2 errors:\n  spec.a: is x\n  is y",
            id="every issue",
        ),
        pytest.param(
            ServerError(400, "spec.a: is x", "spec.a: is x; not y", (Issue("spec.a", "is x; not y"),)),
            "spec.a: is x; not y",
            id="one issue",
        ),
        pytest.param(ServerError(404, "Resource id not found.", "There is no x"), "There is no x", id="details"),
        pytest.param(ServerError(403, "Not allowed."), "Not allowed.", id="message"),
        pytest.param(Unreachable("Nobody there."), "Nobody there.", id="our own"),
    ],
)
def test_render_error(error: ClientError, want: str) -> None:
    assert render_error(error) == want


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (ServerError(400, ""), exit_codes.FAILED),
        (ServerError(401, ""), exit_codes.NOT_ALLOWED),
        (ServerError(403, ""), exit_codes.NOT_ALLOWED),
        (ServerError(404, ""), exit_codes.NOT_FOUND),
        (ServerError(429, ""), exit_codes.UNREACHABLE),
        (ServerError(500, ""), exit_codes.FAILED),
        (ServerError(503, ""), exit_codes.UNREACHABLE),
        (Unreachable(), exit_codes.UNREACHABLE),
        (NotLoggedIn(), exit_codes.NOT_ALLOWED),
        (NameNotFound(), exit_codes.NOT_FOUND),
        (TimedOut(), exit_codes.TIMED_OUT),
        (ClientError(), exit_codes.FAILED),
    ],
    ids=repr,
)
def test_exit_code(error: ClientError, want: int) -> None:
    assert exit_code(error) == want


def test_exit_codes_are_distinguished() -> None:
    codes = [code for code, _ in exit_codes.EXIT_CODES]
    assert len(set(codes)) == len(codes)


def test_an_input_that_ends_at_a_question_is_no_fault() -> None:
    """Ctrl-D where a password is asked for."""
    err = io.StringIO()
    invocation = Invocation(Parsed({}, [], None), CommandEnvironment({}, "/", io.StringIO(), io.StringIO(), err))
    assert report(EOFError(), invocation) == exit_codes.USAGE
    assert err.getvalue().endswith("fairlead: No answer was given; nothing was done.\n")
