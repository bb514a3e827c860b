"""Who reads the names of another project's workload after an eviction: on every way out of the API, by three people.

The victim is Ada's, in her project. The winner belongs to a project that Ada may not see; Bob may see both.
"""

from typing import Any

import pytest

from fairlead.control.decide.cluster.scheduler_messages import find_named
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.eviction_notices import note_eviction
from fairlead.control.decide.placement.placements import evict
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.scheduling.model.decisions import Eviction
from tests import builders
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

VICTIM = "11111111-1111-4111-8111-111111111111"
POD = "22222222-2222-4222-8222-222222222222"
WINNER = "33333333-3333-4333-8333-333333333333"
#: Everything by which the winner could be recognized.
NAMES = ("moonshot", "skunkworks", WINNER)
TOLD = f"/api/v1/workloads/{VICTIM}"


class Scene:
    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.own, self.other = (self._make_project(name) for name in ("hers", "skunkworks"))
        self.ada, self.bob = Person(api, "ada@example.com"), Person(api, "bob@example.com")
        self.ada.may(RESEARCHER, "project", self.own)
        self.bob.may(RESEARCHER, "project", self.own)
        self.bob.may(RESEARCHER, "project", self.other)
        self.revision = api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"]
        self._evict()

    def _make_project(self, name: str) -> str:
        body = {"name": name, "clusterId": self.api.cluster_id, "resources": []}
        made = self.api.call("POST", "/api/v1/org-unit/projects", body)
        assert made.status == 201, made
        return str(made.json["id"])

    def _evict(self) -> None:
        """As the loop records it."""
        shared: dict[str, Any] = {"cluster_id": self.api.cluster_id, "created_at": START, "phase_updated_at": START}
        own, other = {"project_id": self.own, "project_name": "hers"}, {"project_id": self.other}
        victim = builders.workload("train", id=VICTIM, phase=Phase.RUNNING, **own, **shared)
        winner = builders.workload(
            "moonshot", id=WINNER, phase=Phase.PENDING, project_name="skunkworks", **other, **shared
        )
        pod = builders.pod(
            id=POD, workload_id=VICTIM, project_id=self.own, role="worker", phase=PodPhase.RUNNING, created_at=START
        )
        eviction = Eviction(
            task=POD,
            job=POD,
            node="alpha",
            action="reclaim",
            by_job=f"{WINNER}/worker/0",
            rule="reclaimed",
            message="Pod runai-hers/train-0-0 was preempted by workload runai-skunkworks/moonshot.\nskunkworks uses …",
        )
        draft = Draft(WorkloadEntry(workload=victim, podsets=(builders.podset(role="worker"),), pods=(pod,)), START)
        evict(draft, pod, eviction, note_eviction(eviction, victim, pod, winner, START))
        self.api.put(draft.workload, *draft.pods.values(), winner, events=tuple(draft.events))

    def reads(self) -> list[str]:
        """Every read of the API with the victim, or without an id in its path."""
        paths = self.api.get("/api/openapi.json")["paths"]
        reads = [path.replace("{workloadId}", VICTIM) for path, methods in paths.items() if "get" in methods]
        return [f"{path}?revision={self.revision}" if path.endswith("/watch") else path for path in reads]

    def read(self, path: str, token: str) -> str:
        """What a caller reads there; of a stream the first messages."""
        connection, response = self.api.open("GET", path, token=token)
        try:
            if response.getheader("content-type", "").startswith("text/event-stream"):
                # The beginning, and a message for each of the records that were put.
                lines = [response.readline().decode() for _ in range(2 + 4)]
                return "".join(lines)
            return response.read().decode("utf-8", "replace")
        finally:
            connection.close()


@pytest.fixture(scope="module")
def scene(api: ApiServer) -> Scene:
    return Scene(api)


def test_nothing_names_a_project_that_the_reader_may_not_see(scene: Scene) -> None:
    paths = [path for path in scene.reads() if "{" not in path and path != "/api/openapi.json"]
    assert len(paths) > 60
    leaks = [(path, name) for path in paths for name in NAMES if name in scene.read(path, scene.ada.token)]
    assert leaks == []


@pytest.mark.parametrize("who", ["bob", "administrator"])
@pytest.mark.parametrize(
    "path", [TOLD, f"{TOLD}/events", f"{TOLD}/history", f"{TOLD}/explanation", "/api/v1/workloads"]
)
def test_those_who_may_see_the_other_project_read_its_name(scene: Scene, path: str, who: str) -> None:
    text = scene.read(path, scene.bob.token if who == "bob" else scene.api.token)
    assert "workload moonshot of project skunkworks reclaimed" in text


def test_the_watch_stream_names_it_to_those_who_may_see_it(scene: Scene) -> None:
    path = f"/api/v1/workloads/watch?revision={scene.revision}&projectId={scene.own}"
    hidden, named = (scene.read(path, person.token) for person in (scene.ada, scene.bob))
    assert "Evicted: a workload of another project reclaimed" in hidden
    assert "moonshot" not in hidden
    assert "workload moonshot of project skunkworks reclaimed" in named


def test_the_eviction_as_data(scene: Scene) -> None:
    hidden = scene.ada.get(f"{TOLD}/explanation")["lastEviction"]
    named = scene.bob.get(f"{TOLD}/explanation")["lastEviction"]
    assert {"byWorkload", "byWorkloadId", "byProject"} & hidden.keys() == set()
    assert (named["byWorkload"], named["byWorkloadId"], named["byProject"]) == ("moonshot", WINNER, "skunkworks")
    assert (hidden["rule"], hidden["pod"]) == (named["rule"], named["pod"])


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("Pod runai-a/x was preempted by workload runai-b/y.\nb uses <GPU: 2>", True),
        ("Pod runai-a/x was preempted by higher priority workload runai-b/y", True),
        ("Pod runai-a/x was preempted by higher priority workload runai-a/y", False),
        ("Node n1 no longer exists", False),
    ],
)
def test_which_messages_of_a_clusters_scheduler_name_others(message: str, want: bool) -> None:
    assert (find_named(message) is not None) is want
