"""What somebody removes behind Fairlead's back comes again, and what runs on meanwhile is left alone."""

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


def uids(room: Room, kinds: str, namespace: str = "") -> set[str]:
    return {one["metadata"]["uid"] for one in room.objects(kinds, namespace=namespace)}


def test_a_projects_namespace_is_made_again_with_what_runs_in_it(room: Room) -> None:
    project = room.make_project(f"{room.project}-gone", gpus=1)
    namespace = f"runai-{room.project}-gone"
    workload = room.submit("training", "survivor", room.spec(), project=project)
    room.until_phase(workload, "Running")
    before = uids(room, "jobs", namespace)
    assert room.kubectl("delete", "namespace", namespace, "--wait=false").returncode == 0
    until(
        lambda: uids(room, "jobs", namespace) - before and room.server.phase(workload) == "Running",
        "another namespace and another job",
        PATIENCE,
    )


def test_a_pod_group_is_made_again_around_its_pods(room: Room) -> None:
    spec = room.spec(numWorkers=1, distributedFramework="PyTorch")
    workload = room.submit("distributed", "together", spec)
    room.until_phase(workload, "Running")
    pods, groups = uids(room, "pods"), uids(room, "podgroups")
    assert room.kubectl("delete", "podgroup", "together", "-n", room.namespace, "--wait=false").returncode == 0
    until(lambda: uids(room, "podgroups") - groups, "another group", PATIENCE)
    assert uids(room, "pods") == pods
    assert room.server.phase(workload) == "Running"
