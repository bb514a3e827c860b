"""Files of dstack, SkyPilot and Slurm, and Kubernetes Jobs: read only.

Called by `convert`.
"""
