"""Fairlead: a workload orchestrator for AI clusters that runs whole on one machine."""

__version__ = "0.1.0"
