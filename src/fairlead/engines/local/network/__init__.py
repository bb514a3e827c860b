"""Addresses, network namespaces, the router between them, pasta, host ports.

Planned by the engine, set up by the supervisor.
"""
