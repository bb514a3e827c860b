"""A policy: what an administrator presets and forbids for one type of workload in one scope."""

import msgspec

from fairlead.model.records.assets import NamedRecord, Scope


class PolicyRecord(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    #: The key of its type in `kinds.policies`: `training`.
    type: str
    scope: Scope
    defaults: dict[str, object] = msgspec.field(default_factory=dict)
    rules: dict[str, object] = msgspec.field(default_factory=dict)
    #: By role, the ids of the data sources that every workload gets; the role is empty for kinds without roles.
    imposed_assets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
