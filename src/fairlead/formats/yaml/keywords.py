"""The fixed words of workload YAML, and how a misspelt word is met. Light, so that `explain` starts quickly."""

from collections.abc import Iterable
from difflib import get_close_matches

API_VERSION = "run.ai/v2alpha1"
#: Older kinds of resource came in this version too.
OLDER_VERSION = "run.ai/v1"
#: Where templates of everybody stand.
GLOBAL_NAMESPACE = "runai"
PRIORITY_LABEL, PREEMPTIBILITY_LABEL = "priorityClassName", "kai.scheduler/preemptibility"
TEMPLATE = "Template"


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the known names where they are few, or nothing."""
    names = list(known)
    lowered = {other.lower(): other for other in names}
    found = get_close_matches(name.lower(), lowered, 1, 0.7)
    if found:
        return f"; did you mean {lowered[found[0]]}?"
    return f"; known are {', '.join(names)}" if len(names) <= 16 else ""
