"""Addresses, network namespaces, the router between them, networks without root, host ports.

Planned by the engine, set up by the supervisor. Nothing here knows who may reach a URL; that is the proxy's part.
"""
