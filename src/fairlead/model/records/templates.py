"""A workload's spec kept under a name, from which workloads are submitted with changes."""

from typing import Any

import msgspec

from fairlead.model.records.assets import NamedRecord, Scope


class Template(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    #: The key of the workload kind in `kinds.KINDS`.
    kind: str
    scope: Scope
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    #: The workload YAML that it was written as; `spec` is what that says by itself, without what it inherits.
    manifest: str = ""
    #: Assets whose members its workloads get, below its own: `environment`, `compute` and `datasources`, by id.
    assets: dict[str, Any] = msgspec.field(default_factory=dict)
