"""From a pod to the launch order that a supervisor carries out, and the fields that are refused beforehand.

Called by the engine in the server process. Starts nothing.
"""
