"""A hundred workloads on a real cluster, while its programs and our server die and the way between them is troubled.

Part of `make soak`. Each round: all are submitted, faults befall them at random, then our view must be the cluster's,
object by object; all are deleted under further faults, and nothing may be left. `FAIRLEAD_CLUSTER` names the folder of
a cluster that runs already.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from deploy.cluster import cluster as clusters
from deploy.cluster import control
from tests.clusters import running_cluster, set_nodes
from tests.kubernetes.cluster_harness import ClusterHarness
from tests.kubernetes.conftest import CRDS, NODES
from tests.kubernetes.crowd import (
    assert_all_end,
    assert_settled,
    start_groups,
    start_real,
    start_trainings,
    until_some_run,
)
from tests.kubernetes.meddler import Meddler, Trouble

PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kai-scheduler", "kai-binder", "kai-podgrouper"),
    *("kai-podgroupcontroller", "kai-queuecontroller", "kai-admission", "lws", "kubelet", "stand-in"),
)
SERVER, CUT = "our server", "all watches"
ALL = ("changes", "reads", "watches")
TROUBLES = {
    "409": Trouble(409, 0.3),
    "429": Trouble(429, 0.2, ("changes", "reads")),
    "500": Trouble(500, 0.2, ALL),
    "lost": Trouble("lost", 0.2, ("changes", "reads")),
    "silent": Trouble("silent", 0.02, ("changes", "reads")),
    "late": Trouble("late", 0.02),
    "torn": Trouble("torn", 0.3, ("watches",)),
    "gone": Trouble("gone", 0.3, ("watches",)),
}


class Soak:
    def __init__(self, harness: ClusterHarness, meddler: Meddler, seed: int, workloads: int) -> None:
        self.harness = harness
        self.meddler = meddler
        self.random = random.Random(seed)
        self.workloads = workloads
        self.faults: Counter[str] = Counter()
        self.rounds = 0

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.rounds or time.monotonic() < deadline:
            began = time.monotonic()
            self._round()
            self.rounds += 1
            told = ", ".join(f"{name} {number}" for name, number in sorted(self.faults.items()))
            sys.stdout.write(f"round {self.rounds}: {time.monotonic() - began:.0f} s; faults so far: {told}\n")
            sys.stdout.flush()

    def _round(self) -> None:
        few = self.workloads // 5
        members = start_trainings(self.harness, self.workloads - 2 * few)
        members += start_groups(self.harness, few) + start_real(self.harness, few)
        until_some_run(self.harness, members)
        for _ in range(self.random.randint(3, 6)):
            self._strike()
            time.sleep(self.random.uniform(0.1, 4))
        self.meddler.trouble()
        assert_settled(self.harness, members)
        self._strike()
        assert_all_end(self.harness)
        self.meddler.trouble()

    def _strike(self) -> None:
        name = self.random.choice((*PROGRAMS, *TROUBLES, SERVER, SERVER, CUT))
        self.faults[name] += 1
        if name == SERVER:
            self.harness.server.kill()
            self.harness.server.start()
        elif name == CUT:
            self.meddler.cut_watches()
        elif name in TROUBLES:
            self.meddler.trouble(TROUBLES[name])
            self.meddler.cut_watches()
        else:
            control.kill(self.harness.cluster.layout.folder, name)


def soak(cluster: clusters.Cluster, folder: Path, given: argparse.Namespace) -> bool:
    """Whether everything held."""
    set_nodes(cluster, *NODES)
    meddler = Meddler(cluster.layout, folder, given.seed).start()
    harness = ClusterHarness(cluster, folder, meddler.kubeconfig)
    work = Soak(harness, meddler, given.seed, given.workloads)
    try:
        harness.open(CRDS)
        work.run(given.minutes * 60)
    except AssertionError as error:
        sys.stdout.write(f"seed {given.seed}, round {work.rounds + 1}: {error}\n{harness.server.errors()}\n")
        return False
    finally:
        meddler.trouble()
        harness.close()
        meddler.close()
    sys.stdout.write(
        f"seed {given.seed}: {work.rounds} rounds of {given.workloads}; both sides agree, nothing is left\n"
    )
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workloads", type=int, default=100)
    # What the other parts of `make soak` are told is not for us.
    given, _ = parser.parse_known_args()
    if os.geteuid() != 0:
        sys.stdout.write("the soak on a cluster is left out: it needs root\n")
        return 0
    with tempfile.TemporaryDirectory() as folder, running_cluster(Path(folder) / "cluster") as cluster:
        held = soak(cluster, Path(folder), given)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
