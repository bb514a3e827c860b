"""A template: a named spec from which workloads are submitted."""

import msgspec

from fairlead.model.records.assets import NamedRecord, Scope


class Template(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    #: The key of the workload kind in `kinds.KINDS`.
    kind: str
    scope: Scope
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    #: The workload YAML that it was written in; `spec` holds its own fields, without inherited ones.
    manifest: str = ""
    #: The assets that its workloads use, by id: `environment`, `compute` and `datasources`. Its own spec wins.
    assets: dict[str, object] = msgspec.field(default_factory=dict)
