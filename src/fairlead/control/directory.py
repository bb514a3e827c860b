"""Projects, departments, node pools, nodes, the cluster and people, kept in memory because every request looks them up.

Filled at start and refreshed when the store says that one of them changed; reads never touch the database.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.model.errors import Unavailable
from fairlead.model.records.access import AccessRule
from fairlead.model.records.organization import Cluster, Department, Node, NodePool, Project, User
from fairlead.store.base import Collection, Query, Store, VersionedRecord
from fairlead.store.collections import ACCESS_RULES, CLUSTERS, DEPARTMENTS, NODE_POOLS, NODES, PROJECTS, USERS

_COLLECTIONS = (CLUSTERS, DEPARTMENTS, PROJECTS, NODE_POOLS, NODES, USERS, ACCESS_RULES)


class Directory:
    """All org records by id. One per server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, dict[str, Any]] = {collection.name: {} for collection in _COLLECTIONS}
        #: One more with every reading, so that whoever keeps something derived knows when it is old.
        self.revision = 0

    async def load(self) -> None:
        for collection in _COLLECTIONS:
            await self._reload(collection)

    async def refresh(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Read again those of ours that changed."""
        names = {name for name, _ in subjects}
        for collection in _COLLECTIONS:
            if collection.name in names:
                await self._reload(collection)

    async def _reload(self, collection: Collection[VersionedRecord]) -> None:
        records = await self._store.find(Query(collection=collection))
        self._records[collection.name] = {record.id: record for record in records}
        self.revision += 1

    @property
    def has_leaving(self) -> bool:
        """Whether a project or department is marked to go as soon as nothing of it is left."""
        owners = (*self.projects.values(), *self.departments.values())
        return any(owner.deleted_at is not None for owner in owners)

    @property
    def cluster(self) -> Cluster:
        """The one cluster of this installation."""
        return next(iter(self.clusters.values()))

    @property
    def clusters(self) -> dict[str, Cluster]:
        return self._records[CLUSTERS.name]

    @property
    def departments(self) -> dict[str, Department]:
        return self._records[DEPARTMENTS.name]

    @property
    def projects(self) -> dict[str, Project]:
        return self._records[PROJECTS.name]

    @property
    def node_pools(self) -> dict[str, NodePool]:
        return self._records[NODE_POOLS.name]

    @property
    def nodes(self) -> dict[str, Node]:
        return self._records[NODES.name]

    @property
    def users(self) -> dict[str, User]:
        """People and applications alike."""
        return self._records[USERS.name]

    @property
    def access_rules(self) -> dict[str, AccessRule]:
        return self._records[ACCESS_RULES.name]


class Refresher:
    """Keeps a directory up to date on a server without a loop; with one, the loop does it.

    What changed while the store could not be read is read as soon as it can be.
    """

    def __init__(self, directory: Directory, pause: float = 1.0) -> None:
        self._directory = directory
        self._pause = pause
        self._changed: set[tuple[str, str]] = set()
        self._task: asyncio.Task[None] | None = None

    def on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """What the store calls after every commit."""
        self._changed.update(subjects)
        if self._changed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._changed:
            taken, self._changed = self._changed, set()
            try:
                await self._directory.refresh(taken)
            except Unavailable:
                self._changed |= taken
                await asyncio.sleep(self._pause)
