"""Routes of Run:ai's older API below `/v1/k8s`, which 2.24 still has and calls deprecated.

Each is a view of the use cases that the current routes call; scripts that still use them keep working. Nothing new is
added here.
"""
