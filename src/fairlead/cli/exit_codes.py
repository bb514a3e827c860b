"""What the command's exit status says: one table, printed by `fairlead help exit-codes` and by the reference page."""

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
NOT_ALLOWED = 4
UNREACHABLE = 5
TIMED_OUT = 6
ENDED_OTHERWISE = 7
RUN_FAILED = 125
INTERRUPTED = 130

EXIT_CODES: tuple[tuple[int, str], ...] = (
    (OK, "Done; for `wait`, the workload reached the phase."),
    (FAILED, "The server refused the request or could not carry it out; the message says why."),
    (USAGE, "The command line is wrong: unknown command or flag, a value that is none, something missing."),
    (NOT_FOUND, "There is no workload, project or cluster of that name."),
    (NOT_ALLOWED, "Not logged in, or not allowed to do this."),
    (UNREACHABLE, "No server answers, or it cannot serve at the moment."),
    (TIMED_OUT, "What was waited for did not come in time."),
    (ENDED_OTHERWISE, "`wait`: the workload ended in another phase and cannot reach the wanted one any more."),
    (RUN_FAILED, "`run`: the command was not run to its end, and its own exit code is not known."),
    (INTERRUPTED, "Interrupted by Ctrl-C."),
)
#: `run` ends with the command's own exit code, or with 128 and the signal's number if a signal ended it.
RUN_NOTE = "`run` ends with the command's own exit code; with 128 plus the number of the signal that ended it."
