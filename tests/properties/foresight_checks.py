"""What must hold for every answer of `why`, checked by plain search; called with seeds by tests and by `make soak`.

python -m tests.properties.foresight_checks --clusters 10000 --seed 1
"""

from __future__ import annotations

import argparse
from itertools import combinations

from msgspec.structs import replace

from fairlead.foresight.changes import Change, RemoveWorkload, apply
from fairlead.foresight.families import Family, WaitingWorkload, families
from fairlead.foresight.outlook import CYCLES, SECONDS, look_ahead
from fairlead.foresight.plan import make_plan
from fairlead.foresight.search import Steps
from fairlead.foresight.why import VerifiedChange, WhyAnswer, explain_why
from fairlead.foresight.workloads import SnapshotWorkloads
from fairlead.scheduling import simulate
from fairlead.scheduling.model.snapshot import Snapshot

from .clusters import FEATURES, Maker

#: Sets of workloads and nodes are searched whole up to so many combinations.
_SETS = 40


def starts(snapshot: Snapshot, key: str, changes: tuple[Change, ...]) -> bool:
    waiting = SnapshotWorkloads(snapshot).waiting_jobs(key)
    return look_ahead(apply(snapshot, changes)).starts(waiting) is not None


def check_cluster(seed: int, features: tuple[str, ...] = FEATURES) -> WhyAnswer | None:
    """Ask about one workload that waits; None if there is none."""
    snapshot = Maker(seed, features).snapshot()
    workloads = SnapshotWorkloads(snapshot)
    waiting = [key for key in sorted(workloads.jobs) if workloads.waiting_jobs(key)]
    if not waiting:
        return None
    key = waiting[seed % len(waiting)]
    answer = explain_why(snapshot, key)
    assert (answer.status == "starts") == starts(snapshot, key, ())
    check_plan(snapshot, key)
    if answer.status in ("waits", "never"):
        check_changes(snapshot, key, answer)
    if answer.status == "never":
        check_never(snapshot, key)
    return answer


def check_changes(snapshot: Snapshot, key: str, answer: WhyAnswer) -> None:
    workloads = SnapshotWorkloads(snapshot)
    queue = workloads.jobs[key][0].queue
    own = frozenset(each for each in workloads.holders() if workloads.jobs[each][0].queue == queue)
    shares = look_ahead(snapshot).first.fair_shares
    known = {
        candidate: family
        for family in families(WaitingWorkload(snapshot, workloads, key, own, shares))
        if isinstance(family.space, Steps)
        for candidate in family.space.candidates
    }
    for change in answer.changes:
        if change.at is not None:
            assert look_ahead(replace(snapshot, now=change.at)).starts(workloads.waiting_jobs(key)) is not None
            continue
        assert starts(snapshot, key, change.changes), f"{change.message} does not start it"
        if change.changes in known and change.method == "every step":
            check_smallest(snapshot, key, known[change.changes], change)
        elif change.method in ("fewest", "none can be left out"):
            check_fewest(snapshot, key, change)


def check_smallest(snapshot: Snapshot, key: str, family: Family, change: VerifiedChange) -> None:
    assert isinstance(family.space, Steps)
    candidates = list(family.space.candidates)
    for smaller in candidates[: candidates.index(change.changes)]:
        assert not starts(snapshot, key, smaller), f"less than '{change.message}' starts it: {smaller}"


def check_fewest(snapshot: Snapshot, key: str, change: VerifiedChange) -> None:
    for left_out in range(len(change.changes)):
        rest = change.changes[:left_out] + change.changes[left_out + 1 :]
        assert not rest or not starts(snapshot, key, rest), f"'{change.message}' has one too many"
    if change.method == "fewest" and len(change.changes) > 1:
        others: list[Change] = [
            RemoveWorkload(workload=each) for each in SnapshotWorkloads(snapshot).holders() if each != key
        ]
        if change.family == "ends" and len(others) <= _SETS:
            for single in combinations(others, 1):
                assert not starts(snapshot, key, single), f"one is enough instead of '{change.message}'"


def check_never(snapshot: Snapshot, key: str) -> None:
    """It waits for ever, though everything else has ended."""
    workloads = SnapshotWorkloads(snapshot)
    waiting = workloads.waiting_jobs(key)
    alone: Snapshot = replace(snapshot, jobs=tuple(workloads.jobs[key]))
    for _, decisions in simulate(alone, 5):
        assert not any(bind.job in waiting for bind in decisions.starts)


def check_plan(snapshot: Snapshot, key: str) -> None:
    """What was planned is what then happens when nothing else does: nodes, devices and evictions."""
    plan = make_plan(snapshot, key)
    waiting = SnapshotWorkloads(snapshot).waiting_jobs(key)
    places: dict[str, tuple[str, tuple[int, ...]]] = {}
    for _, decisions in simulate(snapshot, CYCLES, SECONDS):
        for eviction in decisions.evictions:
            # What had only just got a place in this cycle may start in another one at once.
            if not eviction.never_started:
                places.pop(eviction.task, None)
        places |= {bind.task: (bind.node, bind.devices) for bind in decisions.starts if bind.job in waiting}
    assert sorted((pod.node, pod.devices) for pod in plan.pods) == sorted(places.values())
    assert (plan.status == "starts") == bool(places)


def main() -> None:
    parser = argparse.ArgumentParser(description="Check answers of `why` on random clusters.")
    parser.add_argument("--clusters", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given, _ = parser.parse_known_args()
    counts: dict[str, int] = {}
    for seed in range(given.seed, given.seed + given.clusters):
        answer = check_cluster(seed)
        status = answer.status if answer is not None else "nothing waits"
        counts[status] = counts.get(status, 0) + 1
    print(f"{given.clusters} clusters: {counts}", flush=True)


if __name__ == "__main__":
    main()
