"""What will be submitted while a workload waits: sampled from what was submitted in the last days.

Every day of a sample is one of the past days as it was, so that bursts, hours of the day and running times that belong
together stay together. Deterministic: the number of the sample says which days it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.foresight.runtimes import RunningTime
from fairlead.scheduling.model.snapshot import Job, Plain

DAY = 86_400.0
#: Days that are looked at: a week has its weekend.
DAYS = 7


class PastSubmission(Plain, frozen=True, kw_only=True):
    """One workload that was submitted in the past, whether or not it still exists."""

    #: Seconds before now.
    ago: float
    #: All of it, as it waited for its first start.
    jobs: tuple[Job, ...]
    runtime: RunningTime


class FutureSubmission(NamedTuple):
    at: float
    key: str
    jobs: tuple[Job, ...]
    runtime: RunningTime


class PastSubmissions:
    """Everything that was submitted within so many seconds before now."""

    def __init__(self, submissions: tuple[PastSubmission, ...] = (), seconds: float = 0) -> None:
        #: Seconds. Where so much is submitted that less than a day is known, that time is repeated instead.
        self.day = min(DAY, seconds)
        days = min(int(seconds // DAY), DAYS) if seconds >= DAY else 1
        #: By day, the latest day first; in a day, the earliest submission first.
        self.days: list[list[PastSubmission]] = [[] for _ in range(days)]
        for each in sorted(submissions, key=lambda each: -each.ago):
            if 0 < each.ago <= days * self.day:
                self.days[ceil(each.ago / self.day) - 1].append(each)

    def __bool__(self) -> bool:
        return any(self.days)

    @property
    def jobs(self) -> Iterator[Job]:
        return (job for day in self.days for each in day for job in each.jobs)

    def sample(self, number: int, now: float) -> Iterator[FutureSubmission]:
        """Submissions after now in the order of their times, without an end if there are any."""
        if not self:
            return
        ids = count(1)
        for day in count():
            chosen = self._choose(number, day)
            for each in self.days[chosen]:
                at = now + (day + chosen + 1) * self.day - each.ago
                key = f"+{next(ids)}"
                yield FutureSubmission(at, key, tuple(_renew(job, key, at) for job in each.jobs), each.runtime)

    def _choose(self, number: int, day: int) -> int:
        """Samples begin with different days, and go on from there by different steps."""
        count = len(self.days)
        return (number + day * (1 + number // count)) % count


NO_SUBMISSIONS = PastSubmissions()


def _renew(job: Job, key: str, at: float) -> Job:
    # The key is not a name that users can give, so nothing is taken for a workload of the snapshot.
    tasks = tuple(replace(task, id=f"{key}:{task.id}") for task in job.tasks)
    renewed: Job = replace(job, id=f"{key}:{job.id}", name="", tasks=tasks, created=at)
    return renewed
