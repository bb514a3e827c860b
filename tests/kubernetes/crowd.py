"""Many workloads at once, and whether our view of them is the cluster's, object by object; for tests of faults."""

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from deploy.cluster.api import ApiError
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import ID, PATIENCE, ClusterHarness

RUNNERS = ("Job", "Deployment", "LeaderWorkerSet")
#: Kinds of which something could be left over.
OURS = "jobs,deployments,leaderworkersets,pods,podgroups,services,secrets,configmaps,persistentvolumeclaims"


@dataclass(frozen=True)
class Member:
    id: str
    name: str
    kind: str
    #: The phase in which it is to stay.
    want: str


Start = Callable[[ClusterHarness, int], list[Member]]


def start_trainings(harness: ClusterHarness, count: int, first: int = 0) -> list[Member]:
    """On nodes without a kubelet: some that end well, some that fail, some that run on."""
    made = []
    for number in range(first, first + count):
        seconds = None if number % 4 == 3 else 2 + number % 3
        code = 5 if number % 4 == 2 else 0
        name = f"many-{number}"
        id = harness.train(name, gpus=0, seconds=seconds, code=code, backoffLimit=0)
        made.append(Member(id, name, "training", {2: "Failed", 3: "Running"}.get(number % 4, "Completed")))
    return made


def start_groups(harness: ClusterHarness, count: int, first: int = 0) -> list[Member]:
    """A leader and a worker each, on nodes without a kubelet."""
    pod = harness.spec(gpus=0)
    made = []
    for number in range(first, first + count):
        name = f"group-{number}"
        id = harness.submit("groups", name, {"leader": pod, "worker": pod, "workers": 1, "replicas": 1})
        made.append(Member(id, name, "groups", "Running"))
    return made


def start_real(harness: ClusterHarness, count: int, first: int = 0) -> list[Member]:
    """In containers: some that end well, some that fail, some that run on."""
    scripts = {0: ("sleep 2", "Completed"), 1: ("sleep 3; exit 3", "Failed"), 2: ("sleep 1000", "Running")}
    made = []
    for number in range(first, first + count):
        script, want = scripts[number % 3]
        name = f"real-{number}"
        # A kubelet that is killed while it starts a container may fail the pod, which is no fault of ours.
        spec = harness.real(script) | {"backoffLimit": 0 if want == "Failed" else 3, "terminationGracePeriodSeconds": 1}
        made.append(Member(harness.submit("training", name, spec), name, "training", want))
    return made


def until_some_run(harness: ClusterHarness, members: list[Member]) -> None:
    """The moment for a fault: some have begun and others have not."""
    until(lambda: any(harness.server.phase(one.id) == "Running" for one in members[:6]), "a first pod", PATIENCE)


def assert_settled(harness: ClusterHarness, members: list[Member]) -> None:
    """Every workload is where it should be, and both sides say the same of every object."""
    for one in members:
        workload = harness.until_phase(one.id, one.want, "Completed", "Failed")
        assert workload["phase"] == one.want, (one.name, workload["phase"], workload["phaseMessage"])
    try:
        until_none(lambda: differences(harness, members), "agreement")
    except AssertionError as error:
        raise AssertionError(f"{error}; the server said last:\n{harness.server.errors()}") from error


def until_none(find: Callable[[], list[str]], what: str) -> None:
    """Wait until nothing is found; fail with what was found last."""
    last: list[str] = []

    def is_none() -> bool:
        try:
            last[:] = find()
        except (OSError, HTTPException, ApiError) as error:
            last[:] = [f"the API server does not answer: {error}"]
        return not last

    try:
        until(is_none, what, PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{error}: {last}") from error


def differences(harness: ClusterHarness, members: list[Member]) -> list[str]:
    """Where our records and the cluster's objects do not say the same."""
    found: list[str] = []
    theirs = by_workload(harness)
    found += [f"objects of {id}, which nobody asked for" for id in theirs.keys() - {one.id for one in members}]
    for one in members:
        seen = harness.server.workload(one.id)
        objects = theirs.get(one.id, [])
        runners = [each for each in objects if each["kind"] in RUNNERS]
        if len(runners) != 1:
            found.append(f"{one.name}: {len(runners)} objects that make its pods")
        found += [f"{one.name}: {said}" for said in _unlike_end(seen, runners)]
        found += [f"{one.name}: {said}" for said in _unlike_pods(harness, one, seen, objects)]
    return found


def by_workload(harness: ClusterHarness) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for each in harness.objects(OURS):
        id = each["metadata"].get("labels", {}).get(ID)
        if id:
            grouped.setdefault(id, []).append(each)
    return grouped


def _unlike_end(seen: dict[str, Any], runners: list[dict[str, Any]]) -> list[str]:
    """What a Job says of its end is our phase."""
    said = []
    for runner in runners:
        conditions = runner.get("status", {}).get("conditions", ())
        ends = [each["type"] for each in conditions if each["status"] == "True"]
        end = next((each for each in ("Failed", "Complete") if runner["kind"] == "Job" and each in ends), "")
        ours = {"Failed": "Failed", "Completed": "Complete"}.get(seen["phase"], "")
        if end != ours:
            said.append(f"its phase is {seen['phase']}, its Job says {end or 'nothing'}")
    return said


def _unlike_pods(
    harness: ClusterHarness, one: Member, seen: dict[str, Any], objects: list[dict[str, Any]]
) -> list[str]:
    ours = {pod["id"]: pod for pod in harness.pods(one.id)}
    theirs = {each["metadata"]["uid"]: each for each in objects if each["kind"] == "Pod"}
    said = []
    for uid, pod in theirs.items():
        name, want = pod["metadata"]["name"], (pod["spec"].get("nodeName"), pod["status"]["phase"])
        if uid not in ours:
            said.append(f"pod {name} ({uid}), {want}, is not on record")
        elif (ours[uid]["nodeName"], ours[uid]["k8sPhase"]) != want:
            said.append(f"pod {name} is {want}, on record {ours[uid]['nodeName']}, {ours[uid]['k8sPhase']}")
    said += [
        f"pod {pod['name']} is on record as {pod['k8sPhase']} and not there"
        for uid, pod in ours.items()
        if uid not in theirs and pod["k8sPhase"] in ("Pending", "Running")
    ]
    running = [pod for pod in theirs.values() if pod["status"]["phase"] == "Running"]
    if seen["runningPods"] != len(running):
        said.append(f"{seen['runningPods']} pods run on record, {len(running)} in the cluster")
    return said


def leftovers(harness: ClusterHarness) -> list[str]:
    """Objects of workloads in the project's namespace."""
    return sorted(
        f"{each['kind']}/{each['metadata']['name']}" for objects in by_workload(harness).values() for each in objects
    )


def assert_all_end(harness: ClusterHarness) -> None:
    """Delete everything through the server, and see in the cluster that nothing is left."""
    harness.delete_all()
    assert_nothing_left(harness)


def assert_nothing_left(harness: ClusterHarness) -> None:
    """Soon, the project's namespace is empty."""
    until_none(lambda: leftovers(harness), "an empty namespace")
