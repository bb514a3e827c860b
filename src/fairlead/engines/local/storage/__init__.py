"""Claims on disk, and the mounts of a pod, made inside its own process.

Called by the engine (claims) and by the supervisor (mounts).
"""
