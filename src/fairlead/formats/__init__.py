"""One workload in several dialects: each reads requests into submissions or writes workloads. All pure.

The modules here are shared by the dialects or generated from the declarations.
"""
