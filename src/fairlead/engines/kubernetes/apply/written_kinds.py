"""Which kinds of objects each workload may have in the cluster, so that a deletion asks only for those, and which
objects this server wrote, so that they are not written again.

The applier notes a kind before it sends the first object of it; the executor asks. A workload that may have objects of
an earlier server may have any kind.
"""

from collections.abc import Iterable

from fairlead.engines.kubernetes.client.resources import CLAIM, Manifest, Resource, path_of
from fairlead.engines.kubernetes.plan.existing_objects import Survey, data_hash


class WrittenKinds:
    def __init__(self) -> None:
        self._kinds: dict[str, set[Resource]] = {}
        #: Workloads that may have objects which this server did not write.
        self._unsure: set[str] = set()
        #: By workload: the objects that this server wrote, by path, with a hash of their data.
        self._objects: dict[str, dict[str, int]] = {}

    def begin(self, workload_id: str, *, may_have_others: bool) -> None:
        self._kinds.setdefault(workload_id, set())
        if may_have_others:
            self._unsure.add(workload_id)

    def note_all(self, workload_id: str, resources: Iterable[Resource]) -> None:
        """It has objects of these kinds, of kinds that are watched, and of no others, whoever wrote them."""
        self.note(workload_id, resources)
        self._unsure.discard(workload_id)

    def note(self, workload_id: str, resources: Iterable[Resource]) -> None:
        self._kinds.setdefault(workload_id, set()).update(resources)

    def note_object(self, workload_id: str, manifest: Manifest) -> None:
        """The API server has accepted it."""
        self._objects.setdefault(workload_id, {})[path_of(manifest)] = data_hash(manifest.get("data"))

    def objects_of(self, workload_id: str) -> Survey:
        return self._objects.get(workload_id, {})

    def find(self, workload_id: str) -> frozenset[Resource] | None:
        """None if it may be any kind."""
        if workload_id in self._unsure or workload_id not in self._kinds:
            return None
        return frozenset(self._kinds[workload_id])

    def forget(self, workload_id: str, *, keeps_claims: bool) -> None:
        """Its objects are deleted; its claims may be kept."""
        self._objects.pop(workload_id, None)
        if not keeps_claims:
            self._unsure.discard(workload_id)
            self._kinds.pop(workload_id, None)
        elif workload_id in self._kinds:
            self._kinds[workload_id] &= {CLAIM}
