"""Whether objects are in the cluster as desired, so that nothing need be sent, as after a start. Pure.

Controllers are watched, and carry a digest of the objects with which they were applied. Other objects are listed once
when the server starts: whether they exist and, of copies, what they contain.
"""

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import (
    Manifest,
    controller_by_key,
    is_controller,
    path_of,
    resource_of,
)
from fairlead.engines.kubernetes.observe.workload import run_of
from fairlead.engines.kubernetes.render.labels import DIGEST
from fairlead.engines.kubernetes.render.workload import RenderedObjects

#: The objects that are not watched, by path, with a hash of their data, as they were when the server started.
Survey = Mapping[str, int]


class ExistingObjects(msgspec.Struct, frozen=True):
    #: The digests of the controllers of this run, by path.
    digests: dict[str, str]
    survey: Survey


def data_hash(data: Mapping[str, str] | None) -> int:
    """Tells a copy from another one of the same name, within this process."""
    return hash(frozenset((data or {}).items()))


def find_digests(controllers: Iterable[tuple[str, objects.Metadata]], run: int) -> dict[str, str]:
    """The digests of the controllers of this run, given as (kind, metadata), which are not being deleted."""
    return {
        controller_by_key(kind).path(metadata.namespace, metadata.name): metadata.annotations.get(DIGEST, "")
        for kind, metadata in controllers
        if run_of(metadata) == run and metadata.deletion_timestamp is None
    }


def digest_of(rendered: RenderedObjects) -> str:
    """Owners do not count: the custom resource of a workload may be created after its other objects."""
    return _hash([_without_owners(one) for one in (*rendered.claims, *rendered.runners, *rendered.services)])


def digest_manifest(manifest: Manifest) -> str:
    """Of an object that stands alone. It tells that a member is no longer wanted, which `is_contained` cannot see."""
    return _hash(manifest)


def _hash(content: object) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:32]


def _without_owners(manifest: Manifest) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "ownerReferences"}
    return {**manifest, "metadata": metadata}


def with_digest(controller: Manifest, digest: str) -> Manifest:
    metadata = controller["metadata"]
    annotations = {**metadata.get("annotations", {}), DIGEST: digest}
    return {**controller, "metadata": {**metadata, "annotations": annotations}}


def is_contained(manifest: Manifest, stored: Manifest) -> bool:
    """Whether a stored object has everything of a manifest. Items of a list do not tell their version and kind."""
    return all(_has(stored.get(name), value) for name, value in manifest.items() if name not in ("apiVersion", "kind"))


def _has(stored: object, wanted: object) -> bool:
    if not isinstance(wanted, dict):
        return bool(stored == wanted)
    return all(isinstance(stored, dict) and _has(stored.get(name), value) for name, value in wanted.items())


def is_up_to_date(existing: ExistingObjects, digest: str, manifests: Iterable[Manifest]) -> bool:
    """Whether applying all of them would change nothing."""
    watched: dict[str, str] = {}
    for manifest in manifests:
        path = path_of(manifest)
        if is_controller(resource_of(manifest)):
            watched[path] = digest
        elif existing.survey.get(path) != data_hash(manifest.get("data")):
            return False
    return watched == existing.digests
