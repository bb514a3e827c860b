"""The engine that runs pods as real processes on this machine.

`engine.LocalEngine` is its face. Nothing is imported here: the fork server and its supervisors live in this package
too, and every module they load is memory in each of them.
"""
