"""Checks of a cluster (doctor), the manifests of an installation, and the permissions that it needs.

Called by the command line. Changes no workload.
"""
