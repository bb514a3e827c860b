"""A part of KAI that does not work is found by `doctor`, and its work goes on when it is back."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.cluster import control
from fairlead.engines.kubernetes.doctor import examine
from tests.e2e.server import until
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes

PARTS = {
    "kai-podgrouper": ("KAI's pod grouper", "KAI's pod grouper has made no pod group"),
    "kai-scheduler": ("KAI's scheduler", "No KAI scheduler of node pool default has said anything"),
    "kai-binder": ("KAI's binder", "its binder does not bind the pod"),
    "kai-admission": ("New pods", "failed calling webhook"),
}


@contextmanager
def without(room: Room, program: str) -> Iterator[None]:
    control.stop(room.cluster.layout.folder, program)
    try:
        yield
    finally:
        control.start_again(room.cluster.layout.folder, program)


@pytest.mark.parametrize("program", PARTS)
def test_a_part_of_kai_that_does_not_work(room: Room, program: str) -> None:
    what, words = PARTS[program]
    with without(room, program):
        workload = room.submit("training", "quiet", room.real(STAYS))
        until(lambda: words in room.server.message(workload), words, PATIENCE)
        until(lambda: what in missing(room), f"{what} among what is missing", PATIENCE)
    room.until_phase(workload, "Running")
    until(lambda: what not in missing(room), "everything at work", PATIENCE)


def missing(room: Room) -> set[str]:
    found = examine(str(room.cluster.layout.folder / "kubeconfig"))
    return {one.what for one in found if one.state == "missing"}
