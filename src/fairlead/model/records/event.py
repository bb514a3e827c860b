"""Events in order: one append-only list, from which watch streams and histories are read."""

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.named_message import NamedMessage, VisibleProjects, choose_message


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened to a record. `revision` is 0 until the store assigns one."""

    revision: int = 0
    at: Millis
    #: The collection and id of the record it is about, e.g. `workloads` and the workload's id.
    subject: str
    subject_id: str
    project_id: str = ""
    #: `Normal` or `Warning`, as in Kubernetes.
    type: str = "Normal"
    reason: str
    message: str = ""
    #: The message with the name of another project's workload.
    named: NamedMessage | None = None
    #: Set when the event is a change of phase.
    phase: str = ""
    #: The pod it is about, if it is about one.
    pod_id: str = ""
    pod_name: str = ""
    #: The workload's revision that it is about, if it has any.
    revision_id: str = ""
    #: What it waits for since then: the code of the scheduler's reason.
    blocker: str = ""
    #: The component that reports it: `api`, `scheduler`, `engine`.
    source: str = "api"

    def message_for(self, visible: VisibleProjects) -> str:
        return choose_message(self.message, self.named, visible)


class AuditLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who requested what, and the result. Kept longer than events. The store assigns `number`."""

    number: int = 0
    at: Millis
    caller: str
    operation: str
    subject: str
    subject_id: str
    request_id: str = ""
    details: str = ""
    #: `user` or `app`.
    caller_type: str = "user"
    #: `create`, `update`, `delete` or `sign-in`, whichever the operation is.
    action: str = ""
    subject_name: str = ""
    #: Empty for what is of no single cluster.
    cluster_id: str = ""
    #: What a change replaced: member → (before, after). Secrets are never in it.
    changes: dict[str, tuple[object, object]] = {}
    #: `Succeeded` or `Failed`, and the status of the answer if there is one.
    result: str = "Succeeded"
    status: int = 0
    #: Where the request came from and what it was.
    address: str = ""
    method: str = ""
    url: str = ""
