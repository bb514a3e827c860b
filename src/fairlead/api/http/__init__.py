"""One operation: how it is declared, routed, read, answered, and how errors become responses.

Used by every route module. Knows no workload.
"""
