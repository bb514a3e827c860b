"""A request to run a workload, independent of its dialect: formats make it, `control` submits it."""

import msgspec

from fairlead.model.dialect import Dialect
from fairlead.model.spec.fields import Spec


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    #: The id of the workload; empty to have one generated.
    id: str = ""
    #: The key of the kind in `kinds.KINDS`.
    kind: str
    name: str
    use_given_name_as_prefix: bool = False
    #: Whether it should run at once; otherwise it is created suspended.
    is_active: bool = True
    project_id: str
    cluster_id: str
    template_id: str | None = None
    #: The kind's spec (an instance of `Kind.spec`): unset, null and a value differ in it.
    spec: Spec
    #: The spec before its template was merged into it; None if it has none.
    sent: Spec | None = None
    dialect: Dialect = Dialect.REST
    #: The Kubernetes manifest that it was read from, as JSON.
    manifest: str = ""
    #: The admitted specs of the pod templates of that manifest besides the first, as JSON.
    other_specs: tuple[msgspec.Raw, ...] = ()
    #: For contradictions in the older dialect: (field, what was done about it).
    remarks: tuple[tuple[str, str], ...] = ()
    #: The id of its caller's stored environment, which its pods take over; empty for none.
    caller_environment: str = ""
    #: For an object applied to a cluster: the digest of each member of its spec.
    applied: dict[str, str] = {}
