"""The custom resource of a workload as a cluster has it, and one to be created there.

An engine reads and writes them, `control/custom_resources/` decides about them.
"""

from typing import Any

import msgspec

from fairlead.model.clock import Millis


class CustomResource(msgspec.Struct, frozen=True, kw_only=True):
    """The custom resource of a workload, or of a policy in the older form."""

    #: The workload's id: the one that its status names or, before that, the object's uid; that of a policy is its uid.
    id: str
    #: `Kind.resource` or `Kind.older_policy`.
    kind: str = ""
    uid: str = ""
    namespace: str
    name: str
    #: The object without its status, as JSON, which is YAML too.
    text: bytes
    #: Counts the changes of its spec.
    generation: int
    #: Whether it is being deleted, and whether it has our finalizer.
    is_leaving: bool = False
    is_held: bool = False
    #: The status that we wrote last.
    status: dict[str, Any] = {}
    created_at: Millis = 0
    #: The id of the workload for which the server created it; empty if a user did. Anybody can write this.
    created_for: str = ""
    #: Whether nobody but a server has written it so far.
    is_written_by_server_only: bool = False
    #: The run whose objects exist in the cluster; 0 for none.
    run: int = 0

    @property
    def is_bound(self) -> bool:
        """Whether a server accepted it as the object of a workload; only servers write the status."""
        return bool(self.status.get("workloadId"))


class NewResource(msgspec.Struct, frozen=True, kw_only=True):
    """A custom resource to be created for a workload that came in another way."""

    workload_id: str
    #: `Kind.resource`.
    kind: str
    namespace: str
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any]
