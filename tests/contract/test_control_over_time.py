"""What time alone brings, and what is refused when there is too much: control on a real store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings
from fairlead.control.directory import Directory
from fairlead.control.loop.housekeeping import Housekeeper
from fairlead.control.workloads.submit import submit
from fairlead.kinds import KINDS
from fairlead.model.clock import DAY
from fairlead.model.errors import Invalid, Refused, TooMuch
from fairlead.model.records.organization import RecoveredOrganization
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.revision import Revision
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put
from fairlead.store.collections import PODS, REVISIONS, WORKLOADS
from fairlead.store.sqlite import open_sqlite
from tests import builders

NOW = 100 * DAY
CALLER = Caller("admin@fairlead.local", "1", is_administrator=True)


def in_store(
    tmp_path: Path, test: Callable[[Context], Awaitable[None]], settings: ControlSettings | None = None
) -> None:
    async def run() -> None:
        store = await open_sqlite(tmp_path / "fairlead.db")
        numbers = iter(range(10_000))
        context = Context(
            store=store,
            clock=lambda: NOW,
            directory=Directory(store),
            sessions=None,
            settings=settings or ControlSettings(),
            new_id=lambda: f"00000000-0000-7000-8000-{next(numbers):012d}",
            new_suffix=lambda: f"s{next(numbers):04d}",
        )
        await ensure_defaults(context)
        try:
            await test(context)
        finally:
            await store.close()

    asyncio.run(run())


async def _nothing(*_: Any) -> None:
    return None


def test_a_deleted_record_is_purged_after_its_time_with_its_pods_and_logs(tmp_path: Path) -> None:
    dropped: list[str] = []

    async def drop_logs(pods: list[str]) -> None:
        dropped.extend(pods)

    async def test(context: Context) -> None:
        deleted = {"desired_phase": DesiredPhase.DELETED, "phase": Phase.DELETING, "gone": True}
        old = builders.workload("old", deleted_at=NOW - 14 * DAY, **deleted)
        fresh = builders.workload("fresh", deleted_at=NOW - 13 * DAY, **deleted)
        pod = builders.pod("old-0-0", workload_id=old.id)
        revision = Revision(
            id="revision", version=1, workload_id=old.id, project_id="1", number=1, name="old-00001", spec=old.spec
        )
        writes = (Put(WORKLOADS, old), Put(WORKLOADS, fresh), Put(PODS, pod), Put(REVISIONS, revision))
        await context.store.commit(Change(writes=writes))
        await Housekeeper(context, _nothing, drop_logs).purge(NOW)
        assert await context.store.get(WORKLOADS, old.id) is None
        assert await context.store.get(PODS, pod.id) is None
        assert await context.store.get(REVISIONS, revision.id) is None
        assert await context.store.get(WORKLOADS, fresh.id) == fresh
        assert dropped == [pod.id]

    in_store(tmp_path, test)


def test_finished_workloads_are_deleted_when_they_are_due_and_the_next_time_is_known(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        due = builders.workload("due", phase=Phase.COMPLETED, delete_at=NOW)
        later = builders.workload("later", phase=Phase.FAILED, delete_at=NOW + 5)
        kept = builders.workload("kept", phase=Phase.COMPLETED)
        await context.store.commit(Change(writes=tuple(Put(WORKLOADS, w) for w in (due, later, kept))))
        next_due = await Housekeeper(context, _nothing, _nothing).delete_due(NOW)
        assert next_due == later.delete_at
        deleted = await context.store.get(WORKLOADS, due.id)
        assert deleted is not None
        assert (deleted.desired_phase, deleted.deleted_at) == (DesiredPhase.DELETED, NOW)
        assert await context.store.get(WORKLOADS, kept.id) == kept

    in_store(tmp_path, test)


def _submission(context: Context, name: str, **members: Any) -> Submission:
    kind = next(iter(KINDS.values()))
    return Submission(
        kind=kind.key,
        name=name,
        project_id="1",
        cluster_id=context.directory.cluster.id,
        spec=kind.spec(image="x", command="true"),
        **members,
    )


def test_too_many_open_workloads_of_a_project_are_put_off(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await submit(context, CALLER, _submission(context, "first"))
        context.open_workloads["1"] = 1
        with pytest.raises(TooMuch) as caught:
            await submit(context, CALLER, _submission(context, "second"))
        assert caught.value.retry_after_seconds > 0

    in_store(tmp_path, test, ControlSettings(max_open_workloads=1))


def test_a_taken_name_is_refused_and_a_prefix_finds_another(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await submit(context, CALLER, _submission(context, "twin"))
        with pytest.raises(Invalid) as caught:
            await submit(context, CALLER, _submission(context, "twin"))
        assert [issue.field for issue in caught.value.issues] == ["name"]
        made = await submit(context, CALLER, _submission(context, "twin", use_given_name_as_prefix=True))
        assert made.requested_name == "twin"
        assert made.name.startswith("twin-s")

    in_store(tmp_path, test)


def test_what_was_created_after_a_backup_is_added_from_the_cluster(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await ensure_defaults(context)
        directory = context.directory
        [known] = directory.projects.values()
        renamed = msgspec.structs.replace(known, name="renamed")
        later = msgspec.structs.replace(known, id="7", version=3, name="later")
        twin = msgspec.structs.replace(known, id="8")
        recovered = RecoveredOrganization(
            cluster_id=directory.cluster.id, departments=(), projects=(renamed, later, twin), node_pools=()
        )
        await ensure_defaults(context, recovered=recovered)
        assert directory.projects == {known.id: known, "7": msgspec.structs.replace(later, version=1)}
        await ensure_defaults(context, recovered=recovered)
        assert set(directory.projects) == {known.id, "7"}
        with pytest.raises(Refused, match="belong to installation other"):
            await ensure_defaults(context, recovered=msgspec.structs.replace(recovered, cluster_id="other"))

    in_store(tmp_path, test)


def test_records_belong_to_the_engine_that_was_first(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await ensure_defaults(context, "local")
        await ensure_defaults(context, "local")
        with pytest.raises(Refused, match=r"belong to another engine than `--engine kubernetes`.*--data-dir"):
            await ensure_defaults(context, "kubernetes")

    in_store(tmp_path, test)
