"""What every field does on each engine, as text for the field reference and `fairlead explain`.

The tests that prove it are in `tests/field_proofs`, and `tests/unit/test_fields.py` checks that none is missing.
"""

from fairlead.engines.declared.effect import ClusterEffect, Effect
from fairlead.engines.declared.kubernetes import find_on_cluster
from fairlead.engines.declared.local import EFFECTS

#: Members `exclude` are one rule for all lists.
EXCLUDE = Effect(host="true: the item is left out", is_of_loop=True)

__all__ = ["EFFECTS", "EXCLUDE", "ClusterEffect", "Effect", "find_on_cluster"]
