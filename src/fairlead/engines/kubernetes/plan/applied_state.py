"""Whether a workload stands in the cluster as it is wished already, so that nothing need be sent after a start. Pure.

What makes pods is watched, and carries a digest of what was applied. All else is listed once, when the server starts:
whether it is there, and of copies what they hold.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.objects import Metadata
from fairlead.engines.kubernetes.client.resources import POD_GROUP, RUNNERS, path_of, resource_of
from fairlead.engines.kubernetes.observe.report import run_of
from fairlead.engines.kubernetes.render.workload import RenderedObjects

#: On what makes pods: a digest of the objects with which it was applied.
DIGEST = "fairlead/applied"
_BY_KIND = {resource.kind: resource for resource in (*RUNNERS, POD_GROUP)}

#: What there was at the start of objects that are not watched, by their paths.
Survey = Mapping[str, int]


class AppliedState(msgspec.Struct, frozen=True):
    #: What makes the pods of this run, by its path, and the digest that it carries.
    digests: dict[str, str]
    survey: Survey


def data_hash(data: Mapping[str, str] | None) -> int:
    """What tells a copy from another of the same name, in this process only."""
    return hash(frozenset((data or {}).items()))


def find_digests(makers: Iterable[tuple[str, Metadata]], run: int) -> dict[str, str]:
    """Of everything that makes pods of this run and is to stay, given by kind."""
    return {
        _BY_KIND[kind].path(metadata.namespace, metadata.name): metadata.annotations.get(DIGEST, "")
        for kind, metadata in makers
        if run_of(metadata) == run and metadata.deletion_timestamp is None
    }


def annotate_digest(rendered: RenderedObjects) -> str:
    """Write the digest of a workload's objects on what makes its pods."""
    objects = (rendered.claims, rendered.runners, rendered.services)
    digest = hashlib.sha256(msgspec.json.encode(objects, order="deterministic")).hexdigest()[:32]
    for body in rendered.runners:
        body["metadata"]["annotations"] = {**body["metadata"].get("annotations", {}), DIGEST: digest}
    return digest


def is_up_to_date(standing: AppliedState, digest: str, bodies: Iterable[dict[str, Any]]) -> bool:
    """Whether applying all of it would change nothing."""
    watched: dict[str, str] = {}
    for body in bodies:
        path = path_of(body)
        if resource_of(body) in _BY_KIND.values():
            watched[path] = digest
        elif standing.survey.get(path) != data_hash(body.get("data")):
            return False
    return watched == standing.digests
