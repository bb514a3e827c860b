"""Decisions for an engine of whole workloads: its reports in, blockers and orders out.

Pure. Called by the phase machine and the cluster driver.
"""
