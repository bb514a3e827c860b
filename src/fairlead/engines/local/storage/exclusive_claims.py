"""Claims that only pods of one node at a time may mount (ReadWriteOnce alone): which node has which.

Kept by the engine. All nodes are this one machine, so its storage does not keep them apart as a cluster's would.
"""

from collections.abc import Iterable, Sequence

from fairlead.engines.local.attempts import Key
from fairlead.model.pods.supplies import ClaimSupply


class ExclusiveClaims:
    def __init__(self) -> None:
        #: From a claim's id to the attempts that mount it, with their node.
        self._held: dict[str, dict[Key, str]] = {}

    def find_obstacle(self, node: str, claims: Iterable[ClaimSupply]) -> str:
        """Why a pod of this node cannot mount these claims now; empty if it can."""
        for claim in claims:
            holders = self._held.get(claim.id, {}).values() if claim.is_for_one_node else ()
            other = next((holder for holder in holders if holder != node), "")
            if other:
                return f"waits for claim {claim.name}: it is ReadWriteOnce, and pods on node {other} mount it"
        return ""

    def add(self, key: Key, node: str, claims: Iterable[ClaimSupply]) -> list[list[str]]:
        """Record what an attempt mounts; as it is written to its journal."""
        pairs = [[claim.id, node] for claim in claims if claim.is_for_one_node]
        self.restore(key, pairs)
        return pairs

    def restore(self, key: Key, pairs: Sequence[Sequence[str]]) -> None:
        for id, node in pairs:
            self._held.setdefault(id, {})[key] = node

    def release(self, key: Key) -> None:
        for id in [id for id, holders in self._held.items() if key in holders]:
            del self._held[id][key]
            if not self._held[id]:
                del self._held[id]
