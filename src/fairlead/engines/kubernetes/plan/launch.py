"""The launch choices of a workload whose objects exist: they stay as they are. Pure."""

import msgspec

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.pod_group import find_fairlead_group
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, run_of
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.labels import labelled_pool


def find_launch_choices(workload: DesiredWorkload, seen: ObservedWorkload) -> LaunchChoices | None:
    """The choices with which this run was launched; None if it has no controller in the cluster."""
    own = find_fairlead_group(group for group in seen.groups if run_of(group.metadata) == workload.run)
    controllers = [runner.metadata for runner in seen.runners] + ([own.metadata] if own is not None else [])
    existing = next((metadata for metadata in controllers if run_of(metadata) == workload.run), None)
    if existing is None:
        return None
    pool = labelled_pool(own.metadata.labels) if own is not None else ""
    return msgspec.structs.replace(launch_choices_of(existing), kinds=seen.kinds, pool=pool)
