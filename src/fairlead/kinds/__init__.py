"""The kinds of workloads, one file each. To add one, add its file and its line in `KINDS`.

Everything else walks `KINDS`: routes, commands, schemas, custom resources. No other package names a kind.
"""

from functools import cache

from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.distributed_inference import DISTRIBUTED_INFERENCE
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind
from fairlead.kinds.training import TRAINING
from fairlead.kinds.workspace import WORKSPACE
from fairlead.model.spec.fields import fields_of
from fairlead.model.spec.pod_fields import PodFields

KINDS: dict[str, Kind] = {
    kind.key: kind for kind in (TRAINING, WORKSPACE, DISTRIBUTED, INFERENCE, DISTRIBUTED_INFERENCE)
}
#: The kinds of workloads that assets and templates can be meant for; several kinds may share a word.
MEANT_FOR: tuple[str, ...] = tuple(dict.fromkeys(kind.meant_for for kind in KINDS.values()))


@cache
def role_members() -> frozenset[str]:
    """The members of all specs, by REST name, that are the spec of the pods of one role."""
    return frozenset(
        field.rest
        for kind in KINDS.values()
        for field in fields_of(kind.spec)
        if field.struct is not None and issubclass(field.struct, PodFields)
    )
