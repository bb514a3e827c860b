"""Error messages and exit codes of failed commands. Imported only when a command has failed."""

import traceback

from fairlead.cli import exit_codes
from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.cli.session.settings import next_command
from fairlead.cli.terminal.console import Console
from fairlead.client import ClientError, NameNotFound, NotLoggedIn, ServerError, TimedOut, Unreachable

_STATUS_CODES = {
    401: exit_codes.NOT_ALLOWED,
    403: exit_codes.NOT_ALLOWED,
    404: exit_codes.NOT_FOUND,
    429: exit_codes.UNREACHABLE,
    502: exit_codes.UNREACHABLE,
    503: exit_codes.UNREACHABLE,
    504: exit_codes.UNREACHABLE,
}


def report(error: Exception, invocation: Invocation) -> int:
    """Print an error and return its exit code; unexpected errors are raised again."""
    console = Console(invocation)
    if invocation.get("debug"):
        console.complain("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, UsageError):
        console.complain(f"fairlead: {error}\nSee `fairlead {' '.join(invocation.words)} --help`.")
        return exit_codes.USAGE
    if isinstance(error, EOFError):
        console.complain("\nfairlead: No answer was given; nothing was done.")
        return exit_codes.USAGE
    if not isinstance(error, ClientError):
        raise error
    console.complain(f"fairlead: {render_error(error)}")
    if isinstance(error, NotLoggedIn):
        console.complain(error.hint or f"Log in with `{next_command(invocation, 'login')}`.")
    return exit_code(error)


def render_error(error: ClientError) -> str:
    """An error as text: its only issue in one line, several in one line each, or the server's words without issues."""
    if not isinstance(error, ServerError):
        return str(error)
    if not error.issues:
        return error.details or error.message
    lines = [str(issue) for issue in error.issues]
    if any(issue.rule for issue in error.issues):
        return "\n  ".join([f"{error.message}:", *lines])
    return lines[0] if len(lines) == 1 else "\n  ".join([f"The request has {len(lines)} errors:", *lines])


def exit_code(error: ClientError) -> int:
    if isinstance(error, Unreachable):
        return exit_codes.UNREACHABLE
    if isinstance(error, NotLoggedIn):
        return exit_codes.NOT_ALLOWED
    if isinstance(error, NameNotFound):
        return exit_codes.NOT_FOUND
    if isinstance(error, TimedOut):
        return exit_codes.TIMED_OUT
    if isinstance(error, ServerError):
        return _STATUS_CODES.get(error.status, exit_codes.FAILED)
    return exit_codes.FAILED
