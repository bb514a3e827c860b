"""The records of notifications: who wants to know what, and what is to be delivered."""

import msgspec

from fairlead.model.clock import Millis


class NotificationRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user wants to be told about, and where."""

    id: str
    version: int
    owner_id: str
    owner_name: str
    #: The project whose workloads it is about; empty for the owner's own workloads in all projects.
    project_id: str = ""
    #: Some of `NOTIFIED` in `control/notifications/messages.py`.
    on: tuple[str, ...]
    #: `webhook`, `slack` or `email`.
    channel: str
    #: The mail address; for the others the host of the URL, which itself is a secret.
    target: str
    #: The URL, and the key that signs webhooks, encrypted.
    sealed: str = ""
    #: The text of a message, with `$` before the names of its parts; empty for the usual one.
    template: str = ""
    #: How long a workload may wait before that is told.
    waiting: Millis = 0
    created_at: Millis


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message for one rule, until it was sent or given up. Its id is derived from what it is about."""

    id: str
    version: int
    rule_id: str
    owner_id: str
    project_id: str
    event: str
    workload_id: str
    workload_name: str
    #: What is sent, as JSON.
    body: str
    created_at: Millis
    #: When it is sent next; None if it was sent or given up.
    next_at: Millis | None = None
    attempts: int = 0
    sent_at: Millis | None = None
    #: Why the last attempt failed.
    error: str = ""


class NotificationPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far deliveries were made: the last event, or the projects that used their quota at the last look."""

    id: str
    version: int
    revision: int = 0
    projects: tuple[str, ...] = ()
