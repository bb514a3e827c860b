"""The kinds of workloads, one file each. To add one, add its file and its line in `KINDS`."""

from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.distributed_inference import DISTRIBUTED_INFERENCE
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind
from fairlead.kinds.training import TRAINING
from fairlead.kinds.workspace import WORKSPACE

KINDS: dict[str, Kind] = {
    kind.key: kind for kind in (TRAINING, WORKSPACE, DISTRIBUTED, INFERENCE, DISTRIBUTED_INFERENCE)
}
#: The kinds of workloads that assets and templates can be meant for; several kinds may share a word.
MEANT_FOR: tuple[str, ...] = tuple(dict.fromkeys(kind.meant_for for kind in KINDS.values()))
