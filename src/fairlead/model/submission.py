"""A request to run something, after its dialect has been read: what every format makes and `control` takes."""

from typing import Any

import msgspec


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    #: The id that its workload is to have; empty for a new one.
    id: str = ""
    #: The key of the kind in `kinds.KINDS`.
    kind: str
    name: str
    use_given_name_as_prefix: bool = False
    #: Whether it is to run at once; otherwise it is suspended from its beginning.
    is_active: bool = True
    project_id: str
    cluster_id: str
    template_id: str | None = None
    #: The kind's spec (an instance of `Kind.spec`): unset, null and given are three different things in it.
    spec: Any
    #: `rest`, `rest-older`, `workload-yaml` or `cli`.
    dialect: str = "rest"
    #: What the dialect could not carry over as sent, for the older page's contradictions: (field, what was done).
    remarks: tuple[tuple[str, str], ...] = ()
    #: Of an object of a cluster: what tells each member of its spec from another, by name.
    applied: dict[str, str] = {}
