"""Kill -9 of the server at random moments under load, and what must hold afterwards.

The short form runs in the tests; `make soak` runs it for long, with a seed and a report. Jobs write one line when they
begin, so that a second beginning of the same run is seen.
"""

import argparse
import http.client
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.server import IDLE_PROCESSES, Server, until

FINAL = ("Completed", "Failed", "Stopped")
MIN_KILLS = 3


@dataclass
class Known:
    """What the server has acknowledged about one workload."""

    name: str
    workload_id: str
    #: The last word that was acknowledged: submit, suspend, resume or delete; and one that was sent but not answered.
    word: str = "submit"
    unanswered: str = ""
    resumes: int = 0
    #: A delete was sent whose answer never came: it may have been done.
    may_be_gone: bool = False


@dataclass
class Report:
    seed: int
    kills: int = 0
    requests: int = 0
    unanswered: int = 0
    workloads: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.kills} kills, {self.requests} requests acknowledged, "
            f"{self.unanswered} cut off, {self.workloads} workloads"
        )
        return "\n".join([head, *(self.problems or ["everything acknowledged is there, nothing ran twice"])])


class Crash:
    def __init__(self, server: Server, marks: Path, seed: int) -> None:
        self.server = server
        self.marks = marks
        self.random = random.Random(seed)
        self.report = Report(seed)
        self.known: list[Known] = []
        self.names = 0

    def run(self, seconds: float) -> Report:
        """Load and kills side by side for a while, then the check."""
        deadline = time.monotonic() + seconds
        # On a machine that is busy with other things a start may take long.
        while time.monotonic() < deadline or self.report.kills < MIN_KILLS:
            self._kill_after(self.random.uniform(0.05, 1.0))
        self._settle()
        return self.report

    def _kill_after(self, seconds: float) -> None:
        """Send requests until the server has been killed under them, then start it again."""
        killer = threading.Timer(seconds, self.server.kill)
        killer.start()
        try:
            while killer.is_alive():
                self._request()
        finally:
            killer.join()
        self.report.kills += 1
        self.server.start()

    def _request(self) -> None:
        try:
            if not self.known or self.random.random() < 0.5:
                self._submit()
            else:
                self._change(self.random.choice(self.known))
            self.report.requests += 1
        except (OSError, http.client.HTTPException, ValueError):
            self.report.unanswered += 1

    def _submit(self) -> None:
        self.names += 1
        name = f"crash-{self.names}"
        script = f"echo $$ >> {self.marks / name}; sleep {self.random.choice((0, 0, 0.1, 0.5, 2))}"
        answer = self.server.submit(name, f"sh -c '{script}'", backoffLimit=0, terminationGracePeriodSeconds=1)
        if answer.status != 202:
            self.report.problems.append(f"{name}: submission answered {answer}")
            return
        self.known.append(Known(name, answer.json["workloadId"]))

    def _change(self, known: Known) -> None:
        if known.word == "delete":
            return
        word = self.random.choice(("suspend", "resume", "delete"))
        may_be_gone = known.may_be_gone
        known.may_be_gone |= word == "delete"
        known.unanswered = word
        if word == "resume":
            known.resumes += 1
        path = f"/api/v1/workloads/trainings/{known.workload_id}"
        sent = ("DELETE", path) if word == "delete" else ("POST", f"{path}/{word}")
        answer = self.server.call(*sent)
        # A delete that was cut off may have been done: then everything after it finds nothing.
        if answer.status != 202 and not (answer.status == 404 and may_be_gone):
            self.report.problems.append(f"{known.name}: {word} answered {answer}")
        known.word = word if answer.status == 202 else "delete"
        known.unanswered = ""

    def _settle(self) -> None:
        self.report.workloads = len(self.known)
        for known in self.known:
            self._check(known)
        self._check_nothing_is_left()

    def _check(self, known: Known) -> None:
        answer = self.server.call("GET", f"/api/v1/workloads/trainings/{known.workload_id}")
        if answer.status != 200:
            self.report.problems.append(f"{known.name}: acknowledged, and now {answer}")
            return
        wanted_gone = known.word == "delete"
        if wanted_gone and not answer.json["deletedAt"]:
            self.report.problems.append(f"{known.name}: its deletion was acknowledged and is lost")
        if not answer.json["deletedAt"]:
            self.server.until_phase(known.workload_id, *FINAL)
        mark = self.marks / known.name
        began = len(mark.read_text().split()) if mark.exists() else 0
        if began > 1 + known.resumes:
            self.report.problems.append(f"{known.name}: began {began} times with {known.resumes} resumes")
        if known.word == "submit" and not known.unanswered and began != 1:
            self.report.problems.append(f"{known.name}: never touched, and began {began} times")

    def _check_nothing_is_left(self) -> None:
        """Only the fork server may be left once every workload has ended."""
        until(lambda: len(self.server.leftovers()) <= IDLE_PROCESSES, "the end of all pods")


def crash(server: Server, marks: Path, seed: int, seconds: float) -> Report:
    return Crash(server, marks, seed).run(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--database", default="", help="postgresql:// URL; SQLite when left out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks"
        marks.mkdir()
        arguments = ("--database", given.database) if given.database else ()
        server = Server(Path(folder) / "data", "--personal", *arguments).start()
        try:
            report = crash(server, marks, given.seed, given.minutes * 60)
        finally:
            server.close()
    sys.stdout.write(f"{report}\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
