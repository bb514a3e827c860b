"""What becomes of every field on each engine, as data: the field reference is made of it, and a test holds it to it."""

from msgspec.structs import replace

from fairlead.engines.declared.compute import EFFECTS as COMPUTE
from fairlead.engines.declared.distributed import EFFECTS as DISTRIBUTED
from fairlead.engines.declared.effect import Effect, Table, idle, seen
from fairlead.engines.declared.execution import EFFECTS as EXECUTION
from fairlead.engines.declared.lifecycle import EFFECTS as LIFECYCLE
from fairlead.engines.declared.network import EFFECTS as NETWORK
from fairlead.engines.declared.placement import EFFECTS as PLACEMENT
from fairlead.engines.declared.security import EFFECTS as SECURITY
from fairlead.engines.declared.storage import EFFECTS as STORAGE

_NOT_YET = "refused: not yet in a container"
#: What the engines declare, by REST path; members `exclude` are one rule for all lists.
EFFECTS: Table = {
    **EXECUTION,
    **COMPUTE,
    **SECURITY,
    **{path: replace(effect, container=_NOT_YET) for path, effect in (STORAGE | NETWORK).items()},
    **PLACEMENT,
    **LIFECYCLE,
    **DISTRIBUTED,
}
EXCLUDE = seen(
    "true leaves the item out", "e2e/test_fields_compute.py::test_extended_resources", container="true leaves it out"
)
#: Said of every field until there is such an engine.
KUBERNETES = "not yet"

__all__ = ["DISTRIBUTED", "EFFECTS", "EXCLUDE", "KUBERNETES", "Effect", "Table", "idle", "seen"]
