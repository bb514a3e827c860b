"""Readers for files of dstack, SkyPilot and Slurm, and for Kubernetes Jobs.

Called by `convert`.
"""
