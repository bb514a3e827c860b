"""Broken documents by the thousand against the reader of workload YAML: none may crash it, take long, or much memory.

`make soak` runs it for five minutes in a process of its own, so that a crash of libyaml is seen too, with a seed and a
report; the tests run a short one. Documents are the reference's snippets and one of every kind's fields, mutilated.
"""

import argparse
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.formats.convert.dialects import detect, read_any, render
from fairlead.formats.intermediate import Unconvertible
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.fields import yaml_fields
from fairlead.kinds import KINDS

GOLDEN = Path(__file__).parents[1] / "golden"
SECONDS_MOST = 1.0
MEGABYTES_MOST = 200
#: How many texts a process reads before another one takes over, so that a leak is seen and a crash costs little.
PIECE = 20_000
_CRASH = "the process ended with {code} while it read text {number} of seed {seed}"
#: What trips parsers up.
TOKENS = (
    *(
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        "- ",
        "? ",
        "| ",
        ">\n",
        "|\n",
        "'",
        '"',
        "#",
        "&a ",
        "*a",
        "<<: *a",
        "!!str ",
        "!x ",
    ),
    *(
        "---\n",
        "...\n",
        "\n",
        "\t",
        "  ",
        "\0",
        "\ufeff",
        "\u2028",
        "ü",
        "\U0001f600",
        "%YAML 1.2\n",
        "@",
        "`",
        "~",
        "null",
    ),
    *("value:", "items:", "{value: {value: x}}", "true", "-1", "1e999", "0x7f", "9" * 400, "[" * 80, "{a: " * 80, "."),
    *("SECRET:a", "usage: Template", "baseWorkload: x", "kind: Job", "apiVersion: run.ai/v1", "1Gi", "0.5", "2"),
)


def documents() -> list[str]:
    """The texts to begin with: snippets, and every field of every kind."""
    found = [path.read_text(encoding="utf-8") for path in sorted((GOLDEN / "yaml").rglob("*.*"))]
    for kind in KINDS.values():
        if not kind.letter:
            continue
        lines = [
            f"apiVersion: run.ai/v2alpha1\nkind: {kind.resource}\nmetadata: {{name: x, namespace: runai-a}}\nspec:"
        ]
        for name, each in yaml_fields(kind).items():
            members = ", ".join(f"{member.name}: 1" for member in each.members)
            inner = f"{{items: {{k: {{value: {{{members}}}}}}}}}" if members else "{value: 1}"
            lines.append(f"  {name}: {inner}")
        found.append("\n".join(lines) + "\n")
    return found


@dataclass
class Report:
    seed: int
    texts: int = 0
    slowest: float = 0.0
    megabytes: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = (
            f"workload YAML, seed {self.seed}: {self.texts} texts, the slowest took {self.slowest * 1000:.0f} ms, "
            f"at most {self.megabytes:.0f} MB"
        )
        return "\n".join([head, *(self.problems or ["every text was read or refused in words"])])


class Fuzz:
    """Reads one broken text after another; which ones follows from the seed and their number alone."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.documents = documents()

    def text(self, number: int) -> str:
        chance = random.Random(f"{self.seed}/{number}")
        text = chance.choice(self.documents)
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            text = chance.choice(MUTILATIONS)(text, chance)
        return text

    def run(self, first: int, count: int) -> Report:
        report = Report(self.seed)
        for number in range(first, first + count):
            text = self.text(number)
            began = time.process_time()
            try:
                read_all(text)
            except Exception as error:
                report.problems.append(f"text {number} of seed {self.seed}: {error.__class__.__name__}: {error}")
            took = time.process_time() - began
            report.slowest = max(report.slowest, took)
            if took > SECONDS_MOST:
                report.problems.append(f"text {number} of seed {self.seed} took {took:.1f} s")
            report.texts += 1
        report.megabytes = megabytes_at_most()
        return report


def megabytes_at_most() -> float:
    """What this process held at its peak. Not `ru_maxrss`: that begins with the size of the process that started it."""
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def read_all(text: str) -> None:
    """Everything that is done with a text that somebody hands in."""
    manifests, issues = read_manifests(text, "f.yaml")
    for manifest in manifests:
        found, wrong = read_workload(manifest)
        if (found is None) != bool(wrong):
            raise AssertionError("a document is neither read nor refused")
        if found is not None and not issues:
            found.kind.podsets(found.spec)
    try:
        workloads = read_any(text, detect(text))
    except Unconvertible as refused:
        if not refused.lines:
            raise AssertionError("a refusal without words") from None
        return
    for workload in workloads:
        for target in ("rest", "yaml", "flags"):
            render(workload, target)


def _cut(text: str, chance: random.Random) -> str:
    first = chance.randrange(len(text) + 1)
    return text[:first] + text[first + chance.randrange(40) :]


def _repeat(text: str, chance: random.Random) -> str:
    first = chance.randrange(len(text) + 1)
    piece = text[first : first + chance.randrange(200)]
    return text[:first] + piece * chance.choice((2, 3, 50)) + text[first:]


def _insert(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(TOKENS) * chance.choice((1, 1, 1, 3, 200)) + text[place:]


def _swap_lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def _change_value(text: str, chance: random.Random) -> str:
    head, colon, tail = text.rpartition(chance.choice((": ", "value: ", "{")))
    return head + colon + chance.choice(TOKENS) + tail if colon else text


def _flip(text: str, chance: random.Random) -> str:
    if not text:
        return text
    place = chance.randrange(len(text))
    return text[:place] + chr(chance.choice((chance.randrange(128), chance.randrange(0x2FFF)))) + text[place + 1 :]


MUTILATIONS = (_cut, _repeat, _insert, _insert, _swap_lines, _change_value, _flip)


def run_pieces(seed: int, seconds: float) -> Report:
    """Piece after piece in processes of their own, until the time is over."""
    total = Report(seed)
    deadline = time.monotonic() + seconds
    first = 0
    while time.monotonic() < deadline and not total.problems:
        left = max(1.0, deadline - time.monotonic())
        words = [sys.executable, "-m", "tests.properties.fuzz_yaml", "--piece", f"{seed}:{first}:{left}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            number = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "?"
            total.problems.append(_CRASH.format(code=done.returncode, number=number, seed=seed))
            break
        texts, slowest, megabytes = lines[0].split()
        total.texts += int(texts)
        total.slowest, total.megabytes = max(total.slowest, float(slowest)), max(total.megabytes, float(megabytes))
        total.problems += lines[1:]
        first += int(texts)
    if total.megabytes > MEGABYTES_MOST:
        total.problems.append(f"{total.megabytes:.0f} MB were used; at most {MEGABYTES_MOST} are allowed")
    return total


def run_piece(words: str) -> int:
    """One piece: its numbers in the first line, its problems below; the text at hand is named in case it crashes."""
    seed, first, seconds = int(words.split(":")[0]), int(words.split(":")[1]), float(words.split(":")[2])
    deadline = time.monotonic() + seconds
    fuzz = Fuzz(seed)
    total = Report(seed)
    while total.texts < PIECE and time.monotonic() < deadline:
        number = first + total.texts
        sys.stderr.write(f"{number}\n")
        part = fuzz.run(number, 200)
        total.texts += part.texts
        total.slowest = max(total.slowest, part.slowest)
        total.megabytes = part.megabytes
        total.problems += part.problems
    print(total.texts, total.slowest, total.megabytes)
    for problem in total.problems:
        print(problem)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--fuzz-minutes", type=float, default=5)
    parser.add_argument("--piece", default="")
    options, _ = parser.parse_known_args()
    if options.piece:
        return run_piece(options.piece)
    report = run_pieces(options.seed, options.fuzz_minutes * 60)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
