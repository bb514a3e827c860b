"""Objects of a cluster whose watch is behind, whose answers get lost or whose kind is not served, on a real store.

What was asked for over REST or with kubectl stays, and nothing is ended that may still be there.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.workloads import lifecycle
from fairlead.engines.base import WorkloadReport
from fairlead.model.errors import Unavailable
from fairlead.model.records.phase import DesiredPhase
from fairlead.store.collections import WORKLOADS
from tests.contract.custom_resource_harness import (
    Harness,
    copy_of,
    restarted,
    run,
)
from tests.contract.quiet_engines import cluster_loop
from tests.contract.test_lagging_watches import Cluster as Watched


def test_suspended_before_its_first_status_is_seen(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.rest("suspend")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_suspended_and_resumed_while_the_watch_is_behind(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        await harness.rest("suspend")
        after_suspend = copy_of(harness.cluster.object)
        await harness.rest("resume")
        await harness.bring(body=after_suspend)
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)
        generations = [status["observedGeneration"] for status in harness.cluster.statuses]
        assert generations == sorted(generations)
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)

    run(tmp_path, act)


def test_edited_and_then_changed_over_rest_before_the_status_is_seen(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        harness.cluster.edit(active=False)
        await harness.bring()
        await harness.look()
        assert await harness.wanted() is DesiredPhase.STOPPED
        await harness.rest("resume")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)
        # And the other way it still works.
        await harness.bring()
        harness.cluster.edit(active=False)
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_an_edit_of_something_else_does_not_suspend_or_resume(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.edit(image="another")
        await harness.bring()
        await harness.rest("suspend")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_an_edit_that_is_not_seen_yet_survives_what_the_system_writes(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        shown = copy_of(harness.cluster.object)
        harness.cluster.edit(active=False)
        edited = copy_of(harness.cluster.object)
        # Shown once more as it was, with something of the system's amiss in it.
        shown["spec"]["ingressUrl"] = {"value": "https://elsewhere"}
        harness.cluster.edit(ingressUrl="https://elsewhere")
        await harness.bring(body=shown)
        await harness.look()
        for body in (edited, None):
            await harness.bring(body=body)
            await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_a_write_whose_answer_is_lost_is_nobodys_edit(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        harness.cluster.lost = 1
        with pytest.raises(ConnectionResetError):
            await harness.rest("suspend")
        assert harness.cluster.active is False
        await harness.rest("resume")
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)

    run(tmp_path, act)


@pytest.mark.parametrize("is_told", [True, False], ids=["status written", "status unwritten"])
def test_suspended_over_rest_while_no_server_looked(tmp_path: Path, is_told: bool) -> None:
    async def act(harness: Harness) -> None:
        await lifecycle.suspend(harness.context, CALLER, "training", "u-1")
        if not is_told:
            assert harness.cluster.object is not None
            del harness.cluster.object["status"]
        async with restarted(harness):
            assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


@pytest.mark.parametrize("is_told", [True, False], ids=["status written", "status unwritten"])
def test_edited_while_no_server_looked(tmp_path: Path, is_told: bool) -> None:
    async def act(harness: Harness) -> None:
        if not is_told:
            assert harness.cluster.object is not None
            del harness.cluster.object["status"]
        harness.cluster.edit(active=False)
        async with restarted(harness):
            assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_inactive_from_the_beginning_is_never_wanted(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        workload = await harness.context.store.get(WORKLOADS, "u-1")
        assert workload is not None
        assert (workload.version, workload.desired_phase) == (1, DesiredPhase.STOPPED)
        assert harness.cluster.active is False

    run(tmp_path, act, active=False)


def test_a_kind_that_is_not_served_yet_ends_nothing(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.is_served = False
        async with restarted(harness) as later:
            assert await harness.wanted() is DesiredPhase.RUNNING
            # Served at last, all that is there is seen, and one that is not is gone.
            harness.cluster.is_served = True
            await later.bring_definition("Established")
            await later.look()
            assert await harness.wanted() is DesiredPhase.RUNNING
        harness.cluster.is_served = False
        async with restarted(harness) as later:
            harness.cluster.object, harness.cluster.is_served = None, True
            await later.bring_definition("Established")
            await later.look()
            assert await harness.wanted() is DesiredPhase.DELETED

    run(tmp_path, act)


def test_definitions_that_may_not_be_listed_end_nothing(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.is_served = harness.cluster.may_list_definitions = False
        async with restarted(harness):
            assert await harness.wanted() is DesiredPhase.RUNNING

    run(tmp_path, act)


def test_objects_of_a_kind_that_was_uninstalled_are_gone(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.object = harness.cluster.definition = None
        harness.cluster.is_served = False
        async with restarted(harness):
            assert await harness.wanted() is DesiredPhase.DELETED

    run(tmp_path, act)


def test_a_change_of_an_object_does_not_hit_the_next_of_its_name(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.apply(uid="u-2")
        fresh = copy_of(harness.cluster.object)
        before = harness.resources.get("u-1")
        assert before is not None
        for change in (
            harness.resources.patch_spec(before, {"active": {"value": False}}),
            harness.resources.patch_spec(before, {"ingressUrl": {"value": "x"}}),
            harness.resources.set_status(before, {"phase": "Stopped"}),
            harness.resources.release(before),
        ):
            with pytest.raises(Unavailable, match="Cannot change train in runai-default in the cluster for now"):
                await change
        # As good as done: the one that was meant is gone.
        await lifecycle.delete(harness.context, CALLER, "training", "u-1")
        await harness.loop._reconcile("u-1")
        assert harness.cluster.object == fresh
        await harness.bring()
        await harness.look()
        assert await harness.wanted("u-2") is DesiredPhase.RUNNING

    run(tmp_path, act)


class Waiting(Watched):
    """Says of the workload why it waits."""

    words = ""

    async def observe(self) -> Sequence[WorkloadReport]:
        return (WorkloadReport(workload_id="u-1", run=1, retrying_because=self.words),)


def test_messages_that_change_without_an_event_are_written_too(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        engine = Waiting("u-1")
        loop = cluster_loop(harness.context, engine)
        workload = await harness.context.store.get(WORKLOADS, "u-1")
        assert workload is not None
        loop.board.put(workload, ())
        async with harness.looking():
            for engine.words in ("KAI takes no notice of it", "its namespace is somebody else's"):
                for _ in range(2):
                    await loop.cycle()
                while (harness.cluster.statuses[-1]["phase"], harness.cluster.statuses[-1]["message"]) != (
                    "Pending",
                    engine.words,
                ):
                    await harness.cluster.written.wait()

    run(tmp_path, act)


def test_a_deletion_that_had_no_effect_is_repeated(tmp_path: Path) -> None:
    """Nothing happens to the object afterwards that would remind the server of it."""

    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        harness.cluster.conflicts = 3
        async with harness.looking():
            await lifecycle.delete(harness.context, CALLER, "training", "u-1")
            await harness.cluster.deleted.wait()
        assert harness.cluster.object is None

    run(tmp_path, act)
