"""The pod sets of a workload whose manifest itself is applied to a cluster. Pure; called by review and driver."""

import msgspec
from msgspec.structs import replace

from fairlead.control.decide.expand import expand_spec
from fairlead.formats.foreign.manifests import read_object
from fairlead.model.dialect import Dialect
from fairlead.model.pods.container_fields import NamedValue
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.workload import Workload


def podsets_of_other_templates(workload: Workload) -> tuple[PodSet, ...]:
    """One for each pod template besides the first, which is the spec of the workload. All have the same role."""
    return tuple(expand_spec(workload.kind, bytes(spec)).podsets[0] for spec in other_specs_of(workload))


def podset_of_metadata(workload: Workload, podset: PodSet) -> PodSet:
    """The pod set with the labels and annotations of the object itself, so that the engine can judge them."""
    manifest: dict[str, dict[str, dict[str, object]]] = msgspec.json.decode(workload.manifest)
    metadata = manifest.get("metadata") or {}
    labels, annotations = (
        tuple(NamedValue(name=name, value=str(value)) for name, value in (metadata.get(member) or {}).items())
        for member in ("labels", "annotations")
    )
    fields = replace(podset.container.fields, labels=labels, annotations=annotations)
    return replace(podset, member="metadata", container=replace(podset.container, fields=fields))


def other_specs_of(workload: Workload) -> tuple[msgspec.Raw, ...]:
    """The specs of these templates; those of the manifest, if an older version wrote the record."""
    if workload.other_specs or workload.dialect is not Dialect.OBJECT:
        return workload.other_specs
    _, *others = read_object(msgspec.json.decode(workload.manifest))
    return tuple(msgspec.Raw(msgspec.json.encode(each.spec)) for each in others)
