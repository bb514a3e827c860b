"""Addresses, network namespaces, the bridge, pasta, host ports.

Planned by the engine, set up by the supervisor.
"""
