"""Snapshot in, decisions out, and the live objects of one cycle between them.

Used by every other room of `scheduling`; imports none of them.
"""
