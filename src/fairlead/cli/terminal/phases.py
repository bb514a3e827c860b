"""The phases of workloads, as people type them."""

from fairlead.cli.flags import UsageError
from fairlead.client.suggest import suggest

#: Other names of phases.
PHASE_WORDS = {"suspended": "Stopped", "suspending": "Stopping", "succeeded": "Completed"}
PHASES = (
    "Creating",
    "Initializing",
    "Resuming",
    "Pending",
    "Deleting",
    "Running",
    "Updating",
    "Stopped",
    "Stopping",
    "Degraded",
    "Failed",
    "Completed",
    "Terminating",
    "Unknown",
)


def read_phase(text: str) -> str:
    """The phase with that name or one of its other names, ignoring case."""
    wanted = PHASE_WORDS.get(text.lower(), text).lower()
    for phase in PHASES:
        if phase.lower() == wanted:
            return phase
    raise UsageError(f"'{text}' is not a phase; the phases are {', '.join(PHASES)}.{suggest(wanted.title(), PHASES)}")
