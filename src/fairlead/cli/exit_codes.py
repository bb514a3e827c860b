"""The exit codes of every command: one table, printed by `fairlead help exit-codes` and by the reference page."""

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
    (OK, "Success; for `wait`, the workload reached the phase."),
    (FAILED, "The server refused the request or it failed; the message says why."),
    (USAGE, "The command line is wrong: an unknown command or flag, an invalid value, or something is missing."),
    (NOT_FOUND, "No workload, project or cluster has that name."),
    (NOT_ALLOWED, "Not logged in, or not allowed to do this."),
    (UNREACHABLE, "No server answers, or it is unavailable at the moment."),
    (TIMED_OUT, "The wait timed out."),
    (ENDED_OTHERWISE, "`wait`: the workload ended in another phase and will not reach the wanted one."),
    (RUN_FAILED, "`run`: the command did not run to its end, so its exit code is not known."),
    (INTERRUPTED, "Interrupted by Ctrl-C."),
)
RUN_NOTE = "`run` exits with the command's own exit code, or with 128 plus the signal's number if a signal ended it."
