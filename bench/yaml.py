"""Workload YAML: how many documents a core reads, merges and checks; how long `explain` and `convert` take.

Run with `python -m bench.yaml`; prints a table beside the goals. Rates are over processor time, and commands are told
by wall clock and by processor time, so that other work on the machine can be told apart.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.commands import time_of
from bench.server import FAIRLEAD
from bench.table import Measurement, render_table
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.formats.yaml.inherit import Find, find_among, merge
from fairlead.formats.yaml.text import render_yaml
from fairlead.formats.yaml.write import render_document
from fairlead.kinds import KINDS

ROOT = Path(__file__).parents[1]
REQUEST = str(ROOT / "tests/golden/training/every-field.request.json")
TEMPLATE = """apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata: {name: base, namespace: runai-team-a}
spec:
  usage: Template
  image: {value: "python:3.12"}
  environment: {items: {MODE: {value: fast}}}
"""
DOCUMENT = """apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata:
  name: job-1
  namespace: runai-team-a
spec:
  baseWorkload: base
  name:
    value: job-1
  command:
    value: python train.py
  gpu:
    value: "0.5"
  cpu:
    value: "2"
  memory:
    value: 4Gi
  environment:
    items:
      SEED:
        value: "7"
  pvcs:
    items:
      pvc-1:
        value:
          claimName: pvc-1
          path: /data
          size: 1G
  usage: Submit
"""


def rate(act: Callable[[], object], calls: int, rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(calls):
            act()
        found.append(calls / (time.process_time() - began))
    return found


def read_one(find: Find) -> object:
    manifests, issues = read_manifests(DOCUMENT, "job.yaml")
    merged, broken = merge(manifests[0], find)
    workload, wrong = read_workload(merged)
    if issues or broken or wrong:
        raise SystemExit(f"the document is refused: {issues + broken + wrong}")
    return workload


def measure(quick: bool) -> list[Measurement]:
    rounds, calls = (3, 200) if quick else (15, 1000)
    find = find_among(read_manifests(TEMPLATE)[0])
    read = rate(lambda: read_one(find), calls, rounds)
    workload = read_workload(read_manifests(DOCUMENT.replace("baseWorkload: base", "image: {value: i}"))[0][0])[0]
    if workload is None:
        raise SystemExit("the document is refused")
    plain, kind = workload.plain, KINDS[workload.kind.key]
    write = rate(lambda: render_yaml(render_document(kind, plain, "job-1")[0]), calls // 4, rounds)
    found = [
        Measurement("read, merge and check a document", "1/s", read, 2000, True, "30 lines and a template, one core"),
        Measurement("write a document", "1/s", write, note="from the REST spec"),
    ]
    for words in (("explain", "trainingworkload.spec"), ("explain", "trainingworkload.spec.pvcs.size")):
        found += time_command(" ".join(words), words, rounds)
    with tempfile.TemporaryDirectory() as folder:
        for source, path in sources(Path(folder)).items():
            for target in ("rest", "yaml", "flags", "kubernetes"):
                shown = f"convert, {source} to {target}"
                found += time_command(shown, ("convert", str(path), "--to", target), rounds)
    return found


def sources(folder: Path) -> dict[str, Path]:
    """The request with every field, in the dialects that are read and written."""
    found = {"request": Path(REQUEST)}
    for name, target in (("workload YAML", "yaml"), ("command", "flags")):
        found[name] = folder / target
        done = subprocess.run([str(FAIRLEAD), "convert", REQUEST, "--to", target], capture_output=True, check=True)
        found[name].write_bytes(done.stdout)
    return found


def time_command(shown: str, words: Sequence[str], rounds: int) -> list[Measurement]:
    times, busy = [], []
    for _ in range(rounds):
        before = processor_time()
        times.append(time_of([str(FAIRLEAD), *words], dict(os.environ)))
        busy.append(processor_time() - before)
    return [Measurement(f"`{shown}`", "ms", times, 120), Measurement("  of that, processor time", "ms", busy)]


def processor_time() -> float:
    """Milliseconds that programs which this one has started and waited for have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> int:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(render_table(measure("--quick" in sys.argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
