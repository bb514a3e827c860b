"""What KAI writes into an evicted pod, without the names of other projects. Pure.

Called by `pods.py`. A project has a namespace of its own, and KAI's message names both workloads with their namespaces.
"""

import re

import msgspec

from fairlead.engines.base import ClusterPod
from fairlead.model.records.named_message import OTHER_WORKLOAD, NamedMessage

_PREEMPTED = re.compile(r"Pod ([^/\s]*)/(\S+) was preempted by (?:\w+ priority )?workload ([^/\s]*)/")


def find_named(message: str) -> NamedMessage | None:
    """The message as one that names a workload of another project; None if it names none."""
    preempted = _PREEMPTED.search(message)
    return NamedMessage(message) if preempted is not None and preempted[1] != preempted[3] else None


def hide_names(seen: ClusterPod) -> ClusterPod:
    """The pod with a message that all readers of its workload may see."""
    preempted = _PREEMPTED.search(seen.eviction)
    if preempted is None or find_named(seen.eviction) is None:
        return seen
    general = f"Pod {preempted[1]}/{preempted[2]} was preempted by {OTHER_WORKLOAD}."
    hidden: ClusterPod = msgspec.structs.replace(seen, eviction=general, message=general)
    return hidden
