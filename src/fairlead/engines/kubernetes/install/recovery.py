"""Reads the organization of a Fairlead installation from its cluster, for a server whose database was lost.

Called by `fairlead restore --from-cluster`. Workloads are not read here: the server that starts with these records
adopts them from their custom resources.
"""

import asyncio
import os
from typing import TypeVar

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import QUEUE
from fairlead.engines.kubernetes.client.writer import ListedObjects
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, OWNER_RECORD, POOL_RECORD
from fairlead.model.errors import Refused
from fairlead.model.records.organization import Department, NodePool, Project, RecoveredOrganization

_PROJECT_ID = "run.ai/project-id"
RecordT = TypeVar("RecordT", Department, Project, NodePool)


def recover_organization(kubeconfig: str, cluster_id: str = "") -> bytes:
    """The organization as JSON. Raises Refused if the cluster has none, or several and `cluster_id` names none."""
    try:
        queues = asyncio.run(_list_queues(kubeconfig))
    except (ApiError, OSError) as error:
        raise Refused(f"The cluster cannot be read: {error_message(error)}") from error
    return msgspec.json.encode(read_organization(queues, cluster_id))


async def _list_queues(kubeconfig: str) -> list[objects.Metadata]:
    api = Api(load_access(kubeconfig, os.environ))
    try:
        listed = await api.get(QUEUE.path(), labelSelector=CLUSTER_LABEL)
    finally:
        api.close()
    return [item.metadata for item in msgspec.json.decode(listed, type=ListedObjects).items]


def read_organization(queues: list[objects.Metadata], cluster_id: str) -> RecoveredOrganization:
    """From the records that queues carry. Pure."""
    ids = sorted({queue.labels[CLUSTER_LABEL] for queue in queues if OWNER_RECORD in queue.annotations})
    if not ids:
        raise Refused("The cluster has no queues with records of a Fairlead installation; nothing can be recovered")
    if cluster_id and cluster_id not in ids:
        raise Refused(f"The cluster has nothing of installation {cluster_id}; it has {', '.join(ids)}")
    if not cluster_id and len(ids) > 1:
        raise Refused(f"The cluster has several installations; choose one with --cluster-id: {', '.join(ids)}")
    chosen = cluster_id or ids[0]
    own_queues = [
        queue for queue in queues if queue.labels[CLUSTER_LABEL] == chosen and OWNER_RECORD in queue.annotations
    ]
    projects = [queue for queue in own_queues if _PROJECT_ID in queue.labels]
    departments = [queue for queue in own_queues if _PROJECT_ID not in queue.labels]
    return RecoveredOrganization(
        cluster_id=chosen,
        departments=_read(departments, OWNER_RECORD, Department),
        projects=_read(projects, OWNER_RECORD, Project),
        node_pools=_read(own_queues, POOL_RECORD, NodePool),
    )


def _read(queues: list[objects.Metadata], annotation: str, record: type[RecordT]) -> tuple[RecordT, ...]:
    """Each record once: an owner has a queue in every pool."""
    try:
        records = [msgspec.json.decode(queue.annotations[annotation], type=record) for queue in queues]
    except (KeyError, msgspec.MsgspecError) as error:
        raise Refused(f"A queue's annotation {annotation} cannot be read: {error}") from error
    return tuple({one.id: one for one in records if getattr(one, "deleted_at", None) is None}.values())
