"""A pod's output: written by its supervisor, read by the server.

The files are the interface: the two sides share no state, so either can be restarted.
"""
