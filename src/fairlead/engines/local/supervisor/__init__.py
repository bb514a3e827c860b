"""The processes that outlive the server: the fork server, one supervisor for each pod, and the way from fork to exec.

Started by the engine. Imports as little as possible, because every import is memory in every pod.
"""
