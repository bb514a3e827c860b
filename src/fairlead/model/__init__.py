"""The nouns: frozen data without I/O and without a clock.

Every other package imports from here. The modules directly in this folder are errors and the smallest shared types.
"""
