"""What policies of five scopes cost a submission: the server's CPU time with them and without, in turns.

Run with `python -m bench.policies`; the goal is at most 5 % more for specs that repeat, as those of sweeps do. The
second row has another spec in every submission.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.server import Server, serving
from bench.submissions import NODE, SPEC, send

SCOPES: tuple[dict[str, Any], ...] = (
    {"scope": "tenant"},
    {"scope": "cluster"},
    {"scope": "department", "departmentId": "1"},
    {"scope": "project", "projectId": 1},
)
PATH = "/api/v2/policy/trainings"


def _policy(number: int) -> dict[str, Any]:
    """Together with the built-in policy these are five scopes."""
    name = f"TEAM_{number}"
    return {
        "defaults": {"environmentVariables": {"instances": [{"name": name, "value": "a"}]}, "workingDir": "/tmp"},
        "rules": {
            "image": {"required": True},
            "backoffLimit": {"min": 0, "max": 10},
            "compute": {"gpuDevicesRequest": {"max": 4 + number}, "cpuCoreRequest": {"min": 0.5, "max": 64}},
            "environmentVariables": {"instances": {"locked": [name]}},
            "nodeType": {"blocked": True},
        },
    }


def _cpu_seconds(server: Server) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cost(server: Server, core: int, spec: dict[str, Any], requests: int, prefix: str) -> float:
    """Microseconds of the server's CPU time for one submission."""
    before = _cpu_seconds(server)
    send(server, core, requests, prefix, spec)
    return (_cpu_seconds(server) - before) / requests * 1e6


def _write(server: Server, *, present: bool) -> None:
    for number, scope in enumerate(SCOPES):
        place = {"clusterId": server.submission("x", {})["clusterId"]} if scope["scope"] == "cluster" else {}
        where = {**scope, **place}
        if present:
            server.call("PUT", PATH, {"meta": {"name": "bench", **where}, "policy": _policy(number)})
        else:
            server.call("DELETE", f"{PATH}?{'&'.join(f'{name}={value}' for name, value in where.items())}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    rounds, requests = (3, 1000) if parser.parse_args().quick else (7, 3000)
    cores = sorted(os.sched_getaffinity(0))
    kinds = {"same spec": SPEC, "another spec each": {**SPEC, "args": "--run NAME"}}
    costs: dict[tuple[str, bool], list[float]] = {
        (kind, with_them): [] for kind in kinds for with_them in (False, True)
    }
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), NODE, {cores[0]}) as server:
        send(server, cores[-1], requests, "warm", SPEC)
        for number in range(rounds):
            for present in (False, True):
                if present:
                    _write(server, present=True)
                for kind, spec in kinds.items():
                    prefix = f"r{number}{int(present)}{len(kind)}"
                    costs[kind, present].append(_cost(server, cores[-1], spec, requests, prefix))
            _write(server, present=False)
    for kind in kinds:
        without, with_them = (statistics.median(costs[kind, present]) for present in (False, True))
        more = with_them / without - 1
        print(f"{kind:20} {without:7.0f} µs, with policies of 5 scopes {with_them:7.0f} µs: {more:+.1%}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
