"""How long one typical training takes from bytes to pod sets: reading, checking, and working out its pods.

Run with `python bench/formats.py`; prints medians and spread in microseconds over several rounds.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from fairlead.admission.admit import admit
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.kinds.kind import read_stored_spec
from fairlead.model.errors import Invalid

ROUNDS, CALLS = 15, 2000
KIND = KINDS["training"]
GOLDEN = Path(__file__).parents[1] / "tests/golden/training"
#: Ten fields of the spec, as a typical request has.
TYPICAL = json.dumps(
    {
        "name": "typical",
        "projectId": "1",
        "clusterId": "71f69d83-ba66-4822-adf5-55ce55efd210",
        "spec": {
            "image": "python:3.11",
            "command": "python3 -u",
            "args": "train.py --epochs 3",
            "workingDir": "/workspace",
            "environmentVariables": [{"name": "MODE", "value": "fast"}, {"name": "SEED", "value": "7"}],
            "compute": {"cpuCoreRequest": 0.5, "cpuMemoryRequest": "1Gi", "gpuDevicesRequest": 1},
            "labels": [{"name": "stage", "value": "research"}],
            "backoffLimit": 3,
            "completions": 2,
            "parallelism": 2,
        },
    }
).encode()


def measure(call: Callable[[], object]) -> tuple[float, float]:
    """Median and spread (highest less lowest) of one call, in microseconds."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - begin) / CALLS * 1e6)
    return statistics.median(rounds), max(rounds) - min(rounds)


def refused() -> None:
    try:
        read_submission(KIND, TYPICAL.replace(b'"backoffLimit"', b'"backofLimit"'))
    except Invalid:
        return
    raise AssertionError("the broken request was accepted")


def main() -> None:
    every = (GOLDEN / "every-field.request.json").read_bytes()
    typical, full = read_submission(KIND, TYPICAL), read_submission(KIND, every)
    raw = msgspec.json.encode(typical.spec)
    for title, goal, call in (
        ("read a typical training", 30, lambda: read_submission(KIND, TYPICAL)),
        ("admit it and work out its pods", 60, lambda: (admit(KIND, typical), KIND.podsets(typical.spec))),
        ("read a stored spec", None, lambda: read_stored_spec(KIND, raw)),
        ("read a training with every field", None, lambda: read_submission(KIND, every)),
        ("admit it and work out its pods", None, lambda: (admit(KIND, full), KIND.podsets(full.spec))),
        ("refuse a training with a misspelt property", None, refused),
    ):
        median, spread = measure(call)
        verdict = "" if goal is None else f"   goal ≤ {goal}: {'met' if median <= goal else 'missed'}"
        sys.stdout.write(f"{title:45} {median:8.1f} µs  ± {spread:6.1f}{verdict}\n")


if __name__ == "__main__":
    main()
