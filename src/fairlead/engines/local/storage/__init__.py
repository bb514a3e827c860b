"""Claims on disk, and the mounts of a pod, made inside its own process.

Called by the engine (claims) and by the supervisor (mounts). Which volumes a pod gets was decided by `plan`.
"""
