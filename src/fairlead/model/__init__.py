"""The nouns: frozen data without I/O and without a clock. Every other package imports from here.

The modules here are errors and the smallest shared types.
"""
