"""Roles, and the rules that give a subject a role in a scope."""

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.assets import Scope


class Role(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    description: str
    #: What it allows: a type of resource and an action, such as `project:update`.
    permissions: frozenset[str]
    #: For a role that an administrator made: what it is made of, whether it has an effect, when and by whom.
    permission_sets: tuple[str, ...] = ()
    enabled: bool = True
    is_custom: bool = False
    created_at: Millis = 0
    created_by: str = ""
    updated_at: Millis = 0


class CustomRole(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A role that an administrator made of permission sets. The cluster's record holds it."""

    id: int
    name: str
    description: str
    #: Ids of permission sets.
    permission_sets: tuple[str, ...]
    enabled: bool = True
    created_at: Millis = 0
    created_by: str = ""
    updated_at: Millis = 0


class AccessRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One role for one subject in one scope and everything below it. Rules only add permissions."""

    #: A number as text.
    id: str
    version: int
    #: A user's or service account's id or name, or a group's name.
    subject_id: str
    #: `user`, `group`, `service-account` or `app`.
    subject_type: str
    role_id: int
    scope: Scope
    created_at: Millis = 0
    created_by: str = ""
