"""The pod sets of a workload whose manifest itself is applied to a cluster. Pure; called by the cluster driver."""

import msgspec

from fairlead.control.decide.expand import expand_spec
from fairlead.formats.foreign.manifests import OBJECT_DIALECT, read_object
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.workload import Workload


def podsets_of_other_templates(workload: Workload) -> tuple[PodSet, ...]:
    """One for each pod template besides the first, which is the spec of the workload. All have the same role."""
    if workload.dialect != OBJECT_DIALECT:
        return ()
    _, *others = read_object(msgspec.json.decode(workload.manifest))
    return tuple(expand_spec(workload.kind, msgspec.json.encode(each.spec)).podsets[0] for each in others)
