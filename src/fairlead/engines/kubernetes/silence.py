"""What is said while KAI says nothing of pods that wait, because no scheduler runs for their pool, say. Pure.

`engine.py` asks at every change, and tells users only what has been so for `PATIENCE`.
"""

from fairlead.engines.kubernetes.observing import Held, is_waiting
from fairlead.engines.kubernetes.place import GROUP_ANNOTATION
from fairlead.engines.kubernetes.pools import pool_of, refusals_in_pool

#: Seconds. KAI looks at everything once a second; in large clusters it may take several.
PATIENCE = 20.0


def find_silence(held: Held) -> str:
    """Which part of KAI has taken no notice of a waiting pod; empty when all have been looked at."""
    groups = {group.metadata.name: group for group in held.groups}
    for pod in filter(is_waiting, held.pods):
        group = groups.get(pod.metadata.annotations.get(GROUP_ANNOTATION, ""))
        if group is None:
            return (
                f"KAI's pod grouper has made no pod group for {pod.metadata.name} in {PATIENCE:g} s; "
                "`fairlead doctor --engine kubernetes` looks whether KAI is installed"
            )
        if not refusals_in_pool(group):
            return (
                f"No KAI scheduler of node pool {pool_of(group)} has said anything of {pod.metadata.name} "
                f"in {PATIENCE:g} s; each pool needs one that runs"
            )
    return ""
