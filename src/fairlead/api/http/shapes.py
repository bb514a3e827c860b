"""The shapes that bodies and answers of several rooms are made of. Nothing here reads or runs."""

import uuid
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.api.http.operation import Parameter
from fairlead.model.records.event import Event

Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Uuid = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
ScopeType = Literal["system", "tenant", "cluster", "department", "project"]

WORKLOAD_ID = Parameter(
    name="workloadId",
    place="path",
    schema={"type": "string", "format": "uuid"},
    description="The workload's id, as given when it was created.",
)


class Shape(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all views: camel case, fields that are not set are left out."""


class Accepted(msgspec.Struct):
    """The request was recorded and is being carried out."""

    code: int
    message: str


class Count(msgspec.Struct):
    count: int


class InvolvedObject(Shape):
    uid: Uuid
    kind: str
    name: str
    namespace: str


class EventView(Shape):
    """Something that happened to the workload or to one of its pods."""

    created_at: Instant
    type: str
    cluster_id: Uuid
    message: str
    id: Uuid
    reason: str
    source: str
    involved_object: InvolvedObject


class HistoryMeta(Shape):
    creation_timestamp: Instant
    type: Literal["Event", "PhaseUpdate"]


class PhaseUpdate(Shape):
    phase: str
    phase_message: str


class HistorySpec(Shape):
    event: EventView | UnsetType = UNSET
    phase_update: PhaseUpdate | UnsetType = UNSET


class HistoryRecord(Shape):
    """One step of a workload's history: an event, or a change of phase."""

    meta: HistoryMeta
    spec: HistorySpec


class HistoryList(Shape):
    records: list[HistoryRecord]
    next: int | UnsetType = UNSET


def event_uuid(cluster_id: str, event: Event) -> str:
    """The API wants a UUID that never changes, so it is derived from the cluster and the revision."""
    return str(uuid.uuid5(uuid.UUID(cluster_id), str(event.revision)))
