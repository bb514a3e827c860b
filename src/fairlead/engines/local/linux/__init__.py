"""The kernel as functions: system calls, /proc, cgroups, netlink, NVML.

Used by the engine and the supervisor. Knows no pod and imports nothing of the engine.
"""
