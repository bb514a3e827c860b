"""One workload in several dialects: each reads requests into submissions or writes workloads out. All pure."""
