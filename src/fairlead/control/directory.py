"""A cache of projects, departments, node pools, nodes, the cluster, accounts and policies, which requests look up.

Filled at the start and refreshed when the store reports a change. Reads never touch the database.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fairlead.control.role_table import ROLES, resolve_role
from fairlead.model.errors import Unavailable
from fairlead.model.records.access import AccessRule, Role
from fairlead.model.records.assets import Scope
from fairlead.model.records.organization import Cluster, Department, Node, NodePool, Project
from fairlead.model.records.people import User
from fairlead.model.records.policies import PolicyRecord
from fairlead.store.base import Collection, Comparison, Query, Store, VersionedRecord, Where
from fairlead.store.collections import (
    ACCESS_RULES,
    CLUSTERS,
    DEPARTMENTS,
    NODE_POOLS,
    NODES,
    POLICIES,
    PROJECTS,
    USERS,
)

_COLLECTIONS = (CLUSTERS, DEPARTMENTS, PROJECTS, NODE_POOLS, NODES, USERS, ACCESS_RULES, POLICIES)
#: Up to so many changed nodes are read one by one.
_FEW = 100
#: What decides which policies apply in a project.
_POLICY_COLLECTIONS = (CLUSTERS, DEPARTMENTS, PROJECTS, POLICIES)

#: By the type of an account or of a rule's subject, how it is called among the subjects; users are called `user`.
_SUBJECTS = {"app": "service-account", "service-account": "service-account", "group": "group"}


def _index_rules(rules: Iterable[AccessRule]) -> dict[tuple[str, str], list[AccessRule]]:
    """By subject: there may be thousands of rules, and a caller has a few."""
    index: dict[tuple[str, str], list[AccessRule]] = {}
    for rule in rules:
        index.setdefault((_SUBJECTS.get(rule.subject_type, "user"), rule.subject_id), []).append(rule)
    return index


def _no_records() -> dict[str, dict[str, Any]]:
    return {collection.name: {} for collection in _COLLECTIONS}


@dataclass
class _CachedRecords:
    """What the directory of a server and those of its clusters share."""

    by_collection: dict[str, dict[str, Any]] = field(default_factory=_no_records)
    rules_by_subject: dict[tuple[str, str], list[AccessRule]] = field(default_factory=dict)
    #: Incremented with every reload, so that users of derived data know when it is stale.
    revision: int = 0
    #: The same, for what follows from policies and from the scopes that they are for.
    policy_revision: int = 0


class Directory:
    """All records of the organization by id. One per server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached = _CachedRecords()

    @property
    def revision(self) -> int:
        return self._cached.revision

    @property
    def policy_revision(self) -> int:
        return self._cached.policy_revision

    async def load(self) -> None:
        for collection in _COLLECTIONS:
            await self._reload(collection)

    async def refresh(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Read again what changed, as (collection, id); without an id the whole collection."""
        changed: dict[str, set[str]] = {}
        for name, id in subjects:
            changed.setdefault(name, set()).add(id)
        for collection in _COLLECTIONS:
            ids = changed.get(collection.name, ())
            if not ids:
                continue
            if collection is NODES and "" not in ids and len(ids) <= _FEW:
                await self._reload_nodes(ids)
            else:
                await self._reload(collection)

    async def _reload_nodes(self, ids: Iterable[str]) -> None:
        """There may be thousands, which change one at a time."""
        by_id = Where("id", Comparison.ONE_OF, tuple(ids))
        read = {node.id: node for node in await self._store.find(Query(collection=NODES, where=(by_id,)))}
        unchanged = {
            id: node for id, node in self._cached.by_collection[NODES.name].items() if id in read or id not in ids
        }
        nodes = unchanged | read
        # In the order in which all of them are read.
        self._keep(NODES, nodes if len(nodes) == len(unchanged) else dict(sorted(nodes.items())))

    async def _reload(self, collection: Collection[VersionedRecord]) -> None:
        records = await self._store.find(Query(collection=collection))
        self._keep(collection, {record.id: record for record in records})

    def _keep(self, collection: Collection[VersionedRecord], records: dict[str, Any]) -> None:
        cached = self._cached
        cached.by_collection[collection.name] = records
        if collection is ACCESS_RULES:
            cached.rules_by_subject = _index_rules(self.access_rules.values())
        cached.revision += 1
        if collection in _POLICY_COLLECTIONS:
            cached.policy_revision += 1

    @property
    def has_leaving(self) -> bool:
        """Whether a project or department is being deleted."""
        owners = (*self.projects.values(), *self.departments.values())
        return any(owner.deleted_at is not None for owner in owners)

    def for_cluster(self, cluster_id: str) -> "ClusterDirectory":
        """The directory of one cluster."""
        return ClusterDirectory(self._store, self._cached, cluster_id)

    def cluster_of(self, node: Node) -> str:
        """The id of the cluster that has the node."""
        return node.cluster_id or self.first_cluster.id

    def cluster_of_scope(self, scope: Scope) -> str:
        """The id of the cluster that a scope is in; the first one for the whole installation."""
        if scope.type == "cluster" and scope.id:
            return scope.id
        owners: dict[str, Mapping[str, Department]] = {"project": self.projects, "department": self.departments}
        owner = owners.get(scope.type, {}).get(scope.id)
        return owner.cluster_id if owner else self.first_cluster.id

    def cluster_of_record(self, record: object) -> str:
        """The id of the cluster that a record belongs to; empty if it is of the whole installation."""
        if isinstance(record, Cluster):
            return record.id
        scope = getattr(record, "scope", None)
        if isinstance(scope, Scope):
            return self.cluster_of_scope(scope) if scope.type in ("cluster", "department", "project") else ""
        cluster_id: str | None = getattr(record, "cluster_id", None)
        # A node of the first cluster names none.
        return "" if cluster_id is None else cluster_id or self.first_cluster.id

    @property
    def cluster(self) -> Cluster:
        """The first cluster; in the directory of one cluster, that cluster."""
        return self.first_cluster

    @property
    def cluster_id(self) -> str:
        return self.cluster.id

    @property
    def first_cluster(self) -> Cluster:
        """The cluster that came with the installation; its record also has what belongs to the whole of it."""
        clusters = self.clusters
        return next(iter(clusters.values())) if len(clusters) == 1 else min(clusters.values(), key=age_key)

    @property
    def clusters(self) -> dict[str, Cluster]:
        return self._cached.by_collection[CLUSTERS.name]

    @property
    def departments(self) -> dict[str, Department]:
        return self._cached.by_collection[DEPARTMENTS.name]

    @property
    def projects(self) -> dict[str, Project]:
        return self._cached.by_collection[PROJECTS.name]

    @property
    def node_pools(self) -> dict[str, NodePool]:
        return self._cached.by_collection[NODE_POOLS.name]

    @property
    def nodes(self) -> dict[str, Node]:
        return self._cached.by_collection[NODES.name]

    @property
    def users(self) -> dict[str, User]:
        """Users, applications and access keys."""
        return self._cached.by_collection[USERS.name]

    @property
    def access_rules(self) -> dict[str, AccessRule]:
        return self._cached.by_collection[ACCESS_RULES.name]

    def rules_of(self, user: User) -> list[AccessRule]:
        """The access rules of an account: by its id, by its name, and by its groups."""
        subject = _SUBJECTS.get(user.type, "user")
        keys = {(subject, user.id), (subject, user.name), *(("group", group) for group in user.groups)}
        return [rule for key in keys for rule in self._cached.rules_by_subject.get(key, ())]

    @property
    def roles(self) -> dict[int, Role]:
        """All roles, predefined and custom."""
        custom = [resolve_role(role) for role in self.first_cluster.roles]
        return {role.id: role for role in (*ROLES, *custom)}

    @property
    def policies(self) -> dict[str, PolicyRecord]:
        return self._cached.by_collection[POLICIES.name]


_Record = TypeVar("_Record", Department, Project, NodePool, Node)


class ClusterDirectory(Directory):
    """The directory as the loop of one cluster sees it: only its own departments, projects, node pools and nodes."""

    def __init__(self, store: Store, cached: _CachedRecords, cluster_id: str) -> None:
        self._store = store
        self._cached = cached
        self._cluster_id = cluster_id
        self._filtered: dict[str, tuple[int, dict[str, Any]]] = {}

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    @property
    def cluster(self) -> Cluster:
        """The cluster itself; the first one if it is being removed."""
        return self.clusters.get(self._cluster_id) or self.first_cluster

    def _own(self, collection: Collection[_Record]) -> dict[str, _Record]:
        """Filtered once per revision; not at all as long as there is one cluster."""
        records: dict[str, _Record] = self._cached.by_collection[collection.name]
        if len(self.clusters) <= 1:
            return records
        known = self._filtered.get(collection.name)
        if known is None or known[0] != self.revision:
            first = self.first_cluster.id
            own = {id: one for id, one in records.items() if (one.cluster_id or first) == self._cluster_id}
            known = self._filtered[collection.name] = (self.revision, own)
        return known[1]

    @property
    def departments(self) -> dict[str, Department]:
        return self._own(DEPARTMENTS)

    @property
    def projects(self) -> dict[str, Project]:
        return self._own(PROJECTS)

    @property
    def node_pools(self) -> dict[str, NodePool]:
        return self._own(NODE_POOLS)

    @property
    def nodes(self) -> dict[str, Node]:
        return self._own(NODES)


def age_key(cluster: Cluster) -> tuple[bool, int, str]:
    """Sorts the first cluster first, then the others by age."""
    return cluster.is_added, cluster.created_at, cluster.id


class Refresher:
    """Keeps a directory up to date on a server without a loop; otherwise the loop does it.

    Changes that could not be read because the store was unavailable are read as soon as it is available again.
    """

    def __init__(self, directory: Directory, pause: float = 1.0) -> None:
        self._directory = directory
        self._pause = pause
        self._changed: set[tuple[str, str]] = set()
        self._task: asyncio.Task[None] | None = None

    def on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """The store calls this after every commit."""
        self._changed.update(subjects)
        if self._changed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._changed:
            changed, self._changed = self._changed, set()
            try:
                await self._directory.refresh(changed)
            except Unavailable:
                self._changed |= changed
                await asyncio.sleep(self._pause)
