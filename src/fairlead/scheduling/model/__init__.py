"""Snapshot in, decisions out, and the live objects of one cycle between them.

Used by every other package of `scheduling`; imports none of them.
"""
