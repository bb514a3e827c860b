"""The keywords of workload YAML, and suggestions for misspelled ones. Imports little, so that `explain` is fast."""

from collections.abc import Iterable
from difflib import get_close_matches

API_VERSION = "run.ai/v2alpha1"
#: The same kinds in a group of our own, for a cluster that has Run:ai's definitions.
OWN_VERSION = "workloads.fairlead.dev/v2alpha1"
#: Older kinds of resources have this version too.
OLDER_VERSION = "run.ai/v1"
#: The namespace of shared templates.
GLOBAL_NAMESPACE = "runai"
PRIORITY_LABEL, PREEMPTIBILITY_LABEL = "priorityClassName", "kai.scheduler/preemptibility"
TEMPLATE = "Template"


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the known names if there are few, or nothing."""
    names = list(known)
    lowered = {other.lower(): other for other in names}
    matches = get_close_matches(name.lower(), lowered, 1, 0.7)
    if matches:
        return f"; did you mean {lowered[matches[0]]}?"
    return f"; use one of {', '.join(names)}" if len(names) <= 16 else ""
