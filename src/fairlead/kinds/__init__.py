"""The kinds of workload: one file each, and here the list of them. To add one, add its file and its line."""

from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.distributed_inference import DISTRIBUTED_INFERENCE
from fairlead.kinds.inference import INFERENCE
from fairlead.kinds.kind import Kind
from fairlead.kinds.training import TRAINING
from fairlead.kinds.workspace import WORKSPACE

KINDS: dict[str, Kind] = {
    kind.key: kind for kind in (TRAINING, WORKSPACE, DISTRIBUTED, INFERENCE, DISTRIBUTED_INFERENCE)
}
#: What assets and templates can be meant for; kinds may share a word.
MEANT_FOR: tuple[str, ...] = tuple(dict.fromkeys(kind.meant_for for kind in KINDS.values()))
