"""What becomes of every field on each engine, as data: the field reference is made of it, and a test holds it to it."""

from msgspec.structs import replace

from fairlead.engines.declared.compute import EFFECTS as COMPUTE
from fairlead.engines.declared.contained import find_contained
from fairlead.engines.declared.distributed import EFFECTS as DISTRIBUTED
from fairlead.engines.declared.distributed import ROLES, role_proof
from fairlead.engines.declared.effect import Effect, Table, idle, seen
from fairlead.engines.declared.execution import EFFECTS as EXECUTION
from fairlead.engines.declared.kubernetes import CLUSTERED, Clustered, find_clustered
from fairlead.engines.declared.lifecycle import EFFECTS as LIFECYCLE
from fairlead.engines.declared.network import EFFECTS as NETWORK
from fairlead.engines.declared.placement import EFFECTS as PLACEMENT
from fairlead.engines.declared.security import EFFECTS as SECURITY
from fairlead.engines.declared.serving import EFFECTS as SERVING
from fairlead.engines.declared.storage import EFFECTS as STORAGE

#: What the engines declare, by REST path; members `exclude` are one rule for all lists.
EFFECTS: Table = {
    **{
        path: replace(effect, contained=find_contained(path))
        for path, effect in (EXECUTION | COMPUTE | SECURITY | STORAGE | NETWORK).items()
    },
    **{
        path: replace(effect, is_of_loop=True)
        for path, effect in (PLACEMENT | LIFECYCLE | DISTRIBUTED | SERVING).items()
    },
}
EXCLUDE = replace(
    seen("true leaves the item out", "e2e/test_fields_compute.py::test_extended_resources"), is_of_loop=True
)

__all__ = [
    "CLUSTERED",
    "DISTRIBUTED",
    "EFFECTS",
    "EXCLUDE",
    "ROLES",
    "Clustered",
    "Effect",
    "Table",
    "find_clustered",
    "idle",
    "role_proof",
    "seen",
]
