"""Which kinds of objects each workload may have in the cluster, so that a deletion asks only for those, and which
objects this server wrote, so that they are not written again and are deleted without being listed.

The applier notes an object before it sends it, and again with the answer; the executor asks. A workload that may have
objects of an earlier server may have any kind.
"""

from collections.abc import Iterable

import msgspec

from fairlead.engines.kubernetes.client.resources import CLAIM, Manifest, Resource, path_of, resource_of
from fairlead.engines.kubernetes.plan.existing_objects import Survey, data_hash


class _Written(msgspec.Struct):
    kind: Resource
    data: int
    #: Empty before the API server has told it.
    uid: str = ""
    is_accepted: bool = False


class WrittenKinds:
    def __init__(self) -> None:
        self._kinds: dict[str, set[Resource]] = {}
        #: Of these kinds there may be objects that are not known by name.
        self._unnamed: dict[str, set[Resource]] = {}
        #: Workloads that may have objects which this server did not write.
        self._unsure: set[str] = set()
        #: By workload: the objects that this server sent, by path.
        self._objects: dict[str, dict[str, _Written]] = {}

    def begin(self, workload_id: str, *, may_have_others: bool) -> None:
        self._kinds.setdefault(workload_id, set())
        if may_have_others:
            self._unsure.add(workload_id)

    def note_all(self, workload_id: str, resources: Iterable[Resource]) -> None:
        """It has objects of these kinds, of kinds that are watched, and of no others, whoever wrote them."""
        self.note(workload_id, resources)
        self._unsure.discard(workload_id)

    def note(self, workload_id: str, resources: Iterable[Resource]) -> None:
        """It may have objects of these kinds, of any name."""
        kinds = set(resources)
        self._kinds.setdefault(workload_id, set()).update(kinds)
        self._unnamed.setdefault(workload_id, set()).update(kinds)

    def note_sent(self, workload_id: str, manifest: Manifest) -> None:
        """It may exist from now on, even if no answer comes."""
        kind = resource_of(manifest)
        self._kinds.setdefault(workload_id, set()).add(kind)
        new = _Written(kind, data_hash(manifest.get("data")))
        self._objects.setdefault(workload_id, {}).setdefault(path_of(manifest), new)

    def note_accepted(self, workload_id: str, manifest: Manifest, uid: str = "") -> None:
        """The API server has accepted it."""
        written = _Written(resource_of(manifest), data_hash(manifest.get("data")), uid, is_accepted=True)
        self._objects.setdefault(workload_id, {})[path_of(manifest)] = written

    def note_deleted(self, workload_id: str, path: str) -> None:
        self._objects.get(workload_id, {}).pop(path, None)

    def objects_of(self, workload_id: str) -> Survey:
        sent = self._objects.get(workload_id, {})
        return {path: written.data for path, written in sent.items() if written.is_accepted}

    def find(self, workload_id: str) -> frozenset[Resource] | None:
        """None if it may be any kind."""
        if workload_id in self._unsure or workload_id not in self._kinds:
            return None
        return frozenset(self._kinds[workload_id])

    def find_uids(self, workload_id: str, kind: Resource) -> dict[str, str] | None:
        """The uids of its objects of a kind by path; None if there may be others."""
        sent = self._objects.get(workload_id, {})
        uids = {path: written.uid for path, written in sent.items() if written.kind == kind}
        is_sure = self.find(workload_id) is not None and kind not in self._unnamed.get(workload_id, ())
        return uids if is_sure and all(uids.values()) else None

    def forget(self, workload_id: str, *, keeps_claims: bool) -> None:
        """Its objects are deleted; its claims may be kept."""
        self._objects.pop(workload_id, None)
        if not keeps_claims:
            self._unsure.discard(workload_id)
            self._kinds.pop(workload_id, None)
            self._unnamed.pop(workload_id, None)
        elif workload_id in self._kinds:
            self._kinds[workload_id] &= {CLAIM}
            self._unnamed.setdefault(workload_id, set()).intersection_update({CLAIM})
