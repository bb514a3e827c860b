"""What policies of five scopes cost a submission: the server's CPU time with them and without, in turns.

Run with `python -m bench.policies`; the goal is at most 5 % more. Without policies, the requests have the values that
the policies would set, so that both ways make the same workloads: four more variables cost the same, whoever sets them.
The second row has another spec in every submission; the first repeats one, as sweeps do. Every other round begins with
policies, because each submission finds more workloads than the one before. A round ends when the server has nothing
left to do, because the loop handles submissions after they were answered. Of many short rounds the cheapest counts:
others had to share the machine's caches with other programs.
"""

import argparse
import os
import tempfile
import time
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


def _with_values(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with what the policies set."""
    variables = [each for number in range(len(SCOPES)) for each in _instances(number)]
    return {"workingDir": "/tmp", **spec, "environmentVariables": [*variables, *spec.get("environmentVariables", ())]}


def _instances(number: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = _policy(number)["defaults"]["environmentVariables"]["instances"]
    return found


def _cpu_seconds(server: Server) -> float:
    """Of all its threads, to the nanosecond."""
    threads = Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _idle_cpu_seconds(server: Server) -> float:
    """Its CPU time once it does nothing any more."""
    before, now = -1.0, _cpu_seconds(server)
    while now - before > _NOTHING:
        time.sleep(_PAUSE)
        before, now = now, _cpu_seconds(server)
    return now


#: Seconds of CPU time that an idle server spends at most in a pause of so many seconds.
_NOTHING, _PAUSE = 0.001, 0.3


def _cost(server: Server, core: int, spec: dict[str, Any], requests: int, prefix: str) -> float:
    """Microseconds of the server's CPU time for one submission."""
    before = _idle_cpu_seconds(server)
    send(server, core, requests, prefix, spec)
    return (_idle_cpu_seconds(server) - before) / requests * 1e6


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
    rounds, requests = (12, 300) if parser.parse_args().quick else (30, 500)
    cores = sorted(os.sched_getaffinity(0))
    kinds = {"same spec": SPEC, "another spec each": {**SPEC, "args": "--run NAME"}}
    costs: dict[tuple[str, bool], list[float]] = {
        (kind, with_them): [] for kind in kinds for with_them in (False, True)
    }
    has_policies = False
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), NODE, {cores[0]}) as server:
        send(server, cores[-1], requests, "warm", SPEC)
        for number in range(rounds):
            for present in (False, True) if number % 2 else (True, False):
                if present is not has_policies:
                    _write(server, present=present)
                has_policies = present
                for kind, spec in kinds.items():
                    spec = spec if present else _with_values(spec)
                    prefix = f"r{number}{int(present)}{len(kind)}"
                    costs[kind, present].append(_cost(server, cores[-1], spec, requests, prefix))
    for kind in kinds:
        without, with_them = (min(costs[kind, present]) for present in (False, True))
        more = with_them / without - 1
        print(f"{kind:20} {without:7.0f} µs, with policies of 5 scopes {with_them:7.0f} µs: {more:+.1%}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
