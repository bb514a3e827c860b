"""Decisions for an engine of single pods: its reports in, stops, restarts and orders out.

Pure. Called by the phase machine and the pod driver.
"""
