"""Priority classes by name and value, the categories of workloads, and how preemptibility follows from priorities."""

#: The seven current classes and the four older names that clients still send.
PRIORITIES: dict[str, int] = {
    "very-low": 25,
    "low": 40,
    "medium-low": 65,
    "medium": 80,
    "medium-high": 90,
    "high": 125,
    "very-high": 150,
    "train": 50,
    "interactive-preemptible": 75,
    "build": 100,
    "inference": 125,
}

#: The current classes, which are suggested.
CURRENT_PRIORITIES = tuple(PRIORITIES)[:7]

CATEGORIES: dict[str, str] = {
    "Build": "Interactive work: notebooks and development sessions.",
    "Train": "Unattended work that runs to completion.",
    "Deploy": "Services, which run until they are stopped.",
}

#: From this priority on, a workload without an explicit preemptibility cannot be preempted.
NON_PREEMPTIBLE_FROM = 100


def is_preemptible(priority: int, preemptibility: str | None) -> bool:
    """An explicit value wins; otherwise the priority decides."""
    if preemptibility is not None:
        return preemptibility == "preemptible"
    return priority < NON_PREEMPTIBLE_FROM
