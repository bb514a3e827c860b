"""The nouns: frozen data without I/O and without a clock. Every other room imports from here.

The modules here are errors and the smallest shared types.
"""
