"""Which test has seen what a field does, on each engine. `tests/unit/test_fields.py` checks that the tests exist and
that none is missing; the field reference names them."""
