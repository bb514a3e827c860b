"""How long a workload may run: the annotation that says so, and Slurm's way to write it. Pure."""

import re

#: The annotation with the run time after which a workload is stopped, in seconds.
ANNOTATION = "fairlead/time-limit"
_DAYS = re.compile(r"(\d{1,5})-(\d{1,5})(?::(\d{1,5})(?::(\d{1,5}))?)?")
_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,7}):(\d{1,7})|(\d{1,7})")


def read_slurm_time(text: str) -> int | None:
    """The seconds of `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours` and so on; None for no limit
    and for anything else."""
    if match := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) or None
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds, alone = (int(part or 0) for part in match.groups())
        return ((hours * 60 + minutes + alone) * 60 + seconds) or None
    return None
