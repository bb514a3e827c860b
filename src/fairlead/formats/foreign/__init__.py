"""Readers for files of dstack, SkyPilot and Slurm, and for Kubernetes objects that run pods.

Called by `convert`, and by the API for manifests. They only read; what has no equivalent is listed as a loss.
"""
