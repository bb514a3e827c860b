"""Roles, and the rules that give a subject a role in a scope."""

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.assets import Scope


class Role(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    description: str


ADMINISTRATOR_ROLE = Role(
    id=1,
    name="System administrator",
    description="Reads and changes everything in its scope; installation-wide also accounts and organization.",
)
RESEARCHER_ROLE = Role(
    id=2,
    name="L1 researcher",
    description="Submits workloads and manages secrets, assets and templates in the projects of its scope.",
)
ROLES = (ADMINISTRATOR_ROLE, RESEARCHER_ROLE)


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
